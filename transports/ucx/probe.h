// Probes whether a PE of this machine is still alive, since UCX's shared memory transports do not
// detect its end.
#pragma once

#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// An abstract socket, which disappears when its process ends. Nothing is sent to it.
class UcxPresence {
public:
  /// Creates the socket. If that fails, the name is empty.
  UcxPresence();
  const std::string& name() const { return name_; }

  /// Whether the owner of that name is alive. Works only within the owner's network namespace.
  static bool is_there(const std::string& name);

private:
  std::string name_;
  FileDescriptor socket_;
};

} // namespace shmemctl
