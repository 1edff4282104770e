// Findings about HCA lists and mappings that name devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/model/topo/advice/env_fix.h"
#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

/// The variable whose list took effect, or whose text was read but names nothing: its name with the
/// NVSHMEM_ prefix and its text.
struct ListSource {
  std::string variable;
  std::string text;
  bool is_pe_mapping = false;
};
std::optional<ListSource> list_source(const Mapping& mapping);

/// Index of the RDMA device of that name; empty for other NICs.
std::optional<int> find_hca(const Node& node, const std::string& name);
/// Index of a NIC of that name without RDMA.
std::optional<int> find_plain_nic(const Node& node, const std::string& name);
/// Index of the RDMA device whose port has that network interface.
std::optional<int> find_hca_of_netdev(const Node& node, const std::string& name);
/// The RDMA device whose name is nearest to what was written: blanks and ^ removed, a network
/// interface translated, or a small edit distance.
std::optional<int> nearest_hca(const Node& node, const std::string& name);
/// As nearest_hca(), but empty if the numbers differ: mlx5_11 is not a misspelling of mlx5_1.
std::optional<int> meant_hca(const Node& node, const std::string& name);
bool has_port(const Node& node, int nic, int port);

/// The list as it was probably meant, in NVSHMEM's order: known devices and ports, no duplicates,
/// counts of 1 or more; an unknown port of a device with a single port is that port. "" if nothing
/// is left.
std::string corrected_list(const Node& node, const Mapping& mapping);
/// The environment line that sets the variable to that list, or unsets it if nothing is left.
EnvChange corrected_list_change(const Node& node, const Mapping& mapping);
/// One "device:port" per row that the user's list states, in the user's own order, counts included.
std::vector<NicUse> rows_as_written(const Node& node, const Mapping& mapping);

} // namespace shmemctl
