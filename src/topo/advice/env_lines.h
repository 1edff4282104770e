// Lines of environment that state an assignment of NICs, ready to paste into a bash script.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// The word as bash reads it back: quoted if it has anything but letters, digits and _ . , : ^ = -
/// in it. Names of devices come from files that somebody hands us.
std::string shell_word(const std::string& text);

/// Per PE "mlx5_0:1", or "mlx5_0:1,mlx5_1:1"; "" for a PE without NICs.
std::vector<std::string> devices_per_rank(const Node& node, const Mapping& mapping);
/// All the ports of the mapping, each once, in node order: "mlx5_0:1,mlx5_1:1".
std::string devices_of_all(const Node& node, const Mapping& mapping);

/// The value of NVSHMEM_HCA_PE_MAPPING that gives every PE its first NIC if
/// NVSHMEM_ENABLE_NIC_PE_MAPPING is set: PE i takes row i modulo the rows, and rows stand in
/// enumeration order. Nothing if the assignment does not rise with the PEs, or is too long.
std::optional<std::string> hca_pe_mapping_value(const Node& node, const Mapping& mapping);

/// `export VARIABLE=value` if all ranks have one value; else a bash array and an export that picks
/// by the launcher's local rank.
std::vector<std::string> lines_per_rank(const std::string& variable,
                                        const std::vector<std::string>& values);

/// The longest beginning that all the mapping's device names share, without digits at its end: what
/// NVSHMEM_HCA_PREFIX would have to be; "" if there is none.
std::string common_prefix(const Node& node, const Mapping& mapping);

} // namespace shmemctl
