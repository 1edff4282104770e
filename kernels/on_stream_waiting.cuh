// How kernels of a stream follow each other.
#pragma once

namespace shmemctl::on_stream {

/// Each kernel begins with it: what the stream did before is complete, and seen, behind it. The
/// kernel itself may have been brought to the device before that.
__device__ inline void wait_for_stream() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// The stream's next kernel may be brought to the device now, where it waits: a row of operations
/// does not wait for launches. Not of kernels that may run long, because the next one takes room
/// that others may need.
__device__ inline void let_next_come() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

} // namespace shmemctl::on_stream
