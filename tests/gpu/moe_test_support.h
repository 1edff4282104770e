// What the tests of dispatch and combine on GPUs have in common.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "src/model/moe/shape.h"
#include "tests/gpu/moe_world.h"
#include "tests/gpu/share.h"

namespace shmemctl::test {

inline int count_devices() {
  // Otherwise a kernel that waits may keep another one from being loaded.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}
inline bool has_gpu() {
  return count_devices() > 0;
}
/// Kernels of ranks that share a GPU wait for each other; under tools that launch them one after
/// the other they would wait for ever.
inline bool can_run(std::int32_t n_ranks) {
  return !is_reduced() || n_ranks <= count_devices();
}

inline moe::Shape shape_of(std::int32_t n_ranks, std::int32_t n_experts, std::int32_t top_k,
                           std::int32_t hidden, std::int32_t max_tokens) {
  moe::Shape shape;
  shape.n_ranks = n_ranks;
  shape.n_experts = n_experts;
  shape.top_k = top_k;
  shape.hidden = hidden;
  shape.max_tokens = max_tokens;
  return shape;
}

/// All cases; under such tools with few tokens, but with all their other sizes.
template <class Case>
std::vector<Case> reduced(std::vector<Case> cases) {
  constexpr std::int32_t few_tokens = 24;
  for (Case& one : cases)
    if (is_reduced())
      one.shape.max_tokens = std::min(one.shape.max_tokens, few_tokens);
  return cases;
}

inline void must(const std::string& wrong, const std::string& where) {
  if (!wrong.empty())
    throw std::runtime_error(where + ": " + wrong);
}
/// So that ranks come at different times.
inline void dawdle(std::mt19937& random) {
  usleep(static_cast<useconds_t>(random() % 300));
}

} // namespace shmemctl::test
