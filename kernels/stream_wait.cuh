// Programmatic dependent launch of stream kernels.
#pragma once

namespace shmemctl::on_stream {

/// Waits until the stream's earlier work is complete and visible. A kernel that may be launched
/// before that calls it before it uses anything that the earlier work writes.
__device__ inline void wait_for_stream() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Allows the stream's next kernel to launch early and wait on the device, which hides the time of
/// launches in a sequence of operations. Not for kernels that may run long: the next kernel, while
/// it waits, occupies room on SMs that other kernels may need.
__device__ inline void let_next_come() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

} // namespace shmemctl::on_stream
