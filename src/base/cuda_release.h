// What the release of a CUDA toolkit implies for the NVIDIA driver.
#pragma once

#include <string>

namespace shmemctl {

/// Oldest branch of the NVIDIA driver that runs code compiled by a toolkit of this major version
/// (CUDA's minor version compatibility): "580".
constexpr const char* oldest_driver_branch(int cuda_major) {
  return cuda_major >= 13 ? "580" : cuda_major == 12 ? "525" : "450";
}

// Versions are numbers as in cuDriverGetVersion and CUDA_VERSION: 13000 is CUDA 13.0.

/// "13.0" for 13000.
inline std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Why a driver cannot run kernels of this toolkit, as one clause; "" if it can.
/// @param driver  result of cuDriverGetVersion; with the forward compatibility package, its version
/// @param toolkit version of the toolkit that compiled the kernels
inline std::string why_no_kernels(int driver, int toolkit) {
  if (driver / 1000 >= toolkit / 1000)
    return "";
  return "the driver supports CUDA " + cuda_version_text(driver) +
         ", and this binary's kernels, compiled by CUDA " + cuda_version_text(toolkit) +
         ", need a driver of branch " + oldest_driver_branch(toolkit / 1000) + " or newer";
}

/// The fix if why_no_kernels() is not empty: a command.
inline std::string install_newer_driver(int toolkit) {
  return "apt-get install -y cuda-compat-" + std::to_string(toolkit / 1000) + "-" +
         std::to_string(toolkit % 1000 / 10) + "  # or a driver of branch " +
         oldest_driver_branch(toolkit / 1000) + " or newer";
}

} // namespace shmemctl
