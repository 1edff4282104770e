#include "src/instruments/inspect/environment.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/options.h"
#include "src/base/text.h"

namespace shmemctl::inspect {

namespace {

struct Prefix {
  Family family;
  const char* text;
  const char* title;
};
constexpr Prefix prefixes[] = {
    {Family::nvshmem, "NVSHMEM_", "NVSHMEM"},
    {Family::nccl, "NCCL_", "NCCL"},
    {Family::ucx, "UCX_", "UCX"},
    {Family::libfabric, "FI_", "libfabric"},
    {Family::none, "OMPI_", "Open MPI"},
};

/// A setting of whole numbers, or of words (without regard to case).
struct Range {
  const char* name;
  long long least, most;
  const char* words; ///< separated by blanks; "" for a number
};
/// The widths of the fields in InfiniBand's packets and queue pairs: 5 bits for a timeout, 3 for a
/// retry count, 4 for a service level, 8 for a traffic class. -1 means a default.
constexpr Range ranges[] = {
    {"NCCL_CROSS_NIC", 0, 2, ""},
    {"NCCL_DEBUG", 0, 0, "none version warn info abort trace"},
    {"NCCL_IB_GID_INDEX", -1, 255, ""},
    {"NCCL_IB_QPS_PER_CONNECTION", 1, 128, ""},
    {"NCCL_IB_RETRY_CNT", 0, 7, ""},
    {"NCCL_IB_SL", -1, 15, ""},
    {"NCCL_IB_TC", -1, 255, ""},
    {"NCCL_IB_TIMEOUT", 0, 31, ""},
    {"NVSHMEM_BOOTSTRAP", 0, 0, "mpi pmi pmi-2 pmi2 pmix shmem uid plugin"},
    {"NVSHMEM_BOOTSTRAP_PMI", 0, 0, "pmi pmi-2 pmix"},
    {"NVSHMEM_IB_GID_INDEX", -1, 255, ""},
    {"NVSHMEM_IB_RETRY_CNT", 0, 7, ""},
    {"NVSHMEM_IB_SL", 0, 15, ""},
    {"NVSHMEM_IB_TIMEOUT", 0, 31, ""},
    {"NVSHMEM_IB_TRAFFIC_CLASS", 0, 255, ""},
    {"NVSHMEM_REMOTE_TRANSPORT", 0, 0, "ibrc ucx libfabric ibdevx gpunetio none"},
    {"UCX_IB_SL", 0, 15, ""},
    {"UCX_IB_TRAFFIC_CLASS", 0, 255, ""},
};

/// Two settings of which one cancels the effect of the other, or a part of it.
struct Contradiction {
  const char* first;
  const char* first_value; ///< "*": not empty; "on": not is_off(); else a word, in lower case
  const char* second;
  const char* second_value;
  const char* effect;
};
constexpr Contradiction contradictions[] = {
    {"NCCL_IB_DISABLE", "on", "NCCL_IB_HCA", "*",
     "NCCL uses no RDMA device, so the list selects none"},
    {"NCCL_NET", "socket", "NCCL_IB_HCA", "*", "NCCL uses sockets, so the list selects nothing"},
    {"NCCL_P2P_DISABLE", "on", "NCCL_P2P_LEVEL", "*",
     "no distance between GPUs allows direct copies"},
    {"NVSHMEM_HCA_LIST", "*", "NVSHMEM_HCA_PE_MAPPING", "*", "NVSHMEM reads only the first"},
    {"NVSHMEM_ENABLE_NIC_PE_MAPPING", "on", "NVSHMEM_NETDEVS_POLICY", "*",
     "the policy acts only without the mapping"},
    {"NVSHMEM_REMOTE_TRANSPORT", "none", "NVSHMEM_IB_ENABLE_IBGDA", "on",
     "IBGDA starts alone: the host has no transport to other nodes"},
};

/// Variables that PyTorch reads, and not NCCL, whose prefix they have.
constexpr std::string_view of_torch[] = {"NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT",
                                         "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING",
                                         "NCCL_TRACE_BUFFER_SIZE"};

/// Whether modules, container images or builds set this variable, and no library reads it.
bool is_of_installation(std::string_view name) {
  for (const std::string_view end :
       {"_HOME", "_ROOT", "_DIR", "_PREFIX", "_PATH", "_VERSION", "_LIB", "_LIBS", "_LIBRARY",
        "_LIBRARIES", "_INCLUDE", "_CFLAGS", "_LDFLAGS", "_BASE", "_BIN"})
    if (ends_with(name, end))
      return true;
  return false;
}

/// The spellings of a variable that a library's texts may contain, the longest first. NVSHMEM and
/// NCCL contain the whole name or the name without its prefix. UCX composes names from prefixes and
/// fields of tables, libfabric from names of providers and parameters (in lower case), so any end
/// of the name may be a text.
std::vector<std::string> spellings(std::string_view name, Family family) {
  std::vector<std::string> names = {std::string(name)};
  const bool tables = family == Family::ucx || family == Family::libfabric;
  for (std::size_t at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1)) {
    const std::string_view end = name.substr(at + 1);
    if (end.size() < 2)
      break;
    names.emplace_back(end);
    if (family == Family::libfabric)
      names.push_back(lower(end));
    if (!tables)
      break;
  }
  return names;
}

bool is_capital(std::string_view name) {
  return name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos;
}

/// The variables that libraries of the family may know, without the prefix.
std::vector<std::string> known_names(const Libraries& libraries, const Prefix& prefix) {
  std::set<std::string> names;
  for (const auto& library : libraries) {
    if (library->kind->family != prefix.family)
      continue;
    for (const std::string& text : split(library->names, '\0')) {
      if (!starts_with(text, "\x01")) // only an end of a text, perhaps of a sentence
        continue;
      const std::string each = text.substr(1);
      if (starts_with(each, prefix.text))
        names.insert(each.substr(std::string_view(prefix.text).size()));
      else if (prefix.family != Family::nccl && each.size() > 2 &&
               (prefix.family == Family::libfabric || is_capital(each)))
        names.insert(each);
    }
  }
  return {names.begin(), names.end()};
}

std::string nearest_known(std::string_view name, const Libraries& libraries, const Prefix& prefix) {
  const std::vector<std::string> names = known_names(libraries, prefix);
  const bool small = prefix.family == Family::libfabric;
  for (const std::string& rest : spellings(name, prefix.family)) {
    if (rest == name || (small && rest != lower(rest)))
      continue;
    if (const auto nearest = nearest_spelling(rest, names)) {
      std::string whole(name.substr(0, name.size() - rest.size()));
      for (const char each : *nearest)
        whole += small && each >= 'a' && each <= 'z' ? static_cast<char>(each - 'a' + 'A') : each;
      return whole;
    }
  }
  return {};
}

/// The whole name that `name` misspells, if the libraries know only the last word of `name`:
/// UCX_NET_DEVICE ends in a text of libuct, but is not a variable. "" if there is none.
std::string missed_name(std::string_view name, const Libraries& libraries, const Prefix& prefix) {
  if (prefix.family != Family::ucx)
    return {};
  const std::string_view whole = name.substr(std::string_view(prefix.text).size());
  constexpr std::size_t longest = 256; // the distance takes time: length * length
  if (whole.find('_') == std::string_view::npos || whole.size() > longest)
    return {};
  const std::vector<std::string> spelled = spellings(name, prefix.family);
  for (const auto& library : libraries)
    if (library->kind->family == prefix.family)
      for (const std::string& each : spelled)
        if (each.find('_') != std::string::npos && library->knows(each))
          return {};
  for (const std::string& known : known_names(libraries, prefix))
    if (known.find('_') != std::string::npos && known.size() <= whole.size() + 1 &&
        edit_distance(whole, known) == 1)
      return prefix.text + known;
  return {};
}

bool has_kind(const Libraries& libraries, std::string_view id) {
  return std::any_of(libraries.begin(), libraries.end(),
                     [id](const auto& library) { return id == library->kind->id; });
}

void judge(Variable& variable, const Prefix& prefix, const Libraries& libraries) {
  variable.status = "unchecked";
  if (prefix.family == Family::none) {
    variable.note = "parameters of Open MPI's components have no name in its files";
    return;
  }
  const Library* asked = nullptr;
  for (const auto& library : libraries) {
    const bool of_family = library->kind->family == prefix.family && !library->names.empty();
    if (of_family && asked == nullptr)
      asked = library.get();
    const std::vector<std::string> names = spellings(variable.name, prefix.family);
    const bool known =
        of_family
            ? std::any_of(names.begin(), names.end(),
                          [&library](const std::string& name) { return library->knows(name); })
            : library->knows(variable.name); // an extension of the library may read the variable
    if (known) {
      variable.nearest = missed_name(variable.name, libraries, prefix);
      variable.status = variable.nearest.empty() ? "known" : "ignored";
      variable.library = library->file.path;
      return;
    }
  }
  if (asked == nullptr) {
    variable.note = fmt::format("no {} library is loaded whose file could be read", prefix.title);
    return;
  }
  if (is_of_installation(variable.name)) {
    variable.note = "such names are for builds and modules";
    return;
  }
  if (prefix.family == Family::nccl && has_kind(libraries, "torch") &&
      std::find(std::begin(of_torch), std::end(of_torch), variable.name) != std::end(of_torch)) {
    variable.note = "PyTorch reads it";
    return;
  }
  variable.status = "ignored";
  variable.library = asked->file.path;
  variable.nearest = nearest_known(variable.name, libraries, prefix);
}

bool is_off(std::string_view value) {
  const std::string text = lower(trim(value));
  return text == "0" || text == "n" || text == "no" || text == "f" || text == "false" ||
         text == "off" || text.empty();
}

bool has_value(std::string_view value, std::string_view wanted) {
  if (wanted == "*")
    return !trim(value).empty();
  return wanted == "on" ? !is_off(value) : lower(trim(value)) == wanted;
}

std::string allowed(const Range& range) {
  const std::vector<std::string> words = split_blanks(range.words);
  return words.empty() ? fmt::format("a number from {} to {}", range.least, range.most)
                       : "one of " + join(words, ", ");
}

bool fits(const std::string& value, const Range& range) {
  const std::vector<std::string> words = split_blanks(range.words);
  if (!words.empty())
    return std::find(words.begin(), words.end(), lower(trim(value))) != words.end();
  const auto number = parse_integer(trim(value));
  return number && *number >= range.least && *number <= range.most;
}

} // namespace

