// What UCX prints of its connections and atomics, as values. There is no call that tells them in
// all versions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/transport.h"

namespace shmemctl {

/// One way of an endpoint: a UCX transport on a device.
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

/// "tcp/eth0, rc_verbs/mlx5_0:1".
std::string to_text(const std::vector<UcxLane>& lanes);

/// The port that all of them use; nothing if they use several, or memory.
std::optional<HcaPort> only_port(const std::vector<UcxLane>& lanes);

/// Whether these are lanes of one machine's memory, which the processor itself reads and writes.
bool through_memory(const std::vector<UcxLane>& lanes);

} // namespace shmemctl
