// The architecture for which a kernel's code, as the current device runs it, was compiled: a GPU
// may run code that was compiled for an older one.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <vector>

namespace shmemctl {

/// Whether the code was compiled for sm_90 or newer: then it contains the parts of the sources that
/// need sm_90, whatever the device could run.
inline bool is_sm_90_code(const cudaFuncAttributes& code) {
  constexpr int sm_90 = 90;
  return code.ptxVersion >= sm_90 && code.binaryVersion >= sm_90;
}
/// The same for the code that the current device runs of this kernel; queried once each. Nothing if
/// CUDA returns an error, as after a sticky error: the launch will report it.
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
