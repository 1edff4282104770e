// Parses what UCX prints of its lanes and atomics: not all versions have a call for that.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/transport.h"

namespace shmemctl {

/// One lane of an endpoint: a UCX transport on a device.
struct UcxLane {
  std::string transport; ///< "tcp", "rc_verbs"
  std::string device;    ///< "eth0", "mlx5_0:1", "memory"
  bool operator==(const UcxLane&) const = default;
};

/// @param printed the text of ucp_ep_print_info(). UCX does not print for every lane what it is
/// for, so these are all of them.
std::vector<UcxLane> parse_lanes(std::string_view printed);

/// @param printed the text of ucp_worker_print_info(). Returns what executes atomics by itself;
/// all others are executed by the target's processor.
std::vector<UcxLane> parse_atomics(std::string_view printed);

/// @param printed the text of ucp_context_print_info(). Returns all that may be used.
std::vector<UcxLane> parse_resources(std::string_view printed);

/// "tcp/eth0, rc_verbs/mlx5_0:1".
std::string to_text(const std::vector<UcxLane>& lanes);

/// The ports that they use, each once; shared memory uses none.
std::vector<HcaPort> ports_of(const std::vector<UcxLane>& lanes);

/// The port that all of them use; nothing if they use several, or memory.
std::optional<HcaPort> only_port(const std::vector<UcxLane>& lanes);

/// Whether all, or some, of these are shared memory transports. all_memory() of no lanes is true.
bool all_memory(const std::vector<UcxLane>& lanes);
bool some_memory(const std::vector<UcxLane>& lanes);

} // namespace shmemctl
