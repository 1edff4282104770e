// Environment settings that fix a finding: candidate changes, the export lines, and the search for
// the smallest that helps.
#include "src/model/topo/advice/env_fix.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl {

namespace {

/// NVSHMEM's settings with one variable set, or unset.
void apply(const std::string& variable, const std::optional<std::string>& value,
           NvshmemSettings& settings) {
  const bool on = value && *value == "1";
  if (variable == "NVSHMEM_HCA_LIST")
    settings.hca_list = value;
  else if (variable == "NVSHMEM_HCA_PE_MAPPING")
    settings.hca_pe_mapping = value;
  else if (variable == "NVSHMEM_HCA_PREFIX")
    settings.hca_prefix = value;
  else if (variable == "NVSHMEM_ENABLE_NIC_PE_MAPPING")
    settings.enable_nic_pe_mapping = on;
  else if (variable == "NVSHMEM_IBGDA_ENABLE_MULTI_PORT")
    settings.ibgda_multi_port = on;
  else if (variable == "NVSHMEM_NETDEVS_POLICY")
    settings.netdevs_policy = value.value_or("AUTO");
  else if (variable == "NVSHMEM_IB_ENABLE_IBGDA")
    settings.transport = on ? NvshmemTransport::ibgda : settings.proxy_transport;
  else if (variable == "NVSHMEM_REMOTE_TRANSPORT") {
    const std::string word = value.value_or("ibrc");
    const auto known = parse_remote_transport(word);
    settings.proxy_transport = transport_of_name(known.value_or("none"));
    settings.unknown_transport = known ? "" : word;
    settings.libfabric_assumed = false;
    if (settings.transport != NvshmemTransport::ibgda)
      settings.transport = settings.proxy_transport;
  }
}

} // namespace

const EnvChange::Values* EnvChange::find(const std::string& variable) const {
  for (const auto& [name, values] : variables_)
    if (name == variable)
      return &values;
  return nullptr;
}

EnvChange& EnvChange::put(const std::string& variable, Values values) {
  for (auto& [name, known] : variables_)
    if (name == variable) {
      known = std::move(values);
      return *this;
    }
  variables_.emplace_back(variable, std::move(values));
  return *this;
}

EnvChange& EnvChange::set(const std::string& variable, const std::string& value) {
  return put(variable, std::vector<std::string>{value});
}

EnvChange& EnvChange::set_per_rank(const std::string& variable,
                                   const std::vector<std::string>& values) {
  const std::set<std::string> distinct(values.begin(), values.end());
  return distinct.size() == 1 ? set(variable, values[0]) : put(variable, values);
}

EnvChange& EnvChange::unset(const std::string& variable) {
  return put(variable, std::nullopt);
}

EnvChange& EnvChange::add(const EnvChange& other) {
  for (const auto& [variable, values] : other.variables_)
    put(variable, values);
  return *this;
}

bool EnvChange::contradicts(const EnvChange& other) const {
  return std::any_of(variables_.begin(), variables_.end(), [&other](const auto& variable) {
    const Values* theirs = other.find(variable.first);
    return theirs != nullptr && *theirs != variable.second;
  });
}

MappingRequest EnvChange::applied_to(MappingRequest request) const {
  const std::size_t pes = request.gpus.size();
  for (const auto& [variable, values] : variables_) {
    const bool per_rank = values && values->size() > 1;
    if (variable == "NCCL_IB_HCA") {
      request.nccl_ib_hca.clear();
      for (std::size_t pe = 0; values && pe < pes; ++pe)
        request.nccl_ib_hca.push_back(per_rank ? values->at(pe) : values->at(0));
      continue;
    }
    if (per_rank && request.nvshmem_per_pe.empty())
      request.nvshmem_per_pe.assign(pes, request.nvshmem);
    const auto value_of = [&values = values, per_rank](std::size_t pe) {
      return values ? std::optional(values->at(per_rank ? pe : 0)) : std::nullopt;
    };
    apply(variable, value_of(0), request.nvshmem);
    for (std::size_t pe = 0; pe < request.nvshmem_per_pe.size(); ++pe)
      apply(variable, value_of(pe), request.nvshmem_per_pe[pe]);
  }
  return request;
}

