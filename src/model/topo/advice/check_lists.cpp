// Findings about HCA lists and mappings that name devices.
#include "src/model/topo/advice/check_lists.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/model/topo/advice/checks.h"
#include "src/model/topo/advice/env_fix.h"
#include "src/model/topo/advice/wording.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl {

namespace {

constexpr std::size_t shown_problems = 5;

/// Checks one mapping's list; each member function adds at most one finding per cause.
class ListCheck {
public:
  ListCheck(const Node& node, const Mapping& mapping, const Mapping& optimal)
      : node_(node), mapping_(mapping), optimal_(optimal), source_(list_source(mapping)) {}

  Diagnoses run() {
    check_release();
    check_remote_transport();
    check_ignored();
    if (source_) {
      check_malformed();
      check_unmatched();
      check_duplicates();
      check_pinning();
      check_order();
    }
    check_count();
    check_empty_table();
    return std::move(diagnoses_);
  }

private:
  const NvshmemSettings& settings() const { return mapping_.request.nvshmem; }
  NvshmemTransport transport() const {
    return settings_in(mapping_.request.world, settings()).transport;
  }
  const DeviceTable& table() const { return mapping_.table; }
  bool effective() const { return source_ && !table().list_name.empty(); }
  bool pins() const { return mapping_.request.nvshmem.enable_nic_pe_mapping; }

  /// @param otherwise the fix if no change of the environment helps
  void add(const char* id, Severity severity, const std::string& subject, std::string message,
           std::string otherwise, std::vector<EnvChange> remedies = {}, bool by_mapping = false) {
    diagnoses_.push_back({{id, severity, subject, std::move(message), std::move(otherwise)},
                          std::move(remedies),
                          by_mapping});
  }
  /// About an entry of the list: suggests the corrected list, or settings without it.
  void add_about_list(const char* id, Severity severity, const std::string& subject,
                      std::string message, std::vector<EnvChange> remedies = {}) {
    remedies.insert(remedies.begin(), corrected_list_change(node_, mapping_));
    add(id, severity, subject, std::move(message),
        "write the names as topo prints them: DEVICE[:PORT], with commas between them",
        std::move(remedies), true);
  }

  bool any_error() const {
    return std::any_of(diagnoses_.begin(), diagnoses_.end(), [](const Diagnosis& diagnosis) {
      return diagnosis.finding.severity == Severity::error;
    });
  }

  void check_release() {
    if (!is_newer_than_known(settings().version))
      return;
    const std::string newest = to_string(representative_versions().back());
    const std::string release = "NVSHMEM " + to_string(settings().version);
    const std::string& source = settings().version_source;
    add("nvshmem-version-unknown", Severity::warning, release,
        fmt::format("{}{} is newer than any release whose rules are known: the result is that of "
                    "{}",
                    release, source.empty() ? "" : " (" + printable(source) + ")", newest),
        "use a known release, such as --nvshmem-version " + newest);
  }

  void check_remote_transport() {
    if (settings().libfabric_assumed && transport() == NvshmemTransport::libfabric)
      add("mapping-empty", Severity::info, "NVSHMEM_REMOTE_TRANSPORT",
          "no transport is set, and ibrc, which NVSHMEM then takes, has no device on this node: "
          "the mapping is that of libfabric",
          "in jobs of NVSHMEM: export NVSHMEM_REMOTE_TRANSPORT=libfabric");
    if (settings().unknown_transport.empty())
      return;
    const Finding unknown = unknown_remote_transport(settings().unknown_transport,
                                                     transport() == NvshmemTransport::ibgda);
    add("remote-transport-unknown", unknown.severity, unknown.subject, unknown.message,
        "name a transport that NVSHMEM knows; IBGDA takes mlx5 devices only",
        transport_changes(node_, mapping_.request, optimal_), true);
  }

  static std::string quoted(const std::string& text) { return "\"" + printable(text, 60) + "\""; }

