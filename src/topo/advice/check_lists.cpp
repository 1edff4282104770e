#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/env_lines.h"
#include "src/topo/advice/hca_names.h"
#include "src/topo/advice/wording.h"
#include "src/topo/mapping/ports.h"

namespace shmemctl {

namespace {

constexpr std::size_t shown_problems = 5;

/// Looks at one mapping's list; each member adds at most one finding per cause.
class ListCheck {
public:
  ListCheck(const Node& node, const Mapping& mapping, const Mapping& optimal)
      : node_(node), mapping_(mapping), optimal_(optimal), source_(list_source(mapping)) {}

  Findings run() {
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
    return std::move(findings_);
  }

private:
  const DeviceTable& table() const { return mapping_.table; }
  bool effective() const { return source_ && !table().list_name.empty(); }
  bool pins() const { return mapping_.request.nvshmem.enable_nic_pe_mapping; }

  void add(const char* id, Severity severity, const std::string& subject, std::string message,
           std::string fix) {
    findings_.push_back({id, severity, subject, std::move(message), std::move(fix)});
  }

  static std::string quoted(const std::string& text) { return "\"" + printable(text, 60) + "\""; }

  void check_ignored() {
    if (!table().pe_mapping_ignored)
      return;
    const NvshmemSettings& settings = mapping_.request.nvshmem;
    if (settings.hca_list)
      add("mapping-ignored", Severity::warning, "NVSHMEM_HCA_PE_MAPPING",
          fmt::format("NVSHMEM_HCA_LIST and NVSHMEM_HCA_PE_MAPPING are both set, and NVSHMEM "
                      "follows the first ({}) and ignores the second",
                      quoted(*settings.hca_list)),
          "unset NVSHMEM_HCA_LIST");
    else
      add("mapping-ignored", Severity::warning, "NVSHMEM_HCA_PE_MAPPING",
          fmt::format("NVSHMEM {} never reads NVSHMEM_HCA_PE_MAPPING", to_string(settings.version)),
          "set one NVSHMEM_HCA_LIST per local rank, or use another release: " +
              join(lines_per_rank("NVSHMEM_HCA_LIST", devices_per_rank(node_, optimal_)), "; "));
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
    add("mapping-malformed", severity, source_->variable,
        fmt::format("{} does not say what it seems to: {}", source_->variable, join(words, "; ")),
        mended_export(node_, mapping_));
  }

  bool is_malformed(const HcaListEntry& entry) const {
    const auto& problems = table().list.problems;
    return std::any_of(problems.begin(), problems.end(), [&entry](const HcaListProblem& problem) {
      return problem.column >= entry.column && problem.column <= entry.column + entry.text.size();
    });
  }

  /// A name that the user wrote for nothing: an error, unless it was to be left out anyway.
  Severity severity_of_unmatched() const {
    return table().list.exclude ? Severity::warning : Severity::error;
  }

  void check_unmatched() {
    std::vector<std::string> unknown, unknown_words, ports, port_words, plain, plain_words;
    for (const HcaListEntry& entry : table().unmatched) {
      if (is_malformed(entry))
        continue;
      const std::string name = printable(entry.name, 64);
      const std::optional<int> nic = find_hca(node_, entry.name);
      const std::optional<int> behind = find_hca_of_netdev(node_, entry.name);
      if (!nic && (behind || find_plain_nic(node_, entry.name))) {
        plain.push_back(name);
        plain_words.push_back(name +
                              (behind ? " is the network interface of " + nic_name(node_, *behind)
                                      : std::string(" is no RDMA device")));
      } else if (!nic) {
        const std::optional<int> near = nearest_hca(node_, entry.name);
        unknown.push_back(name);
        unknown_words.push_back(fmt::format(
            "{} (column {}){}", name, entry.column,
            near ? fmt::format(", did you mean {}?", nic_name(node_, *near)) : std::string()));
      } else if (const std::string why = passed_over(*nic); !why.empty()) {
        unknown.push_back(name);
        unknown_words.push_back(fmt::format("{} (column {}): {}", name, entry.column, why));
      } else if (!has_port(node_, *nic, entry.port)) {
        ports.push_back(fmt::format("{}/{}", name, entry.port));
        port_words.push_back(fmt::format("{} has no port {}", name, entry.port));
      }
    }
    const Severity severity = severity_of_unmatched();
    const std::string fix = mended_export(node_, mapping_);
    if (!unknown.empty())
      add("hca-unknown", severity, enumerate(unknown),
          fmt::format("{} names what is not among NVSHMEM's devices here: {}", source_->variable,
                      join(first_of(unknown_words), "; ")),
          fix);
    if (!ports.empty())
      add("port-unknown", severity, enumerate(ports),
          fmt::format("{} names a port that does not exist: {}", source_->variable,
                      enumerate(port_words)),
          fix);
    if (!plain.empty())
      add("nic-not-rdma", severity, enumerate(plain),
          fmt::format("{} takes RDMA devices: {}", source_->variable, enumerate(plain_words)), fix);
  }

