// The CUDA runtime's errors as texts. Under a driver that is too old for this binary's kernels,
// every call of the runtime fails with the same error, which names neither the driver's version nor
// the required one.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "src/base/cuda_release.h"

namespace shmemctl {

/// The CUDA version that the driver supports (cudaDriverGetVersion); 0 if there is no driver.
inline int cuda_driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

/// "" for success; otherwise CUDA's error text and, for cudaErrorInsufficientDriver, which driver
/// is needed.
/// @param driver as returned by cuda_driver_version(); 0 if there is no driver
inline std::string cuda_error_text(cudaError_t error, int driver = cuda_driver_version()) {
  if (error == cudaSuccess)
    return "";
  std::string text = cudaGetErrorString(error);
  if (error != cudaErrorInsufficientDriver)
    return text;
  if (driver == 0)
    return text + ": there is no driver";
  const std::string why = why_no_kernels(driver, CUDART_VERSION);
  return why.empty() ? text : text + ": " + why;
}

/// The error's name and text: "cudaErrorInvalidValue: invalid argument".
inline std::string named_cuda_error(cudaError_t error) {
  return error == cudaSuccess ? "" : cudaGetErrorName(error) + (": " + cuda_error_text(error));
}

/// What to do about an error of the CUDA runtime: install a newer driver if the present one is too
/// old, else `otherwise`.
inline std::string fix_of_cuda_error(cudaError_t error, const std::string& otherwise) {
  return error == cudaErrorInsufficientDriver && cuda_driver_version() != 0
             ? install_newer_driver(CUDART_VERSION)
             : otherwise;
}

} // namespace shmemctl
