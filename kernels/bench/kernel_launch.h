// Arguments that all launchers of measuring kernels take. No CUDA header.
#pragma once

#include <cstdint>
#include <string>

#include "src/abi/device_job.h"

namespace shmemctl::bench {

/// Which threads make a call together; the same as CallScope of src/instruments/bench/launch.h.
enum class KernelScope : std::int32_t { thread, warp, block };

/// State in device memory that all launches of a PE at one point share; zeroed before the first
/// launch. A grid is launched so that all of its blocks run at the same time.
struct KernelControl {
  std::uint64_t begin_ns, end_ns; ///< of the last launch, by the GPU's global timer
  std::uint64_t failed;           ///< nonzero: a wait timed out; the job's report says which
  std::uint64_t wrong_at;         ///< by checks: first wrong byte (or atomic); UINT64_MAX: none
  std::uint64_t expected, found;  ///< the values at wrong_at
  std::uint64_t step_ns;          ///< the timer's step
};

struct KernelLaunch {
  const DeviceJob& job;
  KernelControl* control;
  void* stream;
  int device;
  KernelScope scope;
  int ctas, threads;
};

/// Launchers return "" or why the launch failed, in CUDA's words; they do not wait for the kernel.
/// Every PE of the job has to launch a measured kernel: it begins with a barrier of all PEs, which
/// is not part of the measured time.

} // namespace shmemctl::bench
