// Data before its signal, a million times each, under load: every means, scope and path.
#include <gtest/gtest.h>

#include "tests/gpu/litmus_world.h"
#include "tests/gpu/share.h"

namespace shmemctl::test {
namespace {

std::string why_not_of(int n_pes) {
  const auto results = run_fork_job(litmus_job(
      {{"SHMEMCTL_SYMMETRIC_SIZE", "2M"}},
      [](Runtime& runtime) {
        return runtime.gpu()->info().pes_on_device > 1 && sharers_take_turns()
                   ? std::string("PEs that share a GPU take turns, which takes too long")
                   : std::string();
      },
      n_pes));
  for (const PeResult& result : results)
    if (!result.text.empty())
      return result.text;
  return "";
}
/// Why there are not as many GPUs, or one for several at once; "" if there are. Asked in a child:
/// CUDA does not survive a fork.
const std::string& why_not_here(int n_pes = 2) {
  static const std::string of_two = why_not_of(2);
  if (n_pes == 2)
    return of_two;
  static const std::string of_three = why_not_of(3);
  return of_three;
}

const LitmusVariant& headers(bool network) {
  static const std::vector<LitmusVariant> all = litmus_variants();
  for (const LitmusVariant& variant : all)
    if (variant.has_network == network)
      return variant;
  throw std::logic_error("no such variant");
}

/// Runs them one after the other in one job; all have to hold. Prints what was run.
void expect_all_hold(const Environment& environment, const std::vector<Litmus>& programs,
                     bool network, int load_blocks, int n_pes = 2) {
  if (!why_not_here(n_pes).empty())
    GTEST_SKIP() << why_not_here(n_pes);
  const auto body = [&](Runtime& runtime) -> std::string {
    LitmusPe me(runtime, 30);
    std::string failures, said;
    for (Litmus litmus : programs) {
      litmus.rounds = share_of(litmus.rounds);
      const LitmusResult result = me.run(headers(network), litmus, load_blocks);
      const std::string line = text_of(litmus) + ": " + result.text() + "\n";
      said += line;
      const std::uint64_t expected = static_cast<std::uint64_t>(n_pes) * litmus.rounds *
                                     static_cast<std::uint64_t>(litmus.blocks);
      failures += result.holds() && result.checked == expected ? "" : line;
    }
    if (!failures.empty())
      throw Error(ExitCode::finding, failures, "hold", "data came behind their signal", "-");
    return me.pe() == 0 ? said : std::string();
  };
  const auto results = run_fork_job(litmus_job(environment, body, n_pes));
  for (const PeResult& result : results)
    EXPECT_EQ(result.exit_code, 0) << result.text;
  std::printf("%s", results[0].text.c_str());
}

/// About `messages` of each size, both ways together.
std::vector<Litmus> of_sizes(LitmusProgram program, Who who, std::vector<std::size_t> sizes,
                             std::uint64_t messages, int blocks = 64) {
  std::vector<Litmus> all;
  const int threads = who == Who::block ? 256 : 32;
  for (const std::size_t size : sizes)
    all.push_back({program, who, blocks, threads, size,
                   messages / (2 * static_cast<std::uint64_t>(blocks)) + 1});
  return all;
}

constexpr std::uint64_t million = 1'000'000;
constexpr int load = 48;

/// 1 B to 64 KiB; by one thread up to 1 KiB, since more takes it long.
std::vector<std::size_t> sizes_of(Who who) {
  if (who == Who::thread)
    return {1, 3, 8, 64, 1024};
  return {1, 7, 8, 64, 1000, 4096, 65536};
}

struct Means {
  LitmusProgram program;
  Who who;
};
class LitmusOverLink : public ::testing::TestWithParam<Means> {};

TEST_P(LitmusOverLink, DataComesFirst) {
  const auto [program, who] = GetParam();
  std::vector<std::size_t> sizes = sizes_of(who);
  if (program == LitmusProgram::beside)
    sizes = {8};
  const int blocks = program == LitmusProgram::barrier ? 32 : 64;
  std::vector<Litmus> programs = of_sizes(program, who, sizes, million, blocks);
  if (program == LitmusProgram::beside)
    programs.push_back({program, who, 1, 32, 8, 100'000});
  expect_all_hold({}, programs, false, load);
}

std::string name_of_means(const ::testing::TestParamInfo<Means>& tested) {
  const char* const scopes[] = {"thread", "warp", "block"};
  return std::string(name_of(tested.param.program)) + "_" +
         scopes[static_cast<int>(tested.param.who)];
}

std::vector<Means> all_means() {
  std::vector<Means> all;
  for (const LitmusProgram program :
       {LitmusProgram::put_signal, LitmusProgram::put_signal_add, LitmusProgram::put_signal_nbi,
        LitmusProgram::beside, LitmusProgram::fence, LitmusProgram::quiet, LitmusProgram::barrier})
    for (const Who who : {Who::thread, Who::warp, Who::block})
      all.push_back({program, who});
  return all;
}
INSTANTIATE_TEST_SUITE_P(, LitmusOverLink, ::testing::ValuesIn(all_means()), name_of_means);

TEST(LitmusOfGrids, BlocksSeeEachOther) {
  expect_all_hold({},
                  {{LitmusProgram::grid_sync, Who::block, 200, 256, 8, 10000},
                   {LitmusProgram::grid_barrier, Who::block, 64, 256, 32768, 8000}},
                  false, load);
}
TEST(LitmusOfCollectives, DataIsThereOnReturn) {
  expect_all_hold({},
                  {{LitmusProgram::gather, Who::warp, 32, 32, 16, 16000},
                   {LitmusProgram::gather, Who::block, 32, 256, 2048, 16000},
                   {LitmusProgram::gather, Who::block, 32, 256, 32768, 4000},
                   {LitmusProgram::gather_of_grid, Who::block, 17, 256, 16384, 4000}},
                  false, load);
}
/// In words up to 16 KiB of each PE, beyond straight into place.
TEST(LitmusOfCollectives, ReductionsAreOfTheRoundsNumbers) {
  expect_all_hold({},
                  {{LitmusProgram::reduce, Who::thread, 32, 32, 16, 16000},
                   {LitmusProgram::reduce, Who::warp, 32, 32, 256, 16000},
                   {LitmusProgram::reduce, Who::block, 32, 256, 4096, 16000},
                   {LitmusProgram::reduce, Who::warp, 32, 32, 24576, 2000},
                   {LitmusProgram::reduce, Who::block, 32, 256, 32768, 8000},
                   {LitmusProgram::reduce_of_grid, Who::block, 17, 256, 512, 8000},
                   {LitmusProgram::reduce_of_grid, Who::block, 17, 256, 16384, 4000}},
                  false, load);
}
/// What is complete is so for a third PE, too, that hears of it by another one.
TEST(LitmusOfThree, WhatAnothersSignalSaysIsThere) {
  expect_all_hold({},
                  {{LitmusProgram::relay, Who::thread, 64, 32, 8, 8000},
                   {LitmusProgram::relay, Who::warp, 64, 32, 1024, 8000},
                   {LitmusProgram::relay, Who::block, 64, 256, 4096, 8000},
                   {LitmusProgram::relay, Who::block, 32, 256, 65536, 2000}},
                  false, load, 3);
}
/// A get in a loop does not see an old copy for ever.
TEST(LitmusOfGets, SeeWhatHasChanged) {
  expect_all_hold({},
                  {{LitmusProgram::poll, Who::block, 32, 64, 256, 4000},
                   {LitmusProgram::poll, Who::block, 32, 64, 3, 4000}},
                  false, 0);
}

class LitmusOverNetwork : public ::testing::TestWithParam<NetworkPath> {};

/// Many blocks share the proxy's ring, or the queue: these are the load.
TEST_P(LitmusOverNetwork, DataComesFirst) {
  const NetworkPath& way = GetParam();
  std::vector<Litmus> programs;
  const auto add = [&](std::vector<Litmus> more) {
    programs.insert(programs.end(), more.begin(), more.end());
  };
  using Program = LitmusProgram;
  const std::uint64_t messages = messages_of(way.messages);
  add(of_sizes(Program::put_signal, Who::thread, {1, 8}, messages));
  add(of_sizes(Program::put_signal, Who::block, {1000}, messages));
  add(of_sizes(Program::put_signal, Who::block, {65536}, messages / 20));
  add(of_sizes(Program::put_signal_add, Who::warp, {64}, messages));
  add(of_sizes(Program::fence, Who::warp, {1000}, messages));
  add(of_sizes(Program::quiet, Who::block, {1000}, messages / 4));
  add(of_sizes(Program::barrier, Who::block, {1000}, messages / 4, 16));
  add(of_sizes(Program::reduce, Who::thread, {16}, messages / 16, 16));
  add(of_sizes(Program::reduce, Who::block, {1024}, messages / 8, 16));
  add(of_sizes(Program::reduce, Who::block, {32768}, messages / 80, 16));
  expect_all_hold(way.environment, programs, true, 0);
}

INSTANTIATE_TEST_SUITE_P(, LitmusOverNetwork, ::testing::ValuesIn(network_paths()),
                         [](const auto& tested) { return std::string(tested.param.name); });

} // namespace
} // namespace shmemctl::test