std::vector<std::string> EnvChange::lines() const {
  std::vector<std::string> unset, set, lines;
  for (const auto& [variable, values] : variables_)
    if (!values)
      unset.push_back(variable);
    else if (values->size() == 1)
      set.push_back(variable + "=" + shell_word(values->front()));
  if (!unset.empty())
    lines.push_back("unset " + join(unset, " "));
  if (!set.empty())
    lines.push_back("export " + join(set, " "));
  for (const auto& [variable, values] : variables_)
    if (values && values->size() > 1)
      for (std::string& line : lines_per_rank(variable, *values))
        lines.push_back(std::move(line));
  return lines;
}

std::string EnvChange::text() const {
  const bool per_rank = std::any_of(variables_.begin(), variables_.end(), [](const auto& variable) {
    return variable.second && variable.second->size() > 1;
  });
  return join(lines(), "; ") +
         (per_rank ? "  # for bash in each rank's own process, not where the job is started" : "");
}

namespace {

/// The bash index of the rank that runs the line. An empty index would be 0, and every rank would
/// silently take the first NIC: if none of the variables is set, bash reports an error and sets
/// nothing. torchrun's variable comes first, because the workers of one torchrun inherit the same
/// value of mpirun's or srun's variable. Slurm's variable is used only within a step: a batch
/// script has it too, with the value 0.
constexpr const char* local_rank = "${LOCAL_RANK:-${OMPI_COMM_WORLD_LOCAL_RANK:-"
                                   "${SLURM_STEP_ID:?run this in each rank}*0+$SLURM_LOCALID}}";

/// NVSHMEM's device arrays hold this many rows, and its list can safely hold one entry less.
constexpr std::size_t max_rows = 32;
constexpr std::size_t max_entries = 31;

std::string device_port(const Node& node, const NicUse& use) {
  return node.nics[static_cast<std::size_t>(use.nic)].name + ":" + std::to_string(use.port);
}

bool before(const NicUse& left, const NicUse& right) {
  return std::pair(left.nic, left.port) < std::pair(right.nic, right.port);
}

/// True if PE i has row i modulo `rows`, and the rows are in ascending order.
bool repeats_rising_rows(const std::vector<NicUse>& choice, std::size_t rows) {
  for (std::size_t pe = 0; pe < choice.size(); ++pe) {
    if (pe < rows && pe > 0 && before(choice[pe], choice[pe - 1]))
      return false;
    if (pe >= rows && !(choice[pe] == choice[pe - rows]))
      return false;
  }
  return true;
}

} // namespace

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::string_view("_.,:^=-").find(letter) != std::string_view::npos;
  });
  if (plain)
    return text;
  std::string quoted = "'";
  for (char letter : printable(text, 4096))
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::vector<std::string> devices_per_rank(const Node& node, const Mapping& mapping) {
  std::vector<std::string> values;
  for (const PeMapping& pe : mapping.pes) {
    std::vector<std::string> devices;
    for (const NicUse& use : pe.nics)
      devices.push_back(device_port(node, use));
    values.push_back(join(devices, ","));
  }
  return values;
}

std::string devices_of_all(const Node& node, const Mapping& mapping) {
  std::vector<NicUse> all;
  for (const PeMapping& pe : mapping.pes)
    all.insert(all.end(), pe.nics.begin(), pe.nics.end());
  std::sort(all.begin(), all.end(), before);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<std::string> devices;
  for (const NicUse& use : all)
    devices.push_back(device_port(node, use));
  return join(devices, ",");
}

std::optional<std::string> hca_pe_mapping_value(const Node& node, const Mapping& mapping) {
  std::vector<NicUse> choice;
  for (const PeMapping& pe : mapping.pes) {
    if (pe.nics.size() != 1)
      return std::nullopt;
    choice.push_back(pe.nics[0]);
  }
  std::size_t rows = std::min(choice.size(), max_rows);
  while (rows > 0 && !repeats_rising_rows(choice, rows))
    --rows;
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < rows;) {
    std::size_t end = i + 1;
    while (end < rows && choice[end] == choice[i])
      ++end;
    entries.push_back(device_port(node, choice[i]) + ":" + std::to_string(end - i));
    i = end;
  }
  if (entries.empty() || entries.size() > max_entries)
    return std::nullopt;
  return join(entries, ",");
}

