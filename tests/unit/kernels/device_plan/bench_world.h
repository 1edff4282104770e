// A job of threads whose PEs run measuring kernels.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "kernels/bench/check.cuh"
#include "tests/support/host_kernels.h"

namespace shmemctl::bench {

using shmemctl::test::HostKernels;
using shmemctl::test::HostShape;

inline constexpr std::size_t heap_bytes = std::size_t{1} << 20;
inline constexpr std::uint64_t seed = 77;
/// iterate() is called with these counts, one after the other.
inline const std::vector<std::uint64_t> counts = {1, 3, 8};
inline constexpr std::uint64_t iterations = 12;

class World {
public:
  explicit World(int n_pes)
      : kernels_(n_pes, heap_bytes), controls_(static_cast<std::size_t>(n_pes)) {}

  int n_pes() const { return static_cast<int>(controls_.size()); }
  std::byte* memory(int pe) { return kernels_.job(pe).heap; }
  KernelControl& control(int pe) { return controls_[static_cast<std::size_t>(pe)]; }

  /// @param arguments_of by PE
  template <class Body, class ArgumentsOf>
  void run(HostShape shape, const ArgumentsOf& arguments_of) {
    kernels_.run(shape, [&](const DeviceJob& job) {
      Body::run(job, &control(job.pe), arguments_of(job.pe));
    });
    for (int pe = 0; pe < n_pes(); ++pe) {
      EXPECT_EQ(control(pe).failed, 0u);
      EXPECT_EQ(kernels_.report(pe).state, WaitReport::none);
    }
  }
  void fill(std::size_t size_bytes) {
    kernels_.run({2, 2}, [&](const DeviceJob& job) {
      FillBody::run(job, &control(job.pe),
                    {reinterpret_cast<std::uint64_t*>(job.heap), size_bytes / 8, seed, job.pe});
    });
  }
  /// The first difference of PE's area from its expected content; UINT64_MAX: none.
  std::uint64_t wrong_at(int pe, std::size_t offset_bytes, const PatternSlots& slots) {
    run<CheckBody>({2, 2}, [&](int at) {
      PatternSlots mine = slots;
      if (at != pe)
        mine.slots = 0; // an empty area
      return CheckArguments{memory(at) + offset_bytes, mine};
    });
    return control(pe).wrong_at;
  }

private:
  HostKernels kernels_;
  std::vector<KernelControl> controls_;
};

} // namespace shmemctl::bench
