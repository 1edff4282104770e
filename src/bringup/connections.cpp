#include "src/bringup/connections.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "reports/text.h"
#include "src/base/error.h"
#include "src/base/json_values.h"
#include "src/bringup/reach_map.h"

namespace shmemctl {

using nlohmann::json;

std::string connections_text(const std::vector<TransportEntry>& transports, int n_pes) {
  json rows = json::array();
  for (const TransportEntry& reachable : transports)
    for (int pe = 0; pe < n_pes; ++pe)
      if (reachable.reach[static_cast<std::size_t>(pe)].capabilities != 0)
        if (const std::string way = reachable.transport->connection(pe); !way.empty())
          rows.push_back({reachable.transport->name(), pe, way});
  return json_line(rows);
}

std::vector<ConnectionRow> merge_connections(const std::vector<std::string>& texts) {
  std::vector<ConnectionRow> rows;
  const int n_pes = static_cast<int>(texts.size());
  for (int pe = 0; pe < n_pes; ++pe) {
    try {
      for (const json& row : from_json_line(texts[static_cast<std::size_t>(pe)])) {
        rows.push_back({row.at(0), pe, require_whole_number<int>(row.at(1)), row.at(2)});
        const ConnectionRow& added = rows.back();
        if (added.target < 0 || added.target >= n_pes || added.transport.empty() ||
            added.way.empty())
          throw std::out_of_range("a connection");
      }
    } catch (const std::exception&) { // of the JSON library, or the above
      throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "read its connections",
                  "malformed message", "run the same version of shmemctl on all hosts");
    }
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
