// What launchers of dispatch and combine refuse before anything is launched: an order of
// low-latency calls that their memory cannot serve, and blocks that wait for each other but are not
// resident together.
#include <gtest/gtest.h>

#include <random>

#include "kernels/moe/launch_config.h"
#include "kernels/moe/low_latency.h"
#include "kernels/moe/low_latency_internode.h"

namespace shmemctl::moe {
namespace {

/// A call of a micro-batch: 'D' a dispatch, 'C' a combine, with halves 's' (send) or 'r'.
struct Launch {
  char call;
  Phases phases;
};
std::vector<Launch> launches_of(const std::string& words) {
  std::vector<Launch> launches;
  for (const char letter : words)
    if (letter == 'D' || letter == 'C')
      launches.push_back({letter, Phases::both});
    else
      launches.back().phases = letter == 's' ? Phases::send : Phases::receive;
  return launches;
}
/// "" or the number of the first refused launch and the reason.
std::string first_refused(const std::string& words) {
  LowLatencyCalls calls;
  int number = 0;
  for (const Launch& launch : launches_of(words)) {
    ++number;
    const std::string refused = launch.call == 'D' ? calls.refuse_dispatch(launch.phases)
                                                   : calls.refuse_combine(launch.phases);
    if (!refused.empty())
      return std::to_string(number) + ": " + refused;
    if (launch.call == 'D')
      calls.dispatched(launch.phases);
    else
      calls.combined(launch.phases);
  }
  return "";
}

TEST(MoeLaunchRules, EachDispatchIsFollowedByItsCombine) {
  for (const char* const words : {"DCDC", "DsDrCsCrDsDrCsCr", "DsDrCDCsCrDC", "DCDsDr", "D", "Ds"})
    EXPECT_EQ(first_refused(words), "") << words;
}

TEST(MoeLaunchRules, TwoMicroBatchesInFlightAreRefused) {
  const struct {
    const char *words, *said;
  } cases[] = {
      {"DDCC", "2: the dispatch before has no combine yet, and two micro-batches under way are not "
               "supported: launch that combine first"},
      {"DCDDCC", "4: the dispatch before has no combine yet"},
      {"DsDs", "2: the dispatch before has not been received: launch its receive half first"},
      {"DsDrDs", "3: the dispatch before has no combine yet"},
      {"DCsD", "3: the combine before is not received, and two micro-batches"},
      {"DCsDsCr", "3: the combine before is not received"},
      {"DCC", "3: there is no dispatch that this combine could answer"},
      {"DCsCs", "3: the combine before is not received"},
      {"C", "1: there is no dispatch"},
      {"DsC", "2: the dispatch has not been received"},
      {"Dr", "1: no dispatch has been sent"},
      {"DDr", "2: no dispatch has been sent"},
      {"DCr", "2: no combine has been sent"},
  };
  for (const auto& [words, said] : cases)
    EXPECT_EQ(first_refused(words).find(said), 0U) << words << ": " << first_refused(words);
}

TEST(MoeLaunchRules, ADispatchWithoutACombineIsDropped) {
  LowLatencyCalls calls;
  calls.drop(); // there is no next call
  EXPECT_EQ(calls.refuse_dispatch(Phases::both), "");
  calls.dispatched(Phases::send);
  calls.drop(); // the rows of this dispatch have not been received yet
  EXPECT_NE(calls.refuse_dispatch(Phases::both), "");
  calls.dispatched(Phases::receive);
  EXPECT_NE(calls.refuse_dispatch(Phases::both), "");
  calls.drop();
  EXPECT_EQ(calls.refuse_dispatch(Phases::both), "");
  EXPECT_NE(calls.refuse_combine(Phases::both), "");
  calls.dispatched(Phases::both);
  calls.combined(Phases::send);
  calls.drop(); // other ranks may read its outputs at this moment
  EXPECT_NE(calls.refuse_dispatch(Phases::both), "");
}

/// Whatever is launched, in any order: if it is allowed, no two batches are ever in flight.
TEST(MoeLaunchRules, NoOrderThatIsAllowedHasTwoBatches) {
  std::mt19937 random(26);
  for (int round = 0; round < 200; ++round) {
    LowLatencyCalls calls;
    int sent = 0, received = 0, offered = 0, combined = 0;
    for (int launch = 0; launch < 200; ++launch) {
      const auto phases = static_cast<Phases>(random() % 3);
      const bool is_dispatch = random() % 2 == 0;
      if (!(is_dispatch ? calls.refuse_dispatch(phases) : calls.refuse_combine(phases)).empty())
        continue;
      if (is_dispatch)
        calls.dispatched(phases);
      else
        calls.combined(phases);
      (is_dispatch ? sent : offered) += phases != Phases::receive;
      (is_dispatch ? received : combined) += phases != Phases::send;
      ASSERT_LE(sent - combined, 1);
      ASSERT_LE(received, sent);
      ASSERT_LE(offered, received);
      ASSERT_LE(combined, offered);
    }
    ASSERT_GT(combined, 5) << "something gets through";
  }
}

/// The launchers check before they use a GPU.
TEST(MoeLaunchRules, LaunchersRefuseASecondMicroBatch) {
  LowLatencyCalls calls(LowLatencyCalls::Step::received);
  const DeviceJob job{};
  for (const std::string& said : {launch_low_latency_dispatch(job, {}, calls, nullptr),
                                  launch_low_latency_internode_dispatch(job, {}, calls, nullptr)})
    EXPECT_TRUE(said.find("two micro-batches") != std::string::npos ||
                said.find("without CUDA") != std::string::npos)
        << said;
  calls = LowLatencyCalls();
  for (const std::string& said : {launch_low_latency_combine(job, {}, calls, nullptr),
                                  launch_low_latency_internode_combine(job, {}, calls, nullptr)})
    EXPECT_TRUE(said.find("no dispatch") != std::string::npos ||
                said.find("without CUDA") != std::string::npos)
        << said;
  EXPECT_EQ(calls.step(), LowLatencyCalls::Step::none) << "what is refused is not counted";
}

TEST(MoeLaunchRules, BlocksThatWaitForEachOtherMustBeResident) {
  EXPECT_EQ(refuse_nonresident_blocks(132, 1, 132), "");
  EXPECT_EQ(refuse_nonresident_blocks(264, 2, 132), "");
  EXPECT_EQ(refuse_nonresident_blocks(140, 1, 132),
            "its blocks wait for each other, so all 140 of them must be resident: they need 140 "
            "SMs, and 132 are available (1 of its blocks fit one SM); take 132 blocks at most");
  EXPECT_NE(refuse_nonresident_blocks(301, 2, 132).find("they need 151 SMs, and 132 are available"),
            std::string::npos);
  EXPECT_NE(refuse_nonresident_blocks(1, 0, 132), "") << "of a kernel that no multiprocessor holds";
}

} // namespace
} // namespace shmemctl::moe
