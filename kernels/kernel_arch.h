// The architecture for which the code of a kernel, as the current device runs it, was compiled: a
// GPU may run code that was compiled for an older architecture.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <vector>

namespace shmemctl {

/// Whether the code was compiled for sm_90 or newer. Only then does it contain the parts of the
/// sources that need sm_90, even if the device itself is sm_90 or newer.
inline bool is_sm_90_code(const cudaFuncAttributes& code) {
  constexpr int sm_90 = 90;
  return code.ptxVersion >= sm_90 && code.binaryVersion >= sm_90;
}
/// The same for the code of `kernel` that the current device runs. CUDA is queried once per kernel,
/// device and thread. nullopt if CUDA returns an error, for example a sticky one: the launch will
/// report it.
inline std::optional<bool> has_code_of_sm_90(const void* kernel) {
  struct Known {
    const void* kernel;
    int device;
    bool is;
  };
  thread_local std::vector<Known> all;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess)
    return std::nullopt;
  for (const Known& one : all)
    if (one.kernel == kernel && one.device == device)
      return one.is;
  cudaFuncAttributes code{};
  if (cudaFuncGetAttributes(&code, kernel) != cudaSuccess)
    return std::nullopt;
  all.push_back({kernel, device, is_sm_90_code(code)});
  return all.back().is;
}

} // namespace shmemctl
