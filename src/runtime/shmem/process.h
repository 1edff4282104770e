// The process's world: how a program starts and ends it, by shmem_init or by another interface over
// the same runtime.
#pragma once

#include <memory>
#include <string>

#include "src/runtime/runtime.h"

namespace shmemctl::api {

/// How a program initialises the library.
struct InitRequest {
  int thread_level = 0; ///< SHMEM_THREAD_*
  GpuUse gpu = GpuUse::none;
  int gpu_device = -1;               ///< CUDA's number; -1: by turns
  std::unique_ptr<UidArguments> uid; ///< passed in by the program
  void* mpi_communicator = nullptr;  ///< the same communicator as an MPI_Comm*
  bool share_static_data = true;     ///< globals of the program are symmetric
  /// SYMMETRIC_SIZE limits the GPU's heap only if an option of this project sets it, as in NVSHMEM.
  bool gpu_heap_grows = false;
  std::string bootstrap; ///< replaces the option BOOTSTRAP; "": the option decides
};

/// Whether start() has been called in this process, which may be once.
bool was_started();
/// Collective: makes process_world. Ends the process where that fails.
void start(InitRequest wanted_init);
/// Collective: the end of what start() made; nothing before it and after the first call.
void finalize();

} // namespace shmemctl::api
