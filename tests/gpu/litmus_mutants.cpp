// Every order of the device headers, taken out by itself, must make a litmus fail: on two GPUs, or
// on one under CUDA's multi-process service.
//   gpu_litmus_mutants [NAME...]   a table; exit code 1 if a mutant survives that must not
//                                  (litmus_verdict.h), or what has all orders (NONE, and with
//                                  networks NETWORK: always tried first) fails; 2: it cannot run
// `ninja gpu_litmus_mutants` builds it; not part of the build.
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/gpu/litmus_verdict.h"
#include "tests/gpu/litmus_world.h"
#include "tests/gpu/share.h"

namespace shmemctl::test {
namespace {

constexpr double wait_s = 2;
/// What fills the link, or the memory that PEs of one GPU share, whose multiprocessors have the
/// other PE's blocks too.
int load_blocks(Runtime& runtime) {
  return runtime.gpu()->info().pes_on_device > 1 ? 24 : 96;
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
          {Program::grid_sync, Who::block, 200, 256, 8, 10000},
          {Program::grid_barrier, Who::block, 64, 256, 32768, 3000},
          {Program::gather, Who::block, 32, 256, 32768, 1000},
          {Program::gather_of_grid, Who::block, 17, 256, 65536, 1500},
          {Program::reduce, Who::block, 32, 256, 4096, 4000},
          {Program::reduce, Who::warp, 32, 32, 24576, 500},
          {Program::reduce, Who::block, 32, 256, 32768, 1000},
          {Program::reduce_of_grid, Who::block, 17, 256, 16384, 1500}};
}

/// Over the proxy, and over the emulated HCA.
std::vector<Litmus> network_programs(std::uint64_t messages) {
  using Program = LitmusProgram;
  const std::uint64_t rounds = messages / 128 + 1;
  return {{Program::put_signal, Who::block, 64, 256, 1000, rounds},
          {Program::put_signal, Who::thread, 64, 32, 8, rounds},
          {Program::put_signal, Who::block, 64, 256, 32768, rounds / 20 + 1},
          {Program::fence, Who::warp, 64, 32, 1000, rounds},
          {Program::barrier, Who::block, 16, 256, 1000, rounds / 4 + 1},
          {Program::reduce, Who::block, 16, 256, 1024, rounds / 8 + 1},
          {Program::reduce, Who::block, 16, 256, 32768, rounds / 80 + 1}};
}

bool is_wanted(const char* name, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}
void say(const LitmusVariant& variant, const std::string& text) {
  std::printf("%-24s %s\n", variant.name, text.c_str());
  std::fflush(stdout);
}

/// What the programs show; a mutant's end with the first that finds it.
Shown show(LitmusPe& me, const LitmusVariant& variant, const std::vector<Litmus>& programs,
           int load) {
  Shown all = Shown::nothing;
  for (const Litmus& litmus : programs) {
    const LitmusResult result = me.run(variant, litmus, load);
    if (me.pe() == 0 && (is_baseline(variant.name) || !result.holds()))
      say(variant, text_of(litmus) + ": " + result.text());
    if (result.holds())
      continue;
    all = result.wrong > 0 ? Shown::late_words : Shown::gave_up;
    if (is_baseline(variant.name) || is_found(variant.name, all))
      return all;
  }
  return all;
}

/// In a job of its own: what a mutant leaves behind is nobody else's.
Shown try_variant(const LitmusVariant& variant, const Environment& environment, const char* way,
                  const std::vector<Litmus>& programs, bool loaded) {
  const auto results = run_fork_job(litmus_job(environment, [&](Runtime& runtime) {
    LitmusPe me(runtime, wait_s);
    const Shown shown = show(me, variant, programs, loaded ? load_blocks(runtime) : 0);
    return std::to_string(static_cast<int>(shown)); // the same on both PEs
  }));
  for (const PeResult& result : results)
    if (result.exit_code != 0) {
      say(variant, std::string(way) + ": the job fails: " + result.text);
      return Shown::failed;
    }
  const auto shown = static_cast<Shown>(std::stoi(results[0].text));
  say(variant, std::string(way) + ": " +
                   (shown == Shown::nothing         ? "holds"
                    : is_found(variant.name, shown) ? "is found"
                    : shown == Shown::late_words    ? "has late words"
                                                    : "waits gave up"));
  return shown;
}

/// Tries a mutant over each of its network paths, or by loads and stores if it has none; results
/// with the path's name. Not every network shows every mutant.
std::vector<std::pair<std::string, Shown>> try_all(const LitmusVariant& variant) {
  if (!variant.has_network)
    return {{"", try_variant(variant, {}, "load and store", programs(), true)}};
  std::vector<std::pair<std::string, Shown>> all;
  for (const NetworkPath& way : network_paths())
    all.emplace_back(way.name, try_variant(variant, way.environment, way.name,
                                           network_programs(way.messages / 4), false));
  return all;
}

/// Runs the wanted mutants, each after the baseline of its kind: without that it is unknown whether
/// the mutation or something else makes data late.
class Run {
public:
  explicit Run(bool pes_share_a_gpu) : pes_share_a_gpu_(pes_share_a_gpu) {}

