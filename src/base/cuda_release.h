// What a CUDA toolkit's release says about drivers.
#pragma once

namespace shmemctl {

/// Oldest branch of the NVIDIA driver that runs what a toolkit of this major version compiled
/// (CUDA's minor version compatibility): "580".
constexpr const char* oldest_driver_branch(int cuda_major) {
  return cuda_major >= 13 ? "580" : cuda_major == 12 ? "525" : "450";
}

} // namespace shmemctl