  void check_ignored() {
    if (!table().pe_mapping_ignored)
      return;
    const EnvChange without_pe_mapping = EnvChange().unset("NVSHMEM_HCA_PE_MAPPING");
    if (settings().hca_list)
      add("mapping-ignored", Severity::warning, "NVSHMEM_HCA_PE_MAPPING",
          fmt::format("NVSHMEM_HCA_LIST and NVSHMEM_HCA_PE_MAPPING are both set, and NVSHMEM "
                      "follows the first ({}) and ignores the second",
                      quoted(*settings().hca_list)),
          "keep one of the two lists", {EnvChange().unset("NVSHMEM_HCA_LIST"), without_pe_mapping},
          true);
    else
      add("mapping-ignored", Severity::warning, "NVSHMEM_HCA_PE_MAPPING",
          fmt::format("NVSHMEM {} never reads NVSHMEM_HCA_PE_MAPPING",
                      to_string(settings().version)),
          "use another release of NVSHMEM", {without_pe_mapping}, true);
  }

  const HcaListEntry* unmatched_at(std::size_t column) const {
    for (const HcaListEntry& entry : table().unmatched)
      if (column >= entry.column && column <= entry.column + entry.text.size())
        return &entry;
    return nullptr;
  }

  void check_malformed() {
    const std::vector<HcaListProblem>& problems = table().list.problems;
    if (problems.empty())
      return;
    Severity severity = Severity::info;
    std::vector<std::string> words;
    for (const HcaListProblem& problem : problems) {
      const bool loses_a_device = !table().list.exclude && unmatched_at(problem.column) != nullptr;
      severity = std::max(severity, loses_a_device         ? Severity::error
                                    : problem.text.empty() ? Severity::info
                                                           : Severity::warning);
      const std::string where = fmt::format("column {}", problem.column);
      words.push_back(problem.text.empty() ? fmt::format("{}: {}", where, problem.problem)
                                           : fmt::format("{}, {}: {}", where, quoted(problem.text),
                                                         problem.problem));
    }
    if (words.size() > shown_problems) {
      const std::size_t more = words.size() - shown_problems;
      words.resize(shown_problems);
      words.push_back(fmt::format("and {} more", more));
    }
    add_about_list("mapping-malformed", severity, source_->variable,
                   fmt::format("{} has syntax that NVSHMEM ignores or misreads: {}",
                               source_->variable, join(words, "; ")));
  }

  bool is_malformed(const HcaListEntry& entry) const {
    const auto& problems = table().list.problems;
    return std::any_of(problems.begin(), problems.end(), [&entry](const HcaListProblem& problem) {
      return problem.column >= entry.column && problem.column <= entry.column + entry.text.size();
    });
  }

  /// A name that matches nothing is an error, unless the list is one of devices to exclude.
  Severity severity_of_unmatched() const {
    return table().list.exclude ? Severity::warning : Severity::error;
  }

  void check_unmatched() {
    std::vector<std::string> unknown, unknown_entries, ports, port_entries, plain, plain_entries;
    for (const HcaListEntry& entry : table().unmatched) {
      if (is_malformed(entry))
        continue;
      const std::string name = printable(entry.name, 64);
      const std::optional<int> nic = find_hca(node_, entry.name);
      const std::optional<int> behind = find_hca_of_netdev(node_, entry.name);
      if (!nic && (behind || find_plain_nic(node_, entry.name))) {
        plain.push_back(name);
        plain_entries.push_back(name +
                                (behind ? " is the network interface of " + nic_name(node_, *behind)
                                        : std::string(" is no RDMA device")));
      } else if (!nic) {
        const std::optional<int> near = nearest_hca(node_, entry.name);
        unknown.push_back(name);
        unknown_entries.push_back(fmt::format(
            "{} (column {}){}", name, entry.column,
            near ? fmt::format(", did you mean {}?", nic_name(node_, *near)) : std::string()));
      } else if (const std::string why = passed_over(*nic); !why.empty()) {
        unknown.push_back(name);
        unknown_entries.push_back(fmt::format("{} (column {}): {}", name, entry.column, why));
      } else if (!has_port(node_, *nic, entry.port)) {
        ports.push_back(fmt::format("{}/{}", name, entry.port));
        port_entries.push_back(fmt::format("{} has no port {}", name, entry.port));
      }
    }
    const Severity severity = severity_of_unmatched();
    if (!unknown.empty())
      add_about_list("hca-unknown", severity, enumerate(unknown),
                     fmt::format("{} names devices that NVSHMEM does not have here: {}",
                                 source_->variable, join(first_of(unknown_entries), "; ")),
                     transport_changes(node_, mapping_.request, optimal_));
    if (!ports.empty())
      add_about_list("port-unknown", severity, enumerate(ports),
                     fmt::format("{} names a port that does not exist: {}", source_->variable,
                                 enumerate(port_entries)));
    if (!plain.empty())
      add_about_list(
          "nic-not-rdma", severity, enumerate(plain),
          fmt::format("{} takes RDMA devices: {}", source_->variable, enumerate(plain_entries)));
  }