std::vector<std::string> lines_per_rank(const std::string& variable,
                                        const std::vector<std::string>& values) {
  const std::set<std::string> distinct(values.begin(), values.end());
  if (distinct.size() == 1)
    return {"export " + variable + "=" + shell_word(values[0])};
  std::vector<std::string> words;
  for (const std::string& value : values)
    words.push_back(shell_word(value));
  const std::string array = "by_rank";
  return {array + "=(" + join(words, " ") + ")",
          "export " + variable + "=${" + array + "[" + local_rank + "]:?no NIC for this rank}"};
}

std::string common_prefix(const Node& node, const Mapping& mapping) {
  std::optional<std::string> common;
  for (const PeMapping& pe : mapping.pes)
    for (const NicUse& use : pe.nics) {
      const std::string& name = node.nics[static_cast<std::size_t>(use.nic)].name;
      if (!common) {
        common = name;
        continue;
      }
      const auto [differs, unused] =
          std::mismatch(common->begin(), common->end(), name.begin(), name.end());
      common->erase(differs, common->end());
    }
  std::string prefix = common.value_or("");
  while (!prefix.empty() && std::isdigit(static_cast<unsigned char>(prefix.back())) != 0)
    prefix.pop_back();
  return prefix;
}

namespace {

constexpr const char* hca_list = "NVSHMEM_HCA_LIST";
constexpr const char* hca_pe_mapping = "NVSHMEM_HCA_PE_MAPPING";
constexpr const char* hca_prefix = "NVSHMEM_HCA_PREFIX";
constexpr const char* enable_nic_pe_mapping = "NVSHMEM_ENABLE_NIC_PE_MAPPING";
constexpr const char* enable_ibgda = "NVSHMEM_IB_ENABLE_IBGDA";
constexpr const char* netdevs_policy = "NVSHMEM_NETDEVS_POLICY";
constexpr const char* remote_transport = "NVSHMEM_REMOTE_TRANSPORT";

template <class Predicate>
bool any_rank(const MappingRequest& request, Predicate predicate) {
  return predicate(request.nvshmem) ||
         std::any_of(request.nvshmem_per_pe.begin(), request.nvshmem_per_pe.end(), predicate);
}

void unset_list(const MappingRequest& request, EnvChange& change) {
  if (any_rank(request, [](const NvshmemSettings& each) { return each.hca_list.has_value(); }))
    change.unset(hca_list);
}

void unset_pe_mapping(const MappingRequest& request, EnvChange& change) {
  if (any_rank(request,
               [](const NvshmemSettings& each) { return each.hca_pe_mapping.has_value(); }))
    change.unset(hca_pe_mapping);
  if (any_rank(request, [](const NvshmemSettings& each) { return each.enable_nic_pe_mapping; }))
    change.unset(enable_nic_pe_mapping);
}

EnvChange joined(EnvChange first, const EnvChange& second) {
  return first.add(second);
}

/// Changes that select a transport that NVSHMEM knows; a single empty change if the request names
/// such a transport.
std::vector<EnvChange> remote_transport_changes(const MappingRequest& request) {
  const NvshmemSettings settings = settings_in(request.world, request.nvshmem);
  if (settings.unknown_transport.empty())
    return {{}};
  std::vector<EnvChange> changes;
  const std::string word = lower(trim(settings.unknown_transport));
  if (word == "ibgda" && settings.transport != NvshmemTransport::ibgda)
    changes.push_back(EnvChange().unset(remote_transport).set(enable_ibgda, "1"));
  if (const auto near = nearest_spelling(word, option_spec("REMOTE_TRANSPORT").choices);
      near && word != "ibgda")
    changes.push_back(EnvChange().set(remote_transport, *near));
  changes.push_back(EnvChange().unset(remote_transport));
  return changes;
}

/// Changes of HCA_PREFIX, for IBGDA and IBDEVX, which skip devices by their names.
std::vector<EnvChange> prefix_changes(const Node& node, const MappingRequest& request,
                                      const Mapping& optimal) {
  std::vector<EnvChange> changes = {{}};
  const NvshmemTransport transport = settings_in(request.world, request.nvshmem).transport;
  if (transport != NvshmemTransport::ibgda && transport != NvshmemTransport::ibdevx)
    return changes;
  if (request.nvshmem.hca_prefix)
    changes.push_back(EnvChange().unset(hca_prefix));
  const std::string common = common_prefix(node, optimal);
  if (has_hca_prefix(request.nvshmem.version) && !common.empty())
    changes.push_back(EnvChange().set(hca_prefix, common));
  return changes;
}

/// Lists and switches with which NVSHMEM could give the optimum.
std::vector<EnvChange> list_changes(const Node& node, const MappingRequest& request,
                                    const Mapping& optimal) {
  std::vector<EnvChange> changes;
  EnvChange without_pe_mapping;
  unset_pe_mapping(request, without_pe_mapping);
  changes.push_back(without_pe_mapping); // what the user excludes stays excluded
  EnvChange by_default = without_pe_mapping;
  unset_list(request, by_default);
  changes.push_back(by_default);

  MappingRequest unpinned = request;
  unpinned.nvshmem.hca_pe_mapping.reset();
  if (const auto filter = leaving_out(node, unpinned, other_nics(node)))
    changes.push_back(joined(without_pe_mapping, *filter));
  // Also used instead of a list that names devices to use.
  unpinned.nvshmem.hca_list.reset();
  unpinned.nvshmem_per_pe.clear();
  if (const auto filter = leaving_out(node, unpinned, other_nics(node)))
    changes.push_back(joined(without_pe_mapping, *filter));
  const std::vector<EnvChange> by_distance = changes;

  if (const auto value = hca_pe_mapping_value(node, optimal)) {
    EnvChange pinned;
    unset_list(request, pinned);
    changes.push_back(pinned.set(enable_nic_pe_mapping, "1").set(hca_pe_mapping, *value));
  }
  if (has_netdevs_policy(request.nvshmem.version))
    for (const EnvChange& devices : by_distance)
      changes.push_back(joined(devices, EnvChange().set(netdevs_policy, exclusive_netdevs_policy)));
  const std::vector<std::string> lists = devices_per_rank(node, optimal);
  if (!lists.empty() && std::none_of(lists.begin(), lists.end(),
                                     [](const std::string& list) { return list.empty(); }))
    changes.push_back(EnvChange(without_pe_mapping).set_per_rank(hca_list, lists));
  return changes;
}

} // namespace

