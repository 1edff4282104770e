// The world of a process: how a program starts and ends it, by shmem_init or by another interface
// to the same runtime.
#pragma once

#include <memory>
#include <string>

#include "src/runtime/runtime.h"

namespace shmemctl::api {

/// How a program initialises the library.
struct InitRequest {
  int thread_level = 0; ///< SHMEM_THREAD_*
  GpuUse gpu = GpuUse::none;
  int gpu_device = -1;               ///< CUDA's number; -1: as GPUS says, or by turns
  std::unique_ptr<UidArguments> uid; ///< unique id of the job, from the program; or null
  void* mpi_communicator = nullptr;  ///< an MPI_Comm*, from the program; or null
  bool share_static_data = true;     ///< whether globals of the program are symmetric
  /// As in NVSHMEM, neither the default of SYMMETRIC_SIZE nor NVSHMEM_SYMMETRIC_SIZE limits the
  /// heap of a GPU (with HEAP=ipc they do).
  bool gpu_heap_grows = false;
  std::string bootstrap; ///< replaces the option BOOTSTRAP; "": the option decides
};

/// Whether start() has been called in this process. It may be called only once.
bool was_started();
/// Collective: creates process_world. Ends the process if that fails.
void start(InitRequest wanted_init);
/// Collective: destroys process_world. Does nothing before start() and after the first call.
void finalize();

} // namespace shmemctl::api