  static std::vector<std::string> first_of(std::vector<std::string> words) {
    if (words.size() > shown_problems) {
      const std::size_t more = words.size() - shown_problems;
      words.resize(shown_problems);
      words.push_back(fmt::format("and {} more", more));
    }
    return words;
  }

  /// Why NVSHMEM skips the whole device before it applies any list; "" if it does not.
  std::string passed_over(int nic) const {
    for (const TableExclusion& exclusion : table().exclusions)
      if (exclusion.port == 0 &&
          mapping_.table_nics.at(static_cast<std::size_t>(exclusion.device)) == nic)
        return printable(exclusion.reason);
    return "";
  }

  void check_duplicates() {
    const std::vector<HcaListEntry>& entries = table().list.entries;
    std::set<std::string> twice;
    for (std::size_t i = 0; i < entries.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const bool same_port =
            entries[i].port == entries[j].port || entries[i].port == -1 || entries[j].port == -1;
        if (entries[i].name != entries[j].name || !same_port || !find_hca(node_, entries[i].name))
          continue;
        twice.insert(printable(entries[i].name, 64));
      }
    if (twice.empty())
      return;
    const std::vector<std::string> names(twice.begin(), twice.end());
    if (source_->is_pe_mapping)
      add_about_list("mapping-duplicate", Severity::warning, enumerate(names),
                     fmt::format("{} names {} more than once: the count of the last entry is used, "
                                 "counts are not added",
                                 source_->variable, enumerate(names)));
    else
      add_about_list("mapping-duplicate", Severity::info, enumerate(names),
                     fmt::format("{} names {} more than once, which has no effect",
                                 source_->variable, enumerate(names)));
  }

  void check_pinning() {
    if (effective() && source_->is_pe_mapping && !pins())
      add("mapping-not-pinned", Severity::warning, source_->variable,
          fmt::format("{} pins no PE while NVSHMEM_ENABLE_NIC_PE_MAPPING is off: it only filters "
                      "and replicates devices, and PEs choose among them by distance",
                      source_->variable),
          "remove the list, or pin PEs with NVSHMEM_ENABLE_NIC_PE_MAPPING",
          {EnvChange().set("NVSHMEM_ENABLE_NIC_PE_MAPPING", "1"),
           EnvChange().unset("NVSHMEM_HCA_PE_MAPPING")},
          true);
  }

  void check_order() {
    if (!effective() || !pins() || (table().list.exclude && !source_->is_pe_mapping))
      return;
    const std::vector<NicUse> written = rows_as_written(node_, mapping_);
    auto not_after = [](const NicUse& left, const NicUse& right) {
      return std::pair(left.nic, left.port) < std::pair(right.nic, right.port);
    };
    if (std::is_sorted(written.begin(), written.end(), not_after))
      return;
    const std::string pe = first_surprise(written);
    EnvChange as_written = EnvChange().unset("NVSHMEM_ENABLE_NIC_PE_MAPPING");
    if (settings().hca_pe_mapping)
      as_written.unset("NVSHMEM_HCA_PE_MAPPING");
    as_written.set_per_rank("NVSHMEM_HCA_LIST", devices_as_written(written));
    add("mapping-order", Severity::warning, source_->variable,
        fmt::format("the order in which {} names devices has no effect: NVSHMEM uses "
                    "enumeration order{}",
                    source_->variable, pe),
        "write the devices in the order in which topo lists them",
        {as_written, corrected_list_change(node_, mapping_)}, true);
  }

