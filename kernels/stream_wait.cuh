// Programmatic dependent launch of stream kernels.
#pragma once

namespace shmemctl::on_stream {

/// Called first by each kernel: the stream's earlier work is complete and visible after it. The
/// kernel may have been launched before that.
__device__ inline void wait_for_stream() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Lets the stream's next kernel launch early and wait on the device, so that a sequence of
/// operations does not pay for launches. Not for kernels that may run long, because the next one
/// occupies room that others may need.
__device__ inline void let_next_come() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

} // namespace shmemctl::on_stream
