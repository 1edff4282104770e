// Parses the text that UCX prints about its lanes and atomics, since not all versions have
// functions that return these data.
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

/// All lanes of an endpoint. UCX does not print the purpose of every lane.
/// @param printed the text of ucp_ep_print_info()
std::vector<UcxLane> parse_lanes(std::string_view printed);

/// The resources that execute atomics by themselves. Atomics over other resources are executed by
/// the target's CPU.
/// @param printed the text of ucp_worker_print_info()
std::vector<UcxLane> parse_atomics(std::string_view printed);

/// The resources that UCX may use.
/// @param printed the text of ucp_context_print_info()
std::vector<UcxLane> parse_resources(std::string_view printed);

/// "tcp/eth0, rc_verbs/mlx5_0:1".
std::string to_text(const std::vector<UcxLane>& lanes);

/// The ports that the lanes use, each once; shared memory uses none.
std::vector<HcaPort> ports_of(const std::vector<UcxLane>& lanes);

/// The port that all lanes use; nothing if they use several devices, or only memory.
std::optional<HcaPort> only_port(const std::vector<UcxLane>& lanes);

/// Whether all or some of the lanes are shared memory transports. For an empty list, all_memory()
/// is true.
bool all_memory(const std::vector<UcxLane>& lanes);
bool some_memory(const std::vector<UcxLane>& lanes);

} // namespace shmemctl
