// Fewer rounds for tools that make kernels slow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace shmemctl::test {

/// SHMEMCTL_TEST_GPU_SHARE=100: a hundredth of the rounds, one at least.
inline std::uint64_t share_of(std::uint64_t rounds) {
  const char* const text = std::getenv("SHMEMCTL_TEST_GPU_SHARE");
  const std::uint64_t share = text ? std::strtoull(text, nullptr, 10) : 1;
  return std::max<std::uint64_t>(1, rounds / std::max<std::uint64_t>(1, share));
}
inline int share_of(int rounds) {
  return static_cast<int>(share_of(static_cast<std::uint64_t>(rounds)));
}

} // namespace shmemctl::test
