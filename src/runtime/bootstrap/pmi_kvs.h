// Key-value stores of process managers that speak PMI-1 or PMI-2.
#pragma once

#include <memory>
#include <string>

#include "src/base/file_descriptor.h"
#include "src/base/options.h"
#include "src/runtime/bootstrap/kvs_bootstrap.h"

namespace shmemctl {

/// What the launcher's variables say about this process.
struct PmiIdentity {
  int rank = 0, size = 1;
  std::string job_id; ///< PMI_JOBID, for PMI-2; may be empty
};
/// From PMI_RANK, PMI_SIZE and PMI_JOBID. Throws Error (usage) if rank or size is missing or not a
/// number, or if the rank is not below the size.
PmiIdentity pmi_identity(const Environment& environment);
/// The socket that PMI_FD names; the caller owns it from now on, and it is set to close-on-exec.
/// Throws Error: `usage` if the variable is missing or not a number, or that of the system call if
/// it does not name a socket.
FileDescriptor pmi_descriptor(const Environment& environment);
/// A connection to PMI_PORT ("host:port"). Throws Error.
FileDescriptor pmi_connect(const Environment& environment, const Deadline& deadline);

/// These functions do the handshake with the process manager.
/// @param descriptor a socket to the process manager
std::unique_ptr<KeyValueStore> make_pmi1_kvs(FileDescriptor descriptor, const PmiIdentity& identity,
                                             const Deadline& deadline);
/// The same over a connection to PMI_PORT: the process sends its PMI_ID, and the process manager
/// answers with rank and size.
std::unique_ptr<KeyValueStore> make_pmi1_kvs_by_id(FileDescriptor descriptor, int id,
                                                   const Deadline& deadline);
std::unique_ptr<KeyValueStore> make_pmi2_kvs(FileDescriptor descriptor, const PmiIdentity& identity,
                                             const Deadline& deadline);

} // namespace shmemctl
