// The part of Open MPI's OpenSHMEM that a bootstrap needs, opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/dynamic_library.h"

namespace shmemctl {

/// Functions by their names in the OpenSHMEM specification.
struct OpenshmemLibrary {
  DynamicLibrary library;

  int (*init_thread)(int requested, int* provided) = nullptr;
  void (*finalize)() = nullptr;
  void (*global_exit)(int code) = nullptr;
  int (*my_pe)() = nullptr;
  int (*n_pes)() = nullptr;
  void* (*malloc)(std::size_t size_bytes) = nullptr;
  void (*free)(void* address) = nullptr;
  void (*putmem)(void* to, const void* from, std::size_t size_bytes, int pe) = nullptr;
  void (*uint64_p)(std::uint64_t* to, std::uint64_t value, int pe) = nullptr;
  void (*fence)() = nullptr;
  void (*quiet)() = nullptr;
  void (*barrier_all)() = nullptr;
  void (*progress)() = nullptr; ///< opal_progress: OpenSHMEM has no call that only makes progress
  const bool* initialized = nullptr; ///< Open MPI's own flag

  static constexpr int success = 0;
  static constexpr int thread_serialized = 2;

  /// Initialises OpenSHMEM on the calling thread, which must make all other calls too. Waits for
  /// all PEs of the job, without a timeout.
  int initialise() const;
};

/// Opens the library, which is never unloaded. Throws Error (unavailable) if there is no such file,
/// if it is not Open MPI's, or if it would crash in this program.
/// @param name e.g. "liboshmem.so.40"
OpenshmemLibrary open_openshmem_library(const std::string& name);

/// From now on the exit of the program does not wait for the other PEs. Without this call it would:
/// shmem_init registers an exit handler that waits for them, forever if one of them is lost.
void abandon_openshmem() noexcept;

} // namespace shmemctl
