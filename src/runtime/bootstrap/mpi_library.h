// The part of Open MPI that a bootstrap needs, opened at run time.
#pragma once

#include <string>

#include "src/base/dynamic_library.h"

namespace shmemctl {

/// Open MPI's handles are pointers to objects that are opaque here (its mpi.h, releases 1.8 to 5.0,
/// which all have libmpi.so.40 or an older name with the same types).
using MpiComm = struct OpaqueMpiComm*;
using MpiDatatype = struct OpaqueMpiDatatype*;
using MpiRequest = struct OpaqueMpiRequest*;
using MpiErrorHandler = struct OpaqueMpiErrorHandler*;

/// Functions by their names in the MPI standard, and the predefined handles.
struct MpiLibrary {
  DynamicLibrary library;

  int (*Initialized)(int* flag) = nullptr;
  int (*Finalized)(int* flag) = nullptr;
  int (*Init_thread)(int* argc, char*** argv, int required, int* provided) = nullptr;
  int (*Finalize)() = nullptr;
  int (*Abort)(MpiComm comm, int code) = nullptr;
  int (*Error_string)(int code, char* text, int* length) = nullptr;
  int (*Comm_rank)(MpiComm comm, int* rank) = nullptr;
  int (*Comm_size)(MpiComm comm, int* size) = nullptr;
  int (*Comm_test_inter)(MpiComm comm, int* flag) = nullptr;
  int (*Comm_idup)(MpiComm comm, MpiComm* copy, MpiRequest* request) = nullptr;
  int (*Comm_free)(MpiComm* comm) = nullptr;
  int (*Comm_set_errhandler)(MpiComm comm, MpiErrorHandler handler) = nullptr;
  int (*Iallgather)(const void* send, int send_count, MpiDatatype send_type, void* receive,
                    int receive_count, MpiDatatype receive_type, MpiComm comm,
                    MpiRequest* request) = nullptr;
  int (*Ialltoall)(const void* send, int send_count, MpiDatatype send_type, void* receive,
                   int receive_count, MpiDatatype receive_type, MpiComm comm,
                   MpiRequest* request) = nullptr;
  int (*Ibarrier)(MpiComm comm, MpiRequest* request) = nullptr;
  int (*Ibcast)(void* data, int count, MpiDatatype type, int root, MpiComm comm,
                MpiRequest* request) = nullptr;
  int (*Isend)(const void* data, int count, MpiDatatype type, int peer, int tag, MpiComm comm,
               MpiRequest* request) = nullptr;
  int (*Recv)(void* data, int count, MpiDatatype type, int peer, int tag, MpiComm comm,
              void* status) = nullptr;
  int (*Iprobe)(int peer, int tag, MpiComm comm, int* flag, void* status) = nullptr;
  int (*Request_free)(MpiRequest* request) = nullptr;
  int (*Test)(MpiRequest* request, int* flag, void* status) = nullptr;

  MpiComm world = nullptr;
  MpiComm no_comm = nullptr; ///< MPI_COMM_NULL
  MpiDatatype byte = nullptr;
  MpiErrorHandler errors_return = nullptr;

  static constexpr int success = 0;
  static constexpr int any_source = -1;
  static constexpr int thread_serialized = 2;
  static constexpr void* ignore_status = nullptr;

  /// MPI's error string.
  std::string error_text(int code) const;
};

/// Opens the library, which is never unloaded. Throws Error (unavailable) if it does not open, is
/// not Open MPI (the error says what it is) or too old, or the program is linked with another MPI.
/// @param name e.g. "libmpi.so.40"
MpiLibrary open_mpi_library(const std::string& name);

} // namespace shmemctl