  /// Returns how many are not as they should be.
  int run(const std::vector<std::string>& names) {
    const std::vector<LitmusVariant> all = litmus_variants();
    int others = 0;
    for (const bool network : {false, true}) {
      const auto wanted = [&](const LitmusVariant& variant) {
        return variant.has_network == network && is_wanted(variant.name, names);
      };
      if (std::none_of(all.begin(), all.end(), wanted))
        continue;
      std::vector<std::string> sound; // ways
      for (const LitmusVariant& variant : all)
        if (variant.has_network == network && is_baseline(variant.name))
          others += judge(variant, sound) ? 0 : 1;
      for (const LitmusVariant& variant : all)
        if (wanted(variant) && !is_baseline(variant.name))
          others += judge(variant, sound) ? 0 : 1;
    }
    return others;
  }

private:
  /// @param sound the ways over which the baseline holds; it fills them
  bool judge(const LitmusVariant& variant, std::vector<std::string>& sound) const {
    std::vector<Shown> shown;
    for (const auto& [way, what] : try_all(variant)) {
      if (is_baseline(variant.name)) {
        shown.push_back(what);
        if (what == Shown::nothing)
          sound.push_back(way);
      } else if (std::find(sound.begin(), sound.end(), way) != sound.end()) {
        shown.push_back(what);
      }
    }
    if (is_as_it_should_be(variant.name, shown, pes_share_a_gpu_))
      return true;
    say(variant, "IS NOT AS IT SHOULD BE");
    return false;
  }

  bool pes_share_a_gpu_;
};

/// Whether the two PEs have one GPU; nothing, and a line that says why, if they cannot run.
std::optional<bool> pes_share_a_gpu() {
  const auto results =
      run_fork_job(litmus_job({{"SHMEMCTL_SYMMETRIC_SIZE", "2M"}}, [](Runtime& runtime) {
        return std::string(runtime.gpu()->info().pes_on_device > 1 ? "shared" : "own");
      }));
  if (results[0].exit_code != 0) {
    std::printf("gpu_litmus_mutants: %s\n", results[0].text.c_str());
    return std::nullopt;
  }
  const bool shared = results[0].text == "shared";
  if (shared && sharers_take_turns()) {
    std::printf("gpu_litmus_mutants: the PEs share a GPU and take turns, which takes too long: "
                "start CUDA's multi-process service, and set CUDA_MPS_PIPE_DIRECTORY\n");
    return std::nullopt;
  }
  return shared;
}

} // namespace
} // namespace shmemctl::test

int main(int count, char** words) {
  using namespace shmemctl::test;
  const std::vector<std::string> names(words + 1, words + count);
  for (const std::string& name : names) {
    const auto all = litmus_variants();
    if (std::none_of(all.begin(), all.end(),
                     [&](const LitmusVariant& variant) { return name == variant.name; })) {
      std::printf("gpu_litmus_mutants: there is no %s\n", name.c_str());
      return 2;
    }
  }
  const std::optional<bool> shared = pes_share_a_gpu();
  if (!shared)
    return 2;
  return Run(*shared).run(names) == 0 ? 0 : 1;
}