  /// ", so that PE 0 gets mlx5_0/1 and not mlx5_3/1"
  std::string first_surprise(const std::vector<NicUse>& written) const {
    for (const PeMapping& pe : mapping_.pes) {
      const NicUse& meant = written[static_cast<std::size_t>(pe.pe) % written.size()];
      if (!pe.nics.empty() && !(pe.nics[0] == meant))
        return fmt::format(", so that PE {} gets {} and not {}", pe.pe,
                           port_name(node_, pe.nics[0].nic, pe.nics[0].port),
                           port_name(node_, meant.nic, meant.port));
    }
    return "";
  }

  std::vector<std::string> devices_as_written(const std::vector<NicUse>& written) const {
    std::vector<std::string> ranks;
    for (std::size_t pe = 0; pe < std::max<std::size_t>(1, mapping_.pes.size()); ++pe) {
      const NicUse& use = written[pe % written.size()];
      ranks.push_back(
          fmt::format("{}:{}", node_.nics[static_cast<std::size_t>(use.nic)].name, use.port));
    }
    return ranks;
  }

  void check_count() {
    const std::size_t rows = table().entries.size();
    const std::size_t pes = mapping_.pes.size();
    if (table().overruns)
      add("mapping-count", Severity::error, source_ ? source_->variable : "NVSHMEM_HCA_LIST",
          fmt::format("{} rows of devices: NVSHMEM's arrays hold 32 and it writes past their end",
                      rows),
          "name at most 32 ports",
          {EnvChange()
               .unset("NVSHMEM_HCA_PE_MAPPING")
               .set("NVSHMEM_HCA_LIST", devices_of_all(node_, optimal_))},
          true);
    else if (effective() && source_->is_pe_mapping && pins() && rows > 0 && pes > 0 &&
             rows != pes && !repeats_well(rows, pes))
      add("mapping-count", Severity::warning, source_->variable,
          rows < pes
              ? fmt::format("the counts of {} add up to {} for {} PEs on this node: PE {} begins "
                            "again at the first device",
                            source_->variable, rows, pes, rows)
              : fmt::format("the counts of {} add up to {} for {} PEs on this node: the part "
                            "beyond {} is not used",
                            source_->variable, rows, pes, pes),
          "make the counts add up to the PEs of a node", {}, true);
  }

  /// Whether pinned PEs begin again at the first device, and no other mapping would be better.
  bool repeats_well(std::size_t rows, std::size_t pes) const {
    return pes % rows == 0 && at_least_as_good(score(node_, mapping_), score(node_, optimal_));
  }

  void check_empty_table() {
    if (!table().entries.empty() || mapping_.pes.empty() || usable_ports(node_).empty() ||
        transport() == NvshmemTransport::ucx || any_error())
      return;
    std::set<std::string> reasons;
    for (const TableExclusion& exclusion : table().exclusions)
      reasons.insert(printable(exclusion.reason));
    const std::vector<std::string> words(reasons.begin(), reasons.end());
    if (words.empty())
      return;
    std::vector<EnvChange> remedies;
    if (source_)
      remedies.push_back(EnvChange().unset(source_->variable));
    for (const EnvChange& change : transport_changes(node_, mapping_.request, optimal_))
      if (!change.empty())
        remedies.push_back(change);
    add("mapping-empty", Severity::error, "NVSHMEM",
        fmt::format("no PE gets a NIC although {} could carry traffic: {}",
                    devices_of_all(node_, optimal_), enumerate(words, shown_problems)),
        without_devices(), std::move(remedies), true);
  }

