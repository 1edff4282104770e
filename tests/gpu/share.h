// Fewer rounds for tools that make kernels slow, more messages for long runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace shmemctl::test {

/// SHMEMCTL_TEST_GPU_SHARE=100: only a hundredth is wanted.
inline std::uint64_t wanted_share() {
  const char* const text = std::getenv("SHMEMCTL_TEST_GPU_SHARE");
  return std::max<std::uint64_t>(1, text ? std::strtoull(text, nullptr, 10) : 1);
}
/// Whether less than all is wanted.
inline bool is_reduced() {
  return wanted_share() > 1;
}
/// Messages of a litmus test: SHMEMCTL_TEST_GPU_MESSAGES if it has fewer of its own.
inline std::uint64_t messages_of(std::uint64_t own) {
  const char* const text = std::getenv("SHMEMCTL_TEST_GPU_MESSAGES");
  return std::max<std::uint64_t>(own, text ? std::strtoull(text, nullptr, 10) : 0);
}
/// Whether PEs that share a GPU take turns on it, which makes every wait for another one long. With
/// CUDA's multi-process service they run side by side.
inline bool sharers_take_turns() {
  return std::getenv("CUDA_MPS_PIPE_DIRECTORY") == nullptr;
}
/// That share of the rounds, one at least.
inline std::uint64_t share_of(std::uint64_t rounds) {
  return std::max<std::uint64_t>(1, rounds / wanted_share());
}
inline int share_of(int rounds) {
  return static_cast<int>(share_of(static_cast<std::uint64_t>(rounds)));
}

} // namespace shmemctl::test
