// Every order of the device headers, taken out by itself, must make a litmus fail on GPUs.
//   gpu_litmus_mutants [NAME...]   a table; exit code 1 if a mutant survives, or what has all
//                                  orders fails
// `ninja gpu_litmus_mutants` builds it; not part of the build.
#include <cstdlib>
#include <cstring>

#include "tests/gpu/litmus_world.h"

namespace shmemctl::test {
namespace {

constexpr double wait_s = 2;
constexpr int load_blocks = 48;

/// What is tried on each mutant, the quick ones first.
std::vector<Litmus> programs() {
  using Program = LitmusProgram;
  return {{Program::put_signal, Who::warp, 64, 32, 1024, 4000},
          {Program::put_signal, Who::block, 64, 256, 16384, 1500},
          {Program::put_signal_nbi, Who::block, 64, 256, 4096, 3000},
          {Program::put_signal_add, Who::block, 64, 256, 4096, 3000},
          {Program::beside, Who::thread, 64, 32, 8, 8000},
          {Program::fence, Who::warp, 64, 32, 1024, 4000},
          {Program::fence, Who::block, 64, 256, 8192, 2000},
          {Program::quiet, Who::warp, 64, 32, 1024, 4000},
          {Program::quiet, Who::block, 64, 256, 8192, 2000},
          {Program::barrier, Who::warp, 32, 32, 1024, 5000},
          {Program::barrier, Who::block, 32, 256, 8192, 3000},
          {Program::poll, Who::block, 32, 64, 256, 50},
          {Program::grid_meet, Who::block, 200, 256, 8, 10000},
          {Program::grid_barrier, Who::block, 32, 256, 16384, 3000},
          {Program::gather, Who::block, 32, 256, 32768, 1000},
          {Program::gather_of_grid, Who::block, 17, 256, 16384, 1500}};
}

/// What PTX's memory model demands and this hardware does not show; tests on host threads do
/// (tests/support/device_mutants.sh). The reasons stand beside the orders.
bool is_of_the_model_only(const char* name) {
  return std::strcmp(name, "GRID_RELEASE") == 0 || std::strcmp(name, "ONE_ACCESS") == 0;
}

bool is_wanted(const char* name, const std::vector<std::string>& names) {
  if (names.empty() || std::strcmp(name, "NONE") == 0)
    return true;
  for (const std::string& wanted : names)
    if (wanted == name)
      return true;
  return false;
}

std::string run_all(Runtime& runtime, const std::vector<std::string>& names, bool all_programs) {
  LitmusPe me(runtime, wait_s);
  std::string survivors;
  for (const LitmusVariant& variant : litmus_variants()) {
    if (variant.has_network || !is_wanted(variant.name, names))
      continue;
    const bool whole = std::strcmp(variant.name, "NONE") == 0;
    bool holds = true;
    for (const Litmus& litmus : programs()) {
      const LitmusResult result = me.run(variant, litmus, load_blocks);
      if (me.pe() == 0 && (whole || all_programs || !result.holds())) {
        std::printf("%-24s %-48s %s\n", variant.name, text_of(litmus).c_str(),
                    result.text().c_str());
        std::fflush(stdout);
      }
      holds = holds && result.holds();
      if (!holds && !all_programs)
        break;
    }
    if (holds != whole && !(holds && is_of_the_model_only(variant.name)))
      survivors += std::string(" ") + variant.name;
    if (me.pe() == 0 && !whole)
      std::printf("%-24s %s\n", variant.name, holds ? "survives" : "is found");
    std::fflush(stdout);
  }
  return survivors;
}

} // namespace
} // namespace shmemctl::test

int main(int count, char** words) {
  using namespace shmemctl::test;
  std::vector<std::string> names(words + 1, words + count);
  const bool all_programs = std::getenv("SHMEMCTL_LITMUS_ALL") != nullptr;
  const auto results = run_fork_job(litmus_job(
      {}, [&](shmemctl::Runtime& runtime) { return run_all(runtime, names, all_programs); }));
  int failed = 0;
  for (const PeResult& result : results)
    failed |= result.exit_code;
  if (failed != 0 || !results[0].text.empty())
    std::printf("exit %d; not as it should be:%s\n", failed, results[0].text.c_str());
  return failed != 0 || !results[0].text.empty() ? 1 : 0;
}
