// Probes whether a PE of this machine is still alive: UCX's shared memory transports do not detect
// that.
#pragma once

#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// An abstract socket, which disappears with its process. Nothing is sent to it.
class UcxPresence {
public:
  /// Without a socket, if there can be none, the name is empty.
  UcxPresence();
  const std::string& name() const { return name_; }

  /// Whether the owner of that name is alive; only within its network namespace.
  static bool is_there(const std::string& name);

private:
  std::string name_;
  FileDescriptor socket_;
};

} // namespace shmemctl