  /// The fix if there is no setting with which the transport has a device.
  std::string without_devices() const {
    const bool by_name =
        transport() == NvshmemTransport::ibgda || transport() == NvshmemTransport::ibdevx;
    if (by_name && !has_hca_prefix(settings().version))
      return "use NVSHMEM 3.4.5 or newer, which takes devices of other names by "
             "NVSHMEM_HCA_PREFIX; or name the devices mlx5_*";
    return by_name ? "run on a node with mlx5 devices, or without IBGDA"
                   : "select a transport that has devices on this node";
  }

  const Node& node_;
  const Mapping& mapping_;
  const Mapping& optimal_;
  std::optional<ListSource> source_;
  Diagnoses diagnoses_;
};

/// Checks the settings of each rank; reports each finding once.
Diagnoses check_ranks(const Node& node, const Mapping& mapping, const Mapping& optimal) {
  Diagnoses all;
  for (const NvshmemSettings& settings : mapping.request.nvshmem_per_pe) {
    MappingRequest request = mapping.request;
    request.nvshmem = settings;
    request.nvshmem_per_pe.clear();
    for (Diagnosis& diagnosis : ListCheck(node, map_nvshmem(node, request), optimal).run())
      if (std::none_of(all.begin(), all.end(), [&diagnosis](const Diagnosis& known) {
            return known.finding.id == diagnosis.finding.id &&
                   known.finding.subject == diagnosis.finding.subject;
          }))
        all.push_back(std::move(diagnosis));
  }
  return all;
}

} // namespace

Diagnoses check_lists(const Node& node, const Mapping& mapping, const Mapping& optimal) {
  if (mapping.request.policy != Policy::nvshmem)
    return {};
  return mapping.request.nvshmem_per_pe.empty() ? ListCheck(node, mapping, optimal).run()
                                                : check_ranks(node, mapping, optimal);
}

namespace {

/// More rows than this add no information about an order.
constexpr std::size_t max_written_rows = 256;
constexpr int max_sane_count = 64;

std::optional<int> find_nic(const Node& node, const std::string& name, bool rdma) {
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const bool has_rdma = node.nics[i].rdma.value.value_or(true);
    if (node.nics[i].name == name && has_rdma == rdma)
      return static_cast<int>(i);
  }
  return std::nullopt;
}

std::vector<int> ports_of(const Node& node, int nic) {
  std::vector<int> ports;
  for (const NicPort& port : node.nics[static_cast<std::size_t>(nic)].ports)
    ports.push_back(port.number);
  return ports.empty() ? std::vector<int>{1} : ports;
}

/// -1 stands for every port. If there are several ports, none is more likely than the others.
std::optional<int> meant_port(const Node& node, int nic, int written) {
  if (written <= 0)
    return -1;
  const std::vector<int> ports = ports_of(node, nic);
  if (std::find(ports.begin(), ports.end(), written) != ports.end())
    return written;
  return ports.size() == 1 ? std::optional(ports[0]) : std::nullopt;
}

std::string_view last_number(std::string_view name) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  while (!name.empty() && !is_digit(name.back()))
    name.remove_suffix(1);
  std::size_t begin = name.size();
  while (begin > 0 && is_digit(name[begin - 1]))
    --begin;
  return name.substr(begin);
}

} // namespace

std::optional<ListSource> list_source(const Mapping& mapping) {
  const NvshmemSettings& settings = mapping.request.nvshmem;
  const bool effective = !mapping.table.list_name.empty();
  const bool pe_mapping = effective ? mapping.table.list_name == "HCA_PE_MAPPING"
                                    : settings.hca_pe_mapping && !mapping.table.pe_mapping_ignored;
  const std::optional<std::string>& text = pe_mapping ? settings.hca_pe_mapping : settings.hca_list;
  if (!text)
    return std::nullopt;
  return ListSource{pe_mapping ? "NVSHMEM_HCA_PE_MAPPING" : "NVSHMEM_HCA_LIST", *text, pe_mapping};
}

std::optional<int> find_hca(const Node& node, const std::string& name) {
  return find_nic(node, name, true);
}

std::optional<int> find_plain_nic(const Node& node, const std::string& name) {
  return find_nic(node, name, false);
}

