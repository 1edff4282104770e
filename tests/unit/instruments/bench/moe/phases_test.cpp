// Calls in two halves: when they are made, counted and verified.
#include <gtest/gtest.h>

#include "src/instruments/bench/moe/measure.h"

namespace shmemctl::moe {
namespace {

/// Moves nothing; records its calls.
class HalvedBackend : public Backend {
public:
  explicit HalvedBackend(bool phases) : halves_(phases) {}
  std::string name() const override { return "halved"; }
  std::vector<MemoryUse> memory() const override { return {}; }
  std::string window() const override { return ""; }
  void poison() override { said += "p"; }
  Times dispatch(bool) override { return counted(called.dispatches); }
  Times combine() override { return counted(called.combines); }
  void run_experts() override { said += "e"; }
  bool has_phases() const override { return halves_; }
  double send(Direction direction) override {
    said += direction == Direction::combine ? "C" : "D";
    ++(direction == Direction::combine ? called.combines : called.dispatches);
    return 2;
  }
  double receive(Direction direction) override {
    said += direction == Direction::combine ? "c" : "d";
    return 3;
  }
  std::optional<std::string> verify_dispatch() override { return verified("v"); }
  std::optional<std::string> verify_combine() override { return verified("w"); }
  void corrupt() override {}

  std::string said; ///< since the last whole call
  std::string wrong_after;
  CallCount called;

private:
  Times counted(std::uint64_t& count) {
    ++count;
    said.clear();
    return {};
  }
  std::optional<std::string> verified(const char* what) {
    said += what;
    return !wrong_after.empty() && said.ends_with(wrong_after) ? std::optional("a wrong half")
                                                               : std::nullopt;
  }
  bool halves_;
};

PointResult measured_in_halves(HalvedBackend& backend, bool verify, std::string* said) {
  Setup setup;
  setup.mode = Mode::low_latency;
  Effort effort;
  effort.iterations = 2;
  effort.verify = verify;
  JobRank rank;
  rank.barrier = [said] {
    if (said != nullptr)
      *said += "|";
  };
  rank.gather = [](const std::string& text) { return std::vector{text}; };
  return measure(backend, setup, effort, rank);
}

TEST(MoeHalves, EachIsTimedAfterABarrierAndTheLastAreVerified) {
  HalvedBackend backend(true);
  const PointResult result = measured_in_halves(backend, true, &backend.said);
  // After the chain, whose last calls are verified.
  EXPECT_EQ(backend.said.substr(backend.said.find('D') - 2), "||D|d|C|c|p|D|dve|C|cw");
  ASSERT_EQ(result.operations.size(), 2U);
  for (const OperationResult& operation : result.operations) {
    EXPECT_EQ(operation.send_us, (std::vector<double>{2, 2}));
    EXPECT_EQ(operation.receive_us, (std::vector<double>{3, 3}));
  }
  ASSERT_TRUE(result.calls);
  EXPECT_EQ(result.calls->dispatches, backend.called.dispatches);
  EXPECT_EQ(result.calls->combines, backend.called.combines);
}

TEST(MoeHalves, AWrongOneIsFound) {
  for (const char* after : {"dv", "cw"}) {
    HalvedBackend backend(true);
    backend.wrong_after = after;
    EXPECT_EQ(measured_in_halves(backend, true, nullptr).wrong.size(), 1U) << after;
    EXPECT_TRUE(measured_in_halves(backend, false, nullptr).wrong.empty()) << after;
  }
}

TEST(MoeHalves, BackendsWithoutHalvesAreNotCalled) {
  HalvedBackend backend(false);
  const PointResult result = measured_in_halves(backend, true, nullptr);
  EXPECT_EQ(backend.said.find_first_of("DdCc"), std::string::npos);
  EXPECT_TRUE(result.operations.front().send_us.empty());
}

} // namespace
} // namespace shmemctl::moe
