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
/// From PMI_RANK and PMI_SIZE. Throws Error (usage) if one is missing or no number, or the rank is
/// not below the size.
PmiIdentity pmi_identity(const Environment& environment);
/// The socket that PMI_FD names, from now on owned and close-on-exec. Throws Error (usage) if the
/// variable is missing or names none.
FileDescriptor pmi_descriptor(const Environment& environment);
/// A connection to PMI_PORT ("host:port"). Throws Error.
FileDescriptor pmi_connect(const Environment& environment, const Deadline& deadline);

/// Both do the handshake. @param descriptor a socket to the process manager
std::unique_ptr<KeyValueStore> make_pmi1_kvs(FileDescriptor descriptor, const PmiIdentity& identity,
                                             const Deadline& deadline);
/// The same over a connection to PMI_PORT, where the process manager tells rank and size to the
/// process with this PMI_ID.
std::unique_ptr<KeyValueStore> make_pmi1_kvs_by_id(FileDescriptor descriptor, int id,
                                                   const Deadline& deadline);
std::unique_ptr<KeyValueStore> make_pmi2_kvs(FileDescriptor descriptor, const PmiIdentity& identity,
                                             const Deadline& deadline);

} // namespace shmemctl
