#include "src/instruments/bringup/connections.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reports/text.h"
#include "src/base/archive.h"
#include "src/instruments/bringup/reach_map.h"

namespace shmemctl {

namespace {

/// A connection as its PE sends it, without the source.
struct Connection {
  std::string transport;
  int target = 0;
  std::string text;
};

void serialize(Archive& archive, Connection& connection) {
  archive(connection.transport, connection.target, connection.text);
}

} // namespace

std::string connections_message(const std::vector<TransportEntry>& transports, int n_pes) {
  std::vector<ConnectionRow> rows;
  for (const TransportEntry& entry : transports)
    for (int pe = 0; pe < n_pes; ++pe)
      if (entry.reach[static_cast<std::size_t>(pe)].capabilities != 0)
        if (const std::string text = entry.transport->connection(pe); !text.empty())
          rows.push_back({entry.transport->name(), 0, pe, text});
  return connections_message(rows);
}

std::string connections_message(const std::vector<ConnectionRow>& rows) {
  std::vector<Connection> connections;
  for (const ConnectionRow& row : rows)
    connections.push_back({row.transport, row.target, row.path});
  return to_bytes(connections);
}

std::vector<ConnectionRow> merge_connections(const std::vector<std::string>& messages) {
  std::vector<ConnectionRow> rows;
  const int n_pes = static_cast<int>(messages.size());
  for (std::size_t pe = 0; pe < messages.size(); ++pe)
    for (Connection& one : value_of_pe<std::vector<Connection>>(messages[pe], pe, "connections")) {
      if (one.target < 0 || one.target >= n_pes || one.transport.empty() || one.text.empty())
        throw malformed_message(pe, "connections");
      rows.push_back(
          {std::move(one.transport), static_cast<int>(pe), one.target, std::move(one.text)});
    }
  std::sort(rows.begin(), rows.end(), [](const ConnectionRow& a, const ConnectionRow& b) {
    return std::tie(a.transport, a.source, a.target) < std::tie(b.transport, b.source, b.target);
  });
  return rows;
}

std::vector<ConnectionRow> gather_connections(Runtime& runtime, const std::string& message) {
  const std::vector<std::string> messages = runtime.gather_text_on_first(message);
  return runtime.pe() == 0 ? merge_connections(messages) : std::vector<ConnectionRow>();
}

std::string connections_for_people(const std::vector<ConnectionRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<PePair>> pairs;
  for (const ConnectionRow& row : rows)
    pairs[{row.transport, row.path}].emplace_back(row.source, row.target);
  std::string text;
  for (const auto& [key, of_text] : pairs)
    text += safe_text(key.first) + ", " + safe_text(key.second) + ": " + pair_list(of_text) + "\n";
  return text;
}

Findings emulated_hca_findings(const std::vector<ConnectionRow>& rows) {
  std::set<std::string> transports;
  for (const ConnectionRow& row : rows)
    if (row.path.find("emulated HCA") != std::string::npos)
      transports.insert(row.transport);
  Findings findings;
  for (const std::string& transport : transports)
    findings.push_back({"emulated-hca", Severity::info, transport,
                        transport + " went over the emulated HCA: the figures are those of "
                                    "processors, not of an mlx5 device",
                        "run it on a node with an mlx5 device, with SHMEMCTL_MLX5_DEVICE=real"});
  return findings;
}

} // namespace shmemctl
