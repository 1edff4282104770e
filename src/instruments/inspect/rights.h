// The rights of a process: seccomp, capabilities, namespaces, devices, locked memory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/inspect/process.h"

namespace shmemctl::inspect {

struct Rights {
  std::string seccomp; ///< "off", "strict", "filter"; "" if it is unknown
  std::optional<bool> no_new_privileges;
  std::string effective_capabilities;        ///< hexadecimal, as the kernel writes them
  std::vector<std::string> other_namespaces; ///< "net": namespaces that differ from ours
  std::string locked_memory;                 ///< soft limit in bytes, or "unlimited"
  std::vector<std::string> devices;          ///< open devices, each once: "/dev/infiniband/uverbs0"
  std::vector<std::string> imex_channels;    ///< open IMEX channels: "channel0"
};

/// @param own namespaces of this process; empty to skip the comparison
Rights rights_of(const Process& process, const std::map<std::string, std::string>& own);

/// The namespaces of this process; empty for a recorded tree.
std::map<std::string, std::string> own_namespaces(const Sysroot& sysroot);

} // namespace shmemctl::inspect
