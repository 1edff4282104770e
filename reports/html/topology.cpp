// Nodes as pictures, and their tables.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "reports/html/blocks.h"
#include "reports/html/sections.h"
#include "reports/html/topology_picture.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/json_line.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// Pictures of one page: of more nodes than these, the tables tell.
constexpr std::size_t most_pictures = 16;

json mapping_table(const json& mapping) {
  TableBlock table("NICs of each PE", {{"PE", ColumnKind::number},
                                       {"GPU", ColumnKind::number},
                                       {"NIC", ColumnKind::code},
                                       {"port", ColumnKind::number},
                                       {"distance"},
                                       {"carries traffic"},
                                       {"chosen by"},
                                       {"reason"}});
  for (const json& pe : view::list(mapping, "pes")) {
    const json& nics = view::list(pe, "nics");
    const double used = view::number(pe, "used").value_or(static_cast<double>(nics.size()));
    for (std::size_t i = 0; i < nics.size(); ++i)
      table.add({cell(view::member(pe, "pe")), cell(view::member(pe, "gpu")),
                 cell(view::member(nics[i], "device")), cell(view::member(nics[i], "port")),
                 cell(view::member(nics[i], "distance")),
                 cell(std::string(static_cast<double>(i) < used ? "yes" : "no")),
                 cell(view::member(pe, "chosen_by")), cell(view::member(pe, "reason"))});
    if (nics.empty())
      table.add({cell(view::member(pe, "pe")), cell(view::member(pe, "gpu")),
                 cell(std::string("none")), nullptr, nullptr, nullptr,
                 cell(view::member(pe, "chosen_by")), cell(view::member(pe, "reason"))});
  }
  table.fold();
  return table.empty() ? json() : table.block();
}

json distance_table(const json& topology) {
  const json& distances = view::member(topology, "distances");
  const json& labels = view::list(distances, "labels");
  constexpr std::size_t most_labels = 160;
  if (labels.empty() || labels.size() > most_labels)
    return nullptr;
  std::vector<PageColumn> columns{{"from"}};
  for (const json& label : labels)
    columns.push_back({view::scalar(label).value_or("?")});
  TableBlock table("Distances", columns);
  const json& matrix = view::list(distances, "matrix");
  for (std::size_t i = 0; i < labels.size() && i < matrix.size(); ++i) {
    std::vector<json> row{cell(labels[i])};
    if (matrix[i].is_array())
      for (const json& word : matrix[i])
        row.push_back(word.is_null() ? cell(std::string("?")) : cell(word));
    table.add(std::move(row));
  }
  table.fold();
  return table.block();
}

std::string mapping_sentence(const json& mapping) {
  std::string text = "NICs by policy " + view::text(mapping, "policy", "?");
  if (const std::string version = view::text(mapping, "version"); !version.empty())
    text += " " + version;
  text += ", world " + view::text(mapping, "world", "?");
  if (const auto factor = view::number(mapping, "load_factor"); factor && *factor > 0)
    text += fmt::format(": the busiest NIC carries {:.2f} times the even share", *factor);
  return text + ".";
}

/// Nodes that are alike, and the report that one of them is drawn by.
struct DrawnNodes {
  const Shown* one = nullptr;
  std::set<std::string> hot, faulty; ///< names of NICs
  std::vector<std::string> hosts;
};

/// In order of appearance. What counters found hot on a host may stand in another report than its
/// topology; what a mapping makes hot is that of its own report.
std::vector<DrawnNodes> nodes_of(const std::vector<Shown>& shown) {
  std::map<std::string, std::set<std::string>> measured, faulty_of;
  for (const Shown& one : shown) {
    for (const auto& [host, nic] : measured_hot_nics(one.report()))
      measured[host].insert(nic);
    for (const auto& [host, nic] : faulty_nics(one.report()))
      faulty_of[host].insert(nic);
  }
  std::map<std::string, std::size_t> first;
  std::vector<DrawnNodes> nodes;
  for (const Shown& one : shown) {
    const Report& report = one.report();
    if (!report.topology.is_object())
      continue;
    const std::string host = host_of(report);
    std::set<std::string> hot = nics_hot_by_mapping(report);
    hot.insert(measured[host].begin(), measured[host].end());
    const std::set<std::string>& faulty = faulty_of[host];
    const json alike = {view::member(report.topology, "distances"), report.mapping, hot, faulty};
    const auto [found, is_new] = first.emplace(json_line(alike), nodes.size());
    if (is_new)
      nodes.push_back({&one, std::move(hot), faulty, {}});
    std::vector<std::string>& hosts = nodes[found->second].hosts;
    if (!host.empty() && std::find(hosts.begin(), hosts.end(), host) == hosts.end())
      hosts.push_back(host);
  }
  return nodes;
}

json picture_block(const DrawnNodes& node) {
  const Report& report = node.one->report();
  const auto picture = topology_picture(report.topology, report.mapping, node.hot, node.faulty);
  if (!picture)
    return nullptr;
  json block = picture_json(*picture);
  block["type"] = "topology";
  block["title"] = safe_text(labelled(join(node.hosts, ", "), "GPUs and NICs"));
  return block;
}

} // namespace

json topology_section(const std::vector<Shown>& shown) {
  const std::vector<DrawnNodes> nodes = nodes_of(shown);
  json blocks = json::array();
  for (std::size_t i = 0; i < nodes.size() && i < most_pictures; ++i) {
    const Report& report = nodes[i].one->report();
    if (report.mapping.is_object())
      blocks.push_back(note_block(mapping_sentence(report.mapping)));
    for (json block :
         {picture_block(nodes[i]), mapping_table(report.mapping), distance_table(report.topology)})
      if (!block.is_null())
        blocks.push_back(std::move(block));
  }
  if (nodes.size() > most_pictures)
    blocks.push_back(note_block(fmt::format("{} more nodes differ from these and are left out.",
                                            nodes.size() - most_pictures)));
  return section("topology", "Topology", std::move(blocks));
}

} // namespace shmemctl::html
