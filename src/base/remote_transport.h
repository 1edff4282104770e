// NVSHMEM_REMOTE_TRANSPORT as NVSHMEM reads it: topo, env, doctor and the runtime ask here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/finding.h"
#include "src/base/options.h"

namespace shmemctl {

/// The transport that the value selects: "none", "ibrc", "ucx", "ibdevx" or "libfabric". NVSHMEM
/// compares the first 8 characters, without regard to case. Nothing for any other value: then
/// NVSHMEM starts no transport for its proxy, and says nothing about it; IBGDA still starts where
/// it is enabled.
std::optional<std::string> parse_remote_transport(std::string_view text);

/// What is wrong with a value that parse_remote_transport() does not know. An error where IBGDA is
/// not enabled, since then no transport to other nodes starts; else a warning.
/// @param text the value as the user wrote it
Finding unknown_remote_transport(const std::string& text, bool ibgda_enabled);

/// The same for the options of a run, wherever the value comes from: NVSHMEM reads only its own
/// variable, and accepts any value of it; a value that this tool was given otherwise is refused by
/// every command that uses it, so that it is an error. Nothing if the value is known or unset.
std::optional<Finding> check_remote_transport(const Options& options);

} // namespace shmemctl