std::vector<EnvChange> transport_changes(const Node& node, const MappingRequest& request,
                                         const Mapping& optimal) {
  std::vector<EnvChange> changes;
  for (const EnvChange& remote : remote_transport_changes(request))
    for (const EnvChange& prefix : prefix_changes(node, remote.applied_to(request), optimal))
      changes.push_back(joined(remote, prefix));
  // DeepEP enables IBGDA itself: no setting of the user disables it.
  if (request.nvshmem.transport == NvshmemTransport::ibgda && request.world == World::node) {
    const NvshmemTransport proxy = request.nvshmem.proxy_transport;
    const bool unknown = !request.nvshmem.unknown_transport.empty();
    EnvChange without = EnvChange().unset(enable_ibgda);
    if (!unknown)
      changes.push_back(without);
    if (unknown || proxy == NvshmemTransport::none || proxy == NvshmemTransport::ibdevx)
      changes.push_back(without.unset(remote_transport));
  }
  const bool other_is_possible = request.nvshmem.transport == NvshmemTransport::none ||
                                 request.nvshmem.transport == NvshmemTransport::ibdevx;
  if (other_is_possible && request.nvshmem.unknown_transport.empty())
    changes.push_back(EnvChange().unset(remote_transport));
  return changes;
}

std::vector<int> other_nics(const Node& node) {
  std::vector<int> others;
  for (const RatedPort& rated : port_roles(node))
    if (rated.role != PortRole::compute && (others.empty() || others.back() != rated.port.nic))
      others.push_back(rated.port.nic);
  return others;
}

