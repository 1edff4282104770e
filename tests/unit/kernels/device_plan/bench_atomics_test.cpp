// What benchmark kernels of atomics do, on threads of the host.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/bench/atomics.cuh"
#include "tests/unit/kernels/device_plan/bench_world.h"

namespace shmemctl::bench {
namespace {

TEST(BenchAtomics, AtomicsLeaveWhatTheirNumberSays) {
  for (const AtomicKernel kernel :
       {AtomicKernel::fetch, AtomicKernel::set, AtomicKernel::swap, AtomicKernel::compare_swap,
        AtomicKernel::fetch_add, AtomicKernel::add}) {
    World world(2);
    std::uint64_t first = 0;
    for (const std::uint64_t count : counts) {
      world.run<AtomicLatencyBody<std::uint32_t>>({1, 2}, [&](int pe) {
        return AtomicArguments{kernel, first, count, world.memory(pe), 4, pe == 0 ? 1 : -1, 1};
      });
      EXPECT_EQ(world.control(0).wrong_at, UINT64_MAX);
      first += count;
    }
    std::uint32_t seen = 0;
    std::memcpy(&seen, world.memory(1), sizeof seen);
    EXPECT_EQ(seen, static_cast<std::uint32_t>(atomic_after(kernel, iterations)));
  }
}

TEST(BenchAtomics, AWrongFetchIsFound) {
  World world(2);
  world.memory(1)[0] = std::byte{9};
  world.run<AtomicLatencyBody<std::uint64_t>>({1, 1}, [&](int pe) {
    return AtomicArguments{AtomicKernel::fetch_add, 0, 3, world.memory(pe), 8, pe == 0 ? 1 : -1, 1};
  });
  EXPECT_EQ(world.control(0).wrong_at, 0u);
  EXPECT_EQ(world.control(0).found, 9u);
}

TEST(BenchAtomics, EveryThreadAddsToAWordOfItsOwn) {
  World world(2);
  world.run<AtomicRateBody<std::uint64_t>>({2, 3}, [&](int pe) {
    return AtomicArguments{AtomicKernel::add, 0, iterations, world.memory(pe), 8, 1 - pe, 1};
  });
  for (int pe = 0; pe < 2; ++pe)
    for (std::size_t word = 0; word < 7; ++word) {
      std::uint64_t seen = 0;
      std::memcpy(&seen, world.memory(pe) + 8 * word, sizeof seen);
      EXPECT_EQ(seen, word < 6 ? atomic_after(AtomicKernel::add, iterations) : 0) << word;
    }
}

TEST(BenchAtomics, AGridAddsToEveryWordOfAnArray) {
  for (const std::uint64_t n_words : {1u, 5u, 6u, 100u}) {
    World world(2);
    world.run<AtomicBandwidthBody>({2, 3}, [&](int pe) {
      return AtomicArguments{AtomicKernel::add, 0,      iterations, world.memory(pe), 8,
                             pe == 0 ? 1 : -1,  n_words};
    });
    for (int pe = 0; pe < 2; ++pe)
      for (std::size_t word = 0; word < 102; ++word) {
        std::uint64_t seen = 0;
        std::memcpy(&seen, world.memory(pe) + 8 * word, sizeof seen);
        EXPECT_EQ(seen, pe == 1 && word < n_words ? atomic_after(AtomicKernel::add, iterations) : 0)
            << word << " of " << n_words;
      }
  }
}

} // namespace
} // namespace shmemctl::bench