std::vector<Variable> judge_environment(const std::map<std::string, std::string>& environment,
                                        const Libraries& libraries) {
  std::vector<Variable> variables;
  for (const auto& [name, value] : environment)
    for (const Prefix& prefix : prefixes) {
      if (!starts_with(name, prefix.text))
        continue;
      Variable variable;
      variable.name = name;
      variable.value = shown_value(name, value);
      judge(variable, prefix, libraries);
      variables.push_back(std::move(variable));
    }
  return variables;
}

Findings environment_findings(const std::vector<Variable>& variables) {
  Findings findings;
  const auto find = [&variables](std::string_view name) -> const Variable* {
    for (const Variable& variable : variables)
      if (variable.name == name)
        return &variable;
    return nullptr;
  };
  for (const Variable& variable : variables)
    if (variable.status == "ignored")
      findings.push_back(
          {"env-ignored", Severity::warning, "",
           fmt::format("{}={} has no effect: no library that the process has loaded reads this "
                       "variable; {} was searched for its name",
                       variable.name, variable.value, variable.library),
           variable.nearest.empty()
               ? fmt::format("remove {}, or install a release of the library that has it",
                             variable.name)
               : fmt::format("did you mean {}? Else install a release that has {}",
                             variable.nearest, variable.name)});
  for (const Range& range : ranges) {
    const Variable* variable = find(range.name);
    if (variable != nullptr && variable->status != "ignored" && !fits(variable->value, range))
      findings.push_back(
          {"env-out-of-range", Severity::warning, "",
           fmt::format("{}={} is not {}", range.name, variable->value, allowed(range)),
           fmt::format("set {} to {}", range.name, allowed(range))});
  }
  for (const Contradiction& rule : contradictions) {
    const Variable* first = find(rule.first);
    const Variable* second = find(rule.second);
    if (first != nullptr && second != nullptr && has_value(first->value, rule.first_value) &&
        has_value(second->value, rule.second_value))
      findings.push_back({"env-contradiction", Severity::warning, "",
                          fmt::format("{}={} and {}={}: {}", first->name, first->value,
                                      second->name, second->value, rule.effect),
                          fmt::format("unset {} or {}", first->name, second->name)});
  }
  return findings;
}

} // namespace shmemctl::inspect
