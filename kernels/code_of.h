// What a kernel's code, as the current device runs it, was made from: a GPU may run code that was
// made for an older one.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <vector>

namespace shmemctl {

/// Whether it was made from PTX of sm_90 at least: then the parts of the sources that are for sm_90
/// and later are in it, whatever the device could run.
inline bool is_of_sm_90(const cudaFuncAttributes& code) {
  constexpr int sm_90 = 90;
  return code.ptxVersion >= sm_90 && code.binaryVersion >= sm_90;
}
/// The same of what the current device runs of the kernel; asked once for each. Nothing if CUDA
/// does not tell, as after an error that stays: the launch will say it.
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
  all.push_back({kernel, device, is_of_sm_90(code)});
  return all.back().is;
}

} // namespace shmemctl
