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

/// A way from the PE that sends it.
struct Way {
  std::string transport;
  int target = 0;
  std::string way;
};

void serialize(Archive& archive, Way& way) {
  archive(way.transport, way.target, way.way);
}

} // namespace

std::string connections_message(const std::vector<TransportEntry>& transports, int n_pes) {
  std::vector<ConnectionRow> mine;
  for (const TransportEntry& entry : transports)
    for (int pe = 0; pe < n_pes; ++pe)
      if (entry.reach[static_cast<std::size_t>(pe)].capabilities != 0)
        if (const std::string way = entry.transport->connection(pe); !way.empty())
          mine.push_back({entry.transport->name(), 0, pe, way});
  return connections_message(mine);
}

std::string connections_message(const std::vector<ConnectionRow>& mine) {
  std::vector<Way> ways;
  for (const ConnectionRow& row : mine)
    ways.push_back({row.transport, row.target, row.way});
  return to_bytes(ways);
}

std::vector<ConnectionRow> merge_connections(const std::vector<std::string>& messages) {
  std::vector<ConnectionRow> rows;
  const int n_pes = static_cast<int>(messages.size());
  for (std::size_t pe = 0; pe < messages.size(); ++pe)
    for (Way& way : value_of_pe<std::vector<Way>>(messages[pe], pe, "connections")) {
      if (way.target < 0 || way.target >= n_pes || way.transport.empty() || way.way.empty())
        throw malformed_message(pe, "connections");
      rows.push_back(
          {std::move(way.transport), static_cast<int>(pe), way.target, std::move(way.way)});
    }
  std::sort(rows.begin(), rows.end(), [](const ConnectionRow& a, const ConnectionRow& b) {
    return std::tie(a.transport, a.source, a.target) < std::tie(b.transport, b.source, b.target);
  });
  return rows;
}

std::string connections_for_people(const std::vector<ConnectionRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<PePair>> pairs;
  for (const ConnectionRow& row : rows)
    pairs[{row.transport, row.way}].emplace_back(row.source, row.target);
  std::string text;
  for (const auto& [key, of_way] : pairs)
    text += safe_text(key.first) + ", " + safe_text(key.second) + ": " + pair_list(of_way) + "\n";
  return text;
}

Findings emulated_hca_findings(const std::vector<ConnectionRow>& rows) {
  std::set<std::string> transports;
  for (const ConnectionRow& row : rows)
    if (row.way.find("emulated HCA") != std::string::npos)
      transports.insert(row.transport);
  Findings findings;
  for (const std::string& transport : transports)
    findings.push_back({"emulated-hca", Severity::info, transport,
                        transport + " went over the emulated HCA: the figures are those of "
                                    "processors, not of an mlx5 device",
                        "run it on a node with an mlx5 device, with MLX5_DEVICE=real"});
  return findings;
}

} // namespace shmemctl