  static std::vector<std::string> first_of(std::vector<std::string> words) {
    if (words.size() > shown_problems) {
      const std::size_t more = words.size() - shown_problems;
      words.resize(shown_problems);
      words.push_back(fmt::format("and {} more", more));
    }
    return words;
  }

  /// Why NVSHMEM skips the whole device before it looks at any list; "" if it does not.
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
      add("mapping-duplicate", Severity::warning, enumerate(names),
          fmt::format("{} names {} more than once: the last entry's count wins, and they are not "
                      "added up",
                      source_->variable, enumerate(names)),
          mended_export(node_, mapping_));
    else
      add("mapping-duplicate", Severity::info, enumerate(names),
          fmt::format("{} names {} more than once, to no effect", source_->variable,
                      enumerate(names)),
          mended_export(node_, mapping_));
  }

  void check_pinning() {
    if (effective() && source_->is_pe_mapping && !pins())
      add("mapping-not-pinned", Severity::warning, source_->variable,
          fmt::format("{} pins no PE while NVSHMEM_ENABLE_NIC_PE_MAPPING is off: it only filters "
                      "and replicates devices, and PEs choose among them by distance",
                      source_->variable),
          "export NVSHMEM_ENABLE_NIC_PE_MAPPING=1");
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
    const std::vector<std::string> ranks = devices_as_written(written);
    add("mapping-order", Severity::warning, source_->variable,
        fmt::format("the order in which {} names devices has no effect: NVSHMEM takes them in "
                    "enumeration order{}",
                    source_->variable, pe),
        "unset NVSHMEM_HCA_PE_MAPPING NVSHMEM_ENABLE_NIC_PE_MAPPING; " +
            join(lines_per_rank("NVSHMEM_HCA_LIST", ranks), "; "));
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
          "export NVSHMEM_HCA_LIST=" + shell_word(devices_of_all(node_, optimal_)));
    else if (effective() && source_->is_pe_mapping && rows > 0 && pes > 0 && rows != pes)
      add("mapping-count", Severity::warning, source_->variable,
          rows < pes
              ? fmt::format("the counts of {} add up to {} for {} PEs on this node: PE {} begins "
                            "again at the first device",
                            source_->variable, rows, pes, rows)
              : fmt::format("the counts of {} add up to {} for {} PEs on this node: what goes "
                            "beyond {} is not handed out in turn",
                            source_->variable, rows, pes, pes),
          mending_line(node_, mapping_.request, optimal_));
  }

  void check_empty_table() {
    if (!table().entries.empty() || mapping_.pes.empty() || usable_ports(node_).empty() ||
        mapping_.request.nvshmem.transport == NvshmemTransport::ucx || has_error(findings_))
      return;
    std::set<std::string> reasons;
    for (const TableExclusion& exclusion : table().exclusions)
      reasons.insert(printable(exclusion.reason));
    const std::vector<std::string> words(reasons.begin(), reasons.end());
    if (!words.empty())
      add("mapping-empty", Severity::error, "NVSHMEM",
          fmt::format("no PE gets a NIC although {} could carry traffic: {}",
                      devices_of_all(node_, optimal_), enumerate(words, shown_problems)),
          fix_of_empty_table());
  }

  std::string fix_of_empty_table() const {
    if (source_)
      return "unset " + source_->variable;
    if (mapping_.request.nvshmem.hca_prefix)
      return "unset NVSHMEM_HCA_PREFIX";
    const std::string prefix = common_prefix(node_, optimal_);
    return prefix.empty() ? "use the IBRC transport: unset NVSHMEM_IB_ENABLE_IBGDA"
                          : "export NVSHMEM_HCA_PREFIX=" + shell_word(prefix);
  }

  const Node& node_;
  const Mapping& mapping_;
  const Mapping& optimal_;
  std::optional<ListSource> source_;
  Findings findings_;
};

} // namespace

Findings check_lists(const Node& node, const Mapping& mapping, const Mapping& optimal) {
  if (mapping.request.policy != Policy::nvshmem)
    return {};
  return ListCheck(node, mapping, optimal).run();
}

} // namespace shmemctl