std::optional<EnvChange> leaving_out(const Node& node, const MappingRequest& request,
                                     const std::vector<int>& nics) {
  const std::string listed = request.nvshmem.hca_list.value_or("^");
  const bool excludes = starts_with(listed, "^");
  if (nics.empty() || !excludes || request.nvshmem.hca_pe_mapping ||
      !request.nvshmem_per_pe.empty())
    return std::nullopt;
  std::vector<std::string> names;
  if (listed.size() > 1)
    names.push_back(listed.substr(1));
  for (const int nic : nics)
    names.push_back(node.nics[static_cast<std::size_t>(nic)].name);
  return EnvChange().set(hca_list, "^" + join(names, ","));
}

std::vector<EnvChange> mapping_plans(const Node& node, const MappingRequest& request,
                                     const Mapping& optimal) {
  if (request.policy == Policy::nccl) {
    std::vector<std::string> values = devices_per_rank(node, optimal);
    if (values.empty() || std::any_of(values.begin(), values.end(),
                                      [](const std::string& value) { return value.empty(); }))
      return {};
    for (std::string& value : values)
      value = "=" + value;
    return {EnvChange().set_per_rank("NCCL_IB_HCA", values)};
  }
  std::vector<EnvChange> plans;
  if (request.policy != Policy::nvshmem)
    return plans;
  const std::vector<EnvChange> lists = list_changes(node, request, optimal);
  for (const EnvChange& transport : transport_changes(node, request, optimal)) {
    if (!transport.empty())
      plans.push_back(transport);
    for (const EnvChange& list : lists)
      if (!list.empty())
        plans.push_back(joined(transport, list));
  }
  return plans;
}

namespace {

bool is_about_the_same(const Finding& left, const Finding& right) {
  return left.id == right.id && left.subject == right.subject;
}

bool matters(const Diagnosis& diagnosis) {
  return diagnosis.finding.severity >= Severity::warning;
}

class FixSearch {
public:
  FixSearch(const Node& node, const Mapping& mapping, const Mapping& optimal,
            const Diagnoses& before)
      : node_(node), request_(mapping.request), optimal_(optimal), before_(before) {
    after_.emplace("", before); // the mapping as it was given, whether by the user or not
  }

  Findings run() {
    EnvChange plan = own_remedies();
    if (leaves_something(plan))
      plan = best_plan(plan);
    EnvChange all = plan;
    const std::map<const Diagnosis*, EnvChange> extras = remedies_of_information(all);
    Findings findings;
    for (const Diagnosis& diagnosis : before_) {
      Finding finding = diagnosis.finding;
      const auto extra = extras.find(&diagnosis);
      if (extra != extras.end())
        finding.fix = extra->second.text();
      else if (diagnosis.fixable() && heals(diagnosis, all))
        finding.fix = (heals(diagnosis, plan) ? plan : all).text();
      findings.push_back(std::move(finding));
    }
    return findings;
  }

private:
  /// The model's findings for a job with this change.
  const Diagnoses& after(const EnvChange& change) {
    const std::string key = change.text();
    const auto known = after_.find(key);
    if (known != after_.end())
      return known->second;
    const MappingRequest request = change.applied_to(request_);
    const Mapping mapping = map_nics(node_, request);
    return after_.emplace(key, diagnose_mapping(node_, mapping, optimum_of(request))).first->second;
  }

  /// The optimum depends on the usable ports and on the number of ports per PE; a change affects it
  /// only through these.
  const Mapping& optimum_of(const MappingRequest& request) {
    const NvshmemSettings settings = settings_in(request.world, request.nvshmem);
    std::vector<std::pair<int, int>> left_out;
    for (const NicUse& use : ports_left_out(node_, request))
      left_out.emplace_back(use.nic, use.port);
    const bool several = settings.transport == NvshmemTransport::ibgda && settings.ibgda_multi_port;
    const auto key = std::pair(several, left_out);
    const auto known = optima_.find(key);
    if (known != optima_.end())
      return known->second;
    return optima_.emplace(key, map_nics(node_, optimal_request(request))).first->second;
  }

