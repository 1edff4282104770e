// What all launchers of measuring kernels take. No CUDA header.
#pragma once

#include <cstdint>
#include <string>

#include "src/abi/device_job.h"

namespace shmemctl::bench {

/// Which threads make a call together; as CallScope of src/instruments/bench/launch.h.
enum class KernelScope : std::int32_t { thread, warp, block };

/// Memory of the device that a PE's launches at one point share; zeroed before the first. The grid
/// is launched so that all of its blocks run at once.
struct KernelControl {
  std::uint64_t begin_ns, end_ns; ///< by the GPU's global timer, of the last launch
  std::uint64_t failed;           ///< a wait gave up: the job's report says which
  std::uint64_t wrong_at;         ///< of a check: the first wrong byte; UINT64_MAX: none
  std::uint64_t expected, found;  ///< the values at wrong_at
  std::uint64_t step_ns;          ///< of the timer
};

struct KernelLaunch {
  const DeviceJob& job;
  KernelControl* control;
  void* stream;
  int device;
  KernelScope scope;
  int ctas, threads;
};

/// Launchers return "" or why the launch failed, in CUDA's words; they do not wait. Every PE of the
/// job launches: kernels begin with a barrier of all of them, which is not in the time.

} // namespace shmemctl::bench