std::optional<int> find_hca_of_netdev(const Node& node, const std::string& name) {
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    for (const NicPort& port : node.nics[i].ports)
      if (port.netdev && *port.netdev == name && node.nics[i].rdma.value.value_or(true))
        return static_cast<int>(i);
  return std::nullopt;
}

std::optional<int> nearest_hca(const Node& node, const std::string& name) {
  std::string_view word = trim(name);
  while (starts_with(word, "^"))
    word.remove_prefix(1);
  const std::string bare(word);
  if (const std::optional<int> exact = find_hca(node, bare))
    return exact;
  if (const std::optional<int> behind = find_hca_of_netdev(node, bare))
    return behind;
  std::vector<std::string> names;
  for (const Nic& nic : node.nics)
    if (nic.rdma.value.value_or(true))
      names.push_back(nic.name);
  const std::optional<std::string> near = nearest_spelling(bare, names);
  return near ? find_hca(node, *near) : std::nullopt;
}

std::optional<int> meant_hca(const Node& node, const std::string& name) {
  const std::optional<int> near = nearest_hca(node, name);
  if (!near || find_hca_of_netdev(node, name) == near)
    return near;
  const std::string& found = node.nics[static_cast<std::size_t>(*near)].name;
  return last_number(found) == last_number(name) ? near : std::nullopt;
}

bool has_port(const Node& node, int nic, int port) {
  const std::vector<int> ports = ports_of(node, nic);
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

std::string corrected_list(const Node& node, const Mapping& mapping) {
  const std::optional<ListSource> source = list_source(mapping);
  if (!source)
    return "";
  std::map<std::pair<int, int>, int> counts; // NIC and port (-1: every port) -> count
  for (const HcaListEntry& entry : mapping.table.list.entries) {
    const std::optional<int> nic = meant_hca(node, entry.name);
    const std::optional<int> port = nic ? meant_port(node, *nic, entry.port) : std::nullopt;
    if (!port)
      continue;
    counts[{*nic, *port}] += std::clamp(entry.count, 1, max_sane_count);
  }
  std::vector<std::string> entries;
  for (const auto& [key, count] : counts) {
    std::string entry = node.nics[static_cast<std::size_t>(key.first)].name;
    const bool needs_port = key.second > 0 || (source->is_pe_mapping && count > 1);
    if (needs_port)
      entry += ":" + std::to_string(key.second > 0 ? key.second : ports_of(node, key.first)[0]);
    if (source->is_pe_mapping && needs_port)
      entry += ":" + std::to_string(count);
    entries.push_back(std::move(entry));
  }
  const bool exclude = mapping.table.list.exclude && !source->is_pe_mapping;
  return entries.empty() ? "" : (exclude ? "^" : "") + join(entries, ",");
}

EnvChange corrected_list_change(const Node& node, const Mapping& mapping) {
  const std::optional<ListSource> source = list_source(mapping);
  const std::string variable = source ? source->variable : "NVSHMEM_HCA_LIST";
  const std::string list = corrected_list(node, mapping);
  return list.empty() ? EnvChange().unset(variable) : EnvChange().set(variable, list);
}

std::vector<NicUse> rows_as_written(const Node& node, const Mapping& mapping) {
  std::vector<NicUse> rows;
  for (const HcaListEntry& entry : mapping.table.list.entries) {
    const std::optional<int> nic = find_hca(node, entry.name);
    if (!nic)
      continue;
    for (int port : ports_of(node, *nic)) {
      const bool in_table = std::any_of(
          mapping.table.entries.begin(), mapping.table.entries.end(), [&](const TableEntry& row) {
            return mapping.table_nics[static_cast<std::size_t>(row.device)] == *nic &&
                   row.port == port;
          });
      if (!in_table || (entry.port != -1 && entry.port != port))
        continue;
      const int count = std::clamp(entry.count, 1, max_sane_count);
      for (int k = 0; k < count && rows.size() < max_written_rows; ++k)
        rows.push_back({*nic, port, {}});
    }
  }
  return rows;
}

} // namespace shmemctl
