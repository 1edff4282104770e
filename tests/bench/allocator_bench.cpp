// The symmetric heap's allocator: pairs of free and allocate with 10,000 live blocks. `items` are
// operations, two a pair; at least 2 million a second are wanted.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "src/runtime/memory/allocator.h"

namespace shmemctl {
namespace {

constexpr std::size_t live_blocks = 10'000;
constexpr std::size_t pairs = 1'000'000;

/// A block to replace and the size of the new one, made beforehand: the generator is not measured.
struct Step {
  std::uint32_t block = 0, size_bytes = 0;
};

std::vector<Step> steps(std::uint32_t min_bytes, std::uint32_t max_bytes) {
  std::mt19937 random(42);
  std::vector<Step> made(pairs);
  for (Step& step : made)
    step = {static_cast<std::uint32_t>(random() % live_blocks),
            min_bytes + static_cast<std::uint32_t>(random() % (max_bytes - min_bytes + 1))};
  return made;
}

void replace_random_blocks(benchmark::State& state) {
  const auto script =
      steps(static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1)));
  Allocator allocator(std::size_t{4} << 30);
  std::vector<std::size_t> live(live_blocks);
  for (std::size_t at = 0; at < live_blocks; ++at)
    live[at] = allocator.allocate(script[at].size_bytes).value();
  for (auto _ : state)
    for (const Step& step : script) {
      allocator.free(live[step.block]);
      live[step.block] = allocator.allocate(step.size_bytes).value();
    }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * pairs));
}
BENCHMARK(replace_random_blocks)
    ->ArgNames({"min_bytes", "max_bytes"})
    ->Args({64, 64})
    ->Args({1, 8192})
    ->Args({1, 262144})
    ->Unit(benchmark::kMillisecond);

/// Small aligned blocks among large ones: every search meets gaps that hold no aligned place.
void aligned_blocks(benchmark::State& state) {
  const auto script = steps(1, 8192);
  Allocator allocator(std::size_t{4} << 30);
  std::vector<std::size_t> live(live_blocks);
  for (std::size_t at = 0; at < live_blocks; ++at)
    live[at] = allocator.allocate(script[at].size_bytes, 4096).value();
  for (auto _ : state)
    for (const Step& step : script) {
      allocator.free(live[step.block]);
      live[step.block] = allocator.allocate(step.size_bytes, step.block % 2 ? 4096 : 64).value();
    }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * pairs));
}
BENCHMARK(aligned_blocks)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace shmemctl

BENCHMARK_MAIN();
