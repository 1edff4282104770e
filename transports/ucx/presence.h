// Whether a PE of this machine still has its transport: UCX's shared memory does not tell.
#pragma once

#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// A socket without a file, which goes with its process at the latest. Nothing is sent to it.
class UcxPresence {
public:
  /// Without a socket, if there can be none, the name is empty.
  UcxPresence();
  const std::string& name() const { return name_; }

  /// Whether the owner of that name is there; only from its own network namespace.
  static bool is_there(const std::string& name);

private:
  std::string name_;
  FileDescriptor socket_;
};

} // namespace shmemctl