  /// An error or warning that remains as information (unavoidable sharing) counts as fixed.
  bool heals(const Diagnosis& diagnosis, const EnvChange& change) {
    const Diagnoses& left = after(change);
    return std::none_of(left.begin(), left.end(), [&](const Diagnosis& other) {
      return is_about_the_same(diagnosis.finding, other.finding) &&
             (matters(other) || !matters(diagnosis));
    });
  }

  bool breaks_nothing(const EnvChange& change) {
    const Diagnoses& left = after(change);
    return std::none_of(left.begin(), left.end(), [this](const Diagnosis& other) {
      return matters(other) &&
             std::none_of(before_.begin(), before_.end(), [&other](const Diagnosis& known) {
               return is_about_the_same(known.finding, other.finding) &&
                      known.finding.severity >= other.finding.severity;
             });
    });
  }

  bool leaves_something(const EnvChange& change) {
    return std::any_of(before_.begin(), before_.end(), [&](const Diagnosis& diagnosis) {
      return matters(diagnosis) && diagnosis.fixable() && !heals(diagnosis, change);
    });
  }

  /// The number of errors and the number of warnings that remain.
  std::pair<int, int> left_by(const EnvChange& change) {
    std::pair<int, int> count{0, 0};
    for (const Diagnosis& diagnosis : after(change)) {
      count.first += diagnosis.finding.severity == Severity::error ? 1 : 0;
      count.second += diagnosis.finding.severity == Severity::warning ? 1 : 0;
    }
    return count;
  }

  /// Combines the changes that the findings themselves suggest. A later change may replace a
  /// variable of an earlier one, as long as the earlier finding stays fixed.
  EnvChange own_remedies() {
    EnvChange plan;
    for (const Diagnosis& diagnosis : before_) {
      if (!matters(diagnosis) || heals(diagnosis, plan))
        continue;
      for (const EnvChange& remedy : diagnosis.remedies) {
        EnvChange next = plan;
        next.add(remedy);
        if (heals(diagnosis, next) && breaks_nothing(next) && left_by(next) < left_by(plan)) {
          plan = next;
          break;
        }
      }
    }
    return plan;
  }

  /// The first complete set of settings that fixes everything, else the one with the fewest
  /// remaining findings.
  EnvChange best_plan(EnvChange best) {
    for (const EnvChange& plan : mapping_plans(node_, request_, optimal_)) {
      if (left_by(plan) >= left_by(best) || !breaks_nothing(plan))
        continue;
      best = plan;
      if (!leaves_something(best))
        break;
    }
    return best;
  }

  /// In addition to the plan: fixes of findings of severity info that do not undo any part of it.
  /// @param all the plan; found changes are added to it
  std::map<const Diagnosis*, EnvChange> remedies_of_information(EnvChange& all) {
    std::map<const Diagnosis*, EnvChange> extras;
    const auto left_by_plan = left_by(all);
    const bool plan_leaves = leaves_something(all);
    for (const Diagnosis& diagnosis : before_) {
      if (matters(diagnosis) || heals(diagnosis, all))
        continue;
      for (const EnvChange& remedy : diagnosis.remedies) {
        EnvChange next = all;
        next.add(remedy);
        if (all.contradicts(remedy) || !heals(diagnosis, next) || !breaks_nothing(next) ||
            left_by(next) > left_by_plan || (!plan_leaves && leaves_something(next)) ||
            !heals_all(extras, next))
          continue;
        extras.emplace(&diagnosis, remedy);
        all = next;
        break;
      }
    }
    return extras;
  }

  bool heals_all(const std::map<const Diagnosis*, EnvChange>& extras, const EnvChange& change) {
    return std::all_of(extras.begin(), extras.end(),
                       [&](const auto& extra) { return heals(*extra.first, change); });
  }

  const Node& node_;
  const MappingRequest& request_;
  const Mapping& optimal_;
  const Diagnoses& before_;
  std::map<std::string, Diagnoses> after_; ///< by the text of the change
  std::map<std::pair<bool, std::vector<std::pair<int, int>>>, Mapping> optima_;
};

} // namespace

Findings with_tried_fixes(const Node& node, const Mapping& mapping, const Mapping& optimal,
                          const Diagnoses& diagnoses) {
  return FixSearch(node, mapping, optimal, diagnoses).run();
}

} // namespace shmemctl
