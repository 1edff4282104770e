// Which network each pair of a job's nodes used: key "networks".
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/table.h"

namespace shmemctl {

/// A port of a NIC, or an interface, whose port is 1. No name: the transport does not report it.
struct NetworkPort {
  std::string device;
  int port = 1;
  auto operator<=>(const NetworkPort&) const = default;
};

/// Two ports that data went between.
struct NetworkLink {
  NetworkPort first, second;
  auto operator<=>(const NetworkLink&) const = default;
};

/// Node pairs with the same links: each node of `first` with each other node of `second`.
struct NetworkRow {
  std::string transport;          ///< "libfabric"
  std::vector<NetworkLink> links; ///< sorted; empty for a transport that names no ports
  std::vector<int> first, second; ///< numbers of nodes in the job, ascending
  bool both_ways = true;          ///< false: only what `first` sends to `second`
  std::size_t pairs = 0;          ///< pairs of nodes, each counted once
  std::optional<int> run = std::nullopt;
};

nlohmann::json to_json(const NetworkRow& row);
/// Reads a row of a document that is valid by the schema.
NetworkRow network_row_from_json(const nlohmann::json& object);

/// What one PE uses to reach the PEs of other nodes.
struct NetworkUse {
  int node = 0; ///< the PE's node
  std::string transport;
  std::vector<NetworkLink> links; ///< to the targets; `second` without a name is unknown
  std::vector<int> targets;       ///< nodes
};

/// All pairs of nodes, in as few rows as their links allow; a pair whose PEs use several
/// transports is in a row of each. A target's port that the transport does not report is taken from
/// the links in the other direction, if one of the two nodes uses a single port.
/// @param n_nodes number of nodes of the job; uses that involve other nodes, or a node and itself,
/// are ignored
std::vector<NetworkRow> network_rows(const std::vector<NetworkUse>& uses, int n_nodes);

/// "eth0 <-> enp5s0"; ports that all reach each other in short: "mlx5_[0-7] <-> mlx5_[0-7]".
std::string links_text(const NetworkRow& row);

/// A table: between which nodes, how many pairs, transport, ports on both sides. "" without rows.
/// Shows the first 50 rows, with `verbose` all.
/// @param node_names by number; a node without a name is called by its number
std::string networks_text(const std::vector<NetworkRow>& rows,
                          const std::vector<std::string>& node_names, const TextStyle& style);
/// The nodes of a row as networks_text() calls them: "among a, b", "a <-> b", "a -> b".
std::string between_text(const NetworkRow& row, const std::vector<std::string>& node_names);

/// By node of the job: the name of its host in `hosts`, followed by the node's number if several
/// nodes are on that host.
/// @param hosts those of the report, with their key "nodes"
std::vector<std::string> node_names_of(const nlohmann::json& hosts);

} // namespace shmemctl
