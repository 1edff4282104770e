// Every order of the device headers, taken out by itself, must make a litmus fail: on two GPUs, or
// on one under CUDA's multi-process service.
//   gpu_litmus_mutants [NAME...]   a table; exit code 1 if a mutant survives, or what has all
//                                  orders (NONE, and with networks NETWORK) fails
// `ninja gpu_litmus_mutants` builds it; not part of the build.
#include <algorithm>
#include <cstring>

#include "tests/gpu/litmus_world.h"

namespace shmemctl::test {
namespace {

constexpr double wait_s = 2;
/// What fills the link, or the memory that PEs of one GPU share, whose multiprocessors have the
/// other PE's blocks too.
int load_blocks(Runtime& runtime) {
  return runtime.gpu()->site().pes_on_device > 1 ? 24 : 96;
}

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
          {Program::grid_barrier, Who::block, 64, 256, 32768, 3000},
          {Program::gather, Who::block, 32, 256, 32768, 1000},
          {Program::gather_of_grid, Who::block, 17, 256, 65536, 1500}};
}

/// What PTX's memory model demands and H200s have not shown in some hundred thousand rounds. Other
/// tests do: docs/device_api.md says which.
bool is_of_the_model_only(const char* name) {
  const char* const names[] = {"GRID_ARRIVE", "GRID_RELEASE", "COLLECTIVE_BLOCK_FENCE",
                               "NETWORK_ACQUIRE", "NETWORK_DOORBELL"};
  return std::any_of(std::begin(names), std::end(names),
                     [name](const char* each) { return std::strcmp(each, name) == 0; });
}

/// Over the proxy, and over the HCA in software.
std::vector<Litmus> network_programs(std::uint64_t messages) {
  using Program = LitmusProgram;
  const std::uint64_t rounds = messages / 128 + 1;
  return {{Program::put_signal, Who::block, 64, 256, 1000, rounds},
          {Program::put_signal, Who::thread, 64, 32, 8, rounds},
          {Program::put_signal, Who::block, 64, 256, 32768, rounds / 20 + 1},
          {Program::fence, Who::warp, 64, 32, 1000, rounds},
          {Program::barrier, Who::block, 16, 256, 1000, rounds / 4 + 1}};
}

bool is_wanted(const char* name, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}
bool is_mutant(const LitmusVariant& variant) {
  return std::strcmp(variant.name, "NONE") != 0 && std::strcmp(variant.name, "NETWORK") != 0;
}

void say(const LitmusVariant& variant, const std::string& text) {
  std::printf("%-24s %s\n", variant.name, text.c_str());
  std::fflush(stdout);
}

/// Whether all programs hold; a mutant's end with the first that does not.
bool all_hold(LitmusPe& me, const LitmusVariant& variant, const std::vector<Litmus>& programs,
              int load) {
  for (const Litmus& litmus : programs) {
    const LitmusResult result = me.run(variant, litmus, load);
    if (me.pe() == 0 && (!is_mutant(variant) || !result.holds()))
      say(variant, text_of(litmus) + ": " + result.text());
    if (!result.holds())
      return false;
  }
  return true;
}

/// In a job of its own: what a mutant leaves behind is nobody else's. Returns whether all held.
bool try_variant(const LitmusVariant& variant, const Environment& environment, const char* way,
                 const std::vector<Litmus>& programs, bool loaded) {
  const auto results = run_fork_job(litmus_job(environment, [&](Runtime& runtime) -> std::string {
    LitmusPe me(runtime, wait_s);
    return all_hold(me, variant, programs, loaded ? load_blocks(runtime) : 0) ? "" : "late";
  }));
  bool well = true;
  for (const PeResult& result : results) {
    well = well && result.exit_code == 0 && result.text.empty();
    if (result.exit_code != 0)
      say(variant, std::string(way) + ": " + result.text);
  }
  say(variant, std::string(way) + ": " + (well ? "holds" : "is found"));
  return well;
}

/// Over all its ways. A mutant need not show on every network.
bool is_as_it_should_be(const LitmusVariant& variant) {
  if (!variant.has_network) {
    const bool well = try_variant(variant, {}, "load and store", programs(), true);
    return is_mutant(variant) ? !well || is_of_the_model_only(variant.name) : well;
  }
  bool all_well = true;
  for (const NetworkWay& way : network_ways())
    all_well = try_variant(variant, way.environment, way.name, network_programs(way.messages / 4),
                           false) &&
               all_well;
  return is_mutant(variant) ? !all_well || is_of_the_model_only(variant.name) : all_well;
}

} // namespace
} // namespace shmemctl::test

int main(int count, char** words) {
  using namespace shmemctl::test;
  const std::vector<std::string> names(words + 1, words + count);
  int others = 0;
  for (const LitmusVariant& variant : litmus_variants())
    if (is_wanted(variant.name, names) && !is_as_it_should_be(variant)) {
      say(variant, "IS NOT AS IT SHOULD BE");
      ++others;
    }
  return others == 0 ? 0 : 1;
}
