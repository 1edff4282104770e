// What PEs do with their GPUs' heaps in tests, over a fake driver and over a real one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/runtime/gpu/gpu.h"
#include "src/runtime/runtime.h"

namespace shmemctl::test {

/// A failed expectation in a PE.
inline void expect(bool condition, const std::string& what) {
  if (!condition)
    throw Error(ExitCode::finding, what, "expect", "it is not so", "-");
}

inline std::vector<std::uint64_t> words_at(PeGpu& gpu, const void* from, std::size_t count) {
  std::vector<std::uint64_t> words(count, ~std::uint64_t{0});
  gpu.copy(words.data(), from, count * sizeof words[0]);
  return words;
}
inline std::uint64_t word_at(PeGpu& gpu, const void* from) {
  return words_at(gpu, from, 1)[0];
}

/// Each PE puts a row into every PE's memory, and reads the next one's.
inline std::string put_to_all(Runtime& runtime, const std::string& kind) {
  PeGpu& gpu = *runtime.gpu();
  expect(gpu.info().heap_kind == kind, gpu.info().heap_kind);
  auto* row = static_cast<std::uint64_t*>(gpu.allocate(3 * 1024 * 8));
  expect(row != nullptr, "memory");
  std::vector<std::uint64_t> mine(1000, 100 + static_cast<std::uint64_t>(runtime.pe()));
  for (int pe = 0; pe < 3; ++pe)
    runtime.rma().put(row + 1024 * runtime.pe(), mine.data(), mine.size() * 8, pe, 0, false);
  runtime.rma().quiet();
  runtime.collectives().barrier(team_world);
  for (int pe = 0; pe < 3; ++pe) {
    const std::vector<std::uint64_t> theirs = words_at(gpu, row + 1024 * pe, 1001);
    for (std::size_t i = 0; i < 1000; ++i)
      expect(theirs[i] == 100 + static_cast<std::uint64_t>(pe), "word");
    expect(theirs[1000] == 0, "what is behind it");
  }
  // Reads what the others have put, from their memory.
  std::uint64_t seen = 0;
  runtime.rma().get(&seen, row + 1024, 8, (runtime.pe() + 1) % 3);
  expect(seen == 101, "get");
  gpu.free(row);
  return {};
}

/// Two PEs: put with signal, atomics with and without an old value.
inline std::string signal_and_count(Runtime& runtime) {
  PeGpu& gpu = *runtime.gpu();
  auto* words = static_cast<std::uint64_t*>(gpu.allocate(64));
  Rma& rma = runtime.rma();
  const int peer = 1 - runtime.pe();
  const std::uint64_t payload = 7;
  rma.put_signal(words, &payload, 8, words + 1, 3, SignalOp::set, peer);
  rma.quiet();
  runtime.collectives().barrier(team_world);
  expect(words_at(gpu, words, 2) == (std::vector<std::uint64_t>{7, 3}), "payload and signal");
  runtime.collectives().barrier(team_world);
  rma.put_signal(words, nullptr, 0, words + 1, 2, SignalOp::add, peer);
  rma.post_atomic(words + 2, {AtomicOp::add, 8, 5}, peer);
  rma.quiet();
  expect(rma.atomic(words + 2, {AtomicOp::fetch, 8}, peer) == 5, "fetch");
  expect(rma.atomic(words + 2, {AtomicOp::compare_swap, 8, 9, 5}, peer) == 5, "old value");
  expect(rma.atomic(words + 3, {AtomicOp::swap, 4, 0xffff'ffff'0000'0001}, peer) == 0, "swap");
  runtime.collectives().barrier(team_world);
  expect(words_at(gpu, words + 1, 3) == (std::vector<std::uint64_t>{5, 9, 1}), "counted");
  gpu.free(words);
  return {};
}

/// Two PEs, a heap of 64 MiB: blocks until there is no more.
inline std::string grow_to_the_limit(Runtime& runtime) {
  PeGpu& gpu = *runtime.gpu();
  std::vector<std::uint64_t*> blocks;
  const std::byte* const base = gpu.job().heap;
  while (void* block = gpu.allocate(6 << 20))
    blocks.push_back(static_cast<std::uint64_t*>(block));
  expect(blocks.size() == 10, "blocks: " + std::to_string(blocks.size()));
  expect(gpu.job().heap == base && gpu.job().heap_bytes >= 60u << 20 &&
             gpu.job().heap_bytes <= 64u << 20,
         "what kernels know");
  const int peer = 1 - runtime.pe();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    expect(word_at(gpu, blocks[i] + 5000) == 0, "zeros");
    const std::uint64_t value = i * 100 + static_cast<std::uint64_t>(runtime.pe());
    runtime.rma().put(blocks[i] + 700000, &value, 8, peer);
  }
  runtime.rma().quiet();
  runtime.collectives().barrier(team_world);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    expect(word_at(gpu, blocks[i] + 700000) == i * 100 + static_cast<std::uint64_t>(peer),
           "block " + std::to_string(i));
  for (std::uint64_t* block : blocks)
    gpu.free(block);
  return {};
}

} // namespace shmemctl::test
