// Hosts that should be alike, and what differs among them.
#include "reports/compare/host_differences.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "reports/json_view.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr std::size_t max_findings = 32, max_facts_named = 8, max_hosts_named = 8;
constexpr std::size_t max_differences = 256, max_values = 8, max_hosts_listed = 16;
constexpr std::size_t max_name_bytes = 80, max_value_bytes = 60;

using FactValue = std::optional<std::string>;

FactValue value_of(const HostFacts& host, const std::string& fact) {
  const auto found = host.facts.find(fact);
  return found == host.facts.end() ? FactValue() : FactValue(found->second);
}

std::set<std::string> names_of_facts(const std::vector<HostFacts>& hosts) {
  std::set<std::string> names;
  for (const HostFacts& host : hosts)
    for (const auto& fact : host.facts)
      names.insert(fact.first);
  return names;
}

/// The hosts grouped by their value of a fact; groups are in the order of their first host.
std::vector<HostsOfValue> values_of(const std::vector<HostFacts>& hosts, const std::string& fact) {
  std::vector<HostsOfValue> values;
  std::map<FactValue, std::size_t> places;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    FactValue value = value_of(hosts[i], fact);
    const auto [place, added] = places.emplace(value, values.size());
    if (added)
      values.push_back({std::move(value), {}});
    values[place->second].hosts.push_back(i);
  }
  return values;
}

/// Removes from `values` the value with which the others are compared, and returns it; empty if
/// `place` is the end.
std::optional<HostsOfValue> take(std::vector<HostsOfValue>& values, std::size_t place) {
  if (place == values.size())
    return std::nullopt;
  HostsOfValue taken = std::move(values[place]);
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(place));
  return taken;
}

std::size_t place_of_majority(const std::vector<HostsOfValue>& values, std::size_t hosts) {
  const auto found = std::find_if(values.begin(), values.end(), [hosts](const HostsOfValue& each) {
    return 2 * each.hosts.size() > hosts;
  });
  return static_cast<std::size_t>(found - values.begin());
}

bool is_missing_on_all(const FactDifference& difference) {
  return std::all_of(difference.others.begin(), difference.others.end(),
                     [](const HostsOfValue& each) { return !each.value; });
}

/// Whether the difference in a fact of a device follows from the difference in the device itself.
bool follows_from(const FactDifference& device, const FactDifference& part) {
  if (device.usual.has_value() != part.usual.has_value())
    return false;
  if (!part.usual) // two sets of hosts, one of which has the part
    return device.others.size() == 2 && part.others.size() == 2 &&
           device.others[0].hosts == part.others[0].hosts &&
           device.others[1].hosts == part.others[1].hosts &&
           (!part.others[0].value || !part.others[1].value);
  const std::vector<std::size_t> with_device = device.outliers(), with_part = part.outliers();
  const bool only_outliers_have_it =
      !part.usual->value && !device.usual->value && with_device == with_part;
  return only_outliers_have_it ||
         (is_missing_on_all(part) && std::includes(with_device.begin(), with_device.end(),
                                                   with_part.begin(), with_part.end()));
}

/// Removes differences in facts of a device that follow from the difference in the device itself.
void leave_out_parts(std::vector<FactDifference>& differences) {
  std::map<std::string, const FactDifference*> by_name;
  for (const FactDifference& difference : differences)
    by_name[difference.fact] = &difference;
  std::set<std::string> redundant;
  for (const FactDifference& part : differences)
    for (std::size_t dot = part.fact.rfind('.'); dot != std::string::npos && dot > 0;
         dot = part.fact.rfind('.', dot - 1)) {
      const auto device = by_name.find(part.fact.substr(0, dot));
      if (device != by_name.end() && follows_from(*device->second, part))
        redundant.insert(part.fact);
    }
  std::erase_if(differences, [&redundant](const FactDifference& difference) {
    return redundant.contains(difference.fact);
  });
}

std::vector<std::string> host_names(const std::vector<HostFacts>& hosts) {
  std::vector<std::string> names;
  for (const HostFacts& host : hosts)
    names.push_back(host.host);
  return names;
}

/// "a, b and 3 more".
std::string listed(const std::vector<std::string>& all, std::size_t limit, const char* separator) {
  if (all.size() <= limit)
    return join(all, separator);
  const std::vector<std::string> first(all.begin(),
                                       all.begin() + static_cast<std::ptrdiff_t>(limit));
  return fmt::format("{} and {} more", join(first, separator), all.size() - limit);
}

std::string value_text(const FactValue& value) {
  return value ? printable(*value, max_value_bytes) : "missing";
}

/// Facts in which the same hosts differ.
struct Group {
  std::vector<std::size_t> hosts; ///< the outliers; all hosts if there is no majority
  std::vector<const FactDifference*> facts;
};

/// Facts without a majority belong to one group if they divide the hosts in the same way.
using GroupKey = std::pair<bool, std::vector<std::vector<std::size_t>>>;
GroupKey key_of(const FactDifference& difference) {
  if (difference.usual)
    return {true, {difference.outliers()}};
  GroupKey key{false, {}};
  for (const HostsOfValue& each : difference.others)
    key.second.push_back(each.hosts);
  return key;
}

/// The groups of differences: those with most facts first, then those with fewest hosts.
std::vector<Group> groups_of(const HostDifferences& differences) {
  std::map<GroupKey, Group> by_key;
  for (const FactDifference& difference : differences.differences) {
    Group& group = by_key[key_of(difference)];
    group.hosts = difference.outliers();
    group.facts.push_back(&difference);
  }
  std::vector<Group> groups;
  for (auto& entry : by_key)
    groups.push_back(std::move(entry.second));
  std::stable_sort(groups.begin(), groups.end(), [](const Group& left, const Group& right) {
    return left.facts.size() != right.facts.size() ? left.facts.size() > right.facts.size()
                                                   : left.hosts.size() < right.hosts.size();
  });
  return groups;
}

class Wording {
public:
  explicit Wording(const HostDifferences& all) : all_(all) {}

  std::string names(const std::vector<std::size_t>& hosts) const {
    std::vector<std::string> texts;
    for (const std::size_t host : hosts) {
      if (texts.size() == max_hosts_named)
        break;
      texts.push_back(printable(all_.hosts[host], max_name_bytes));
    }
    return join(texts, ", ") + (hosts.size() > texts.size()
                                    ? fmt::format(" and {} more", hosts.size() - texts.size())
                                    : "");
  }

  /// "kernel is 5.15 on a, 6.1 on b (others 6.8)"
  std::string fact(const FactDifference& difference, bool name_hosts) const {
    std::vector<std::string> values;
    for (const HostsOfValue& each : difference.others) {
      if (values.size() == max_values)
        break;
      values.push_back(value_text(each.value) + (name_hosts ? " on " + names(each.hosts) : ""));
    }
    if (difference.others.size() > values.size())
      values.push_back(fmt::format("{} more values", difference.others.size() - values.size()));
    const std::string usual =
        difference.usual ? fmt::format(" ({} {})", all_.golden.empty() ? "others" : "golden",
                                       value_text(difference.usual->value))
                         : "";
    return printable(difference.fact, max_name_bytes) + " is " + join(values, ", ") + usual;
  }

  std::string message(const Group& group) const {
    const bool majority = group.facts.front()->usual.has_value();
    std::vector<std::string> facts;
    for (const FactDifference* difference : group.facts)
      facts.push_back(fact(*difference, !majority || difference->others.size() > 1));
    const std::string in =
        counted(facts.size(), "fact") +
        (!majority && group.hosts.size() > 2 ? ", and no value is that of most of them" : "");
    return fmt::format("{} {} from {} in {}: {}", names(group.hosts),
                       group.hosts.size() == 1 ? "differs" : "differ", from(group, majority), in,
                       listed(facts, max_facts_named, "; "));
  }

private:
  std::string from(const Group& group, bool majority) const {
    if (!all_.golden.empty())
      return printable(all_.golden, max_name_bytes);
    return majority ? fmt::format("the {} other hosts", all_.hosts.size() - group.hosts.size())
                    : "one another";
  }

  const HostDifferences& all_;
};

/// The fix for a difference in this fact.
std::string fix_of(const std::string& fact) {
  struct Advice {
    const char* part;
    const char* fix;
  };
  static constexpr Advice table[] = {
      {".firmware", "install the same firmware on all: mlxfwmanager --query, then mlxfwmanager -u"},
      {".vbios", "install the same VBIOS on all; compare: nvidia-smi -q | grep VBIOS"},
      {".pcie_", "reseat the card or its riser; compare: lspci -vv | grep -E 'LnkCap:|LnkSta:'"},
      {".port", "compare the cables, the switch's ports and their configuration: ibstat, ethtool"},
      {"netdev.", "compare the interfaces and their configuration: ip -s link, ethtool"},
      {"limit.", "set the same limits on all: /etc/security/limits.d, and LimitMEMLOCK and "
                 "LimitNOFILE of the service that starts jobs"},
      {"library.", "install the same packages on all"},
      {"driver.", "install the same driver on all, and load it: a reboot if need be"},
      {"module.", "load the same modules on all: /etc/modules-load.d"},
      {"kernel", "boot the same kernel on all"},
      {"gpu.", "look for a device that is missing or another one: lspci -nn, dmesg | grep -i xid"},
      {"nic.", "look for a device that is missing or another one: lspci -nn, ibstat"},
      {"memory.", "compare sysctl -a, the kernel's command line and dmidecode -t memory"},
  };
  for (const Advice& advice : table)
    if (fact.find(advice.part) != std::string::npos)
      return advice.fix;
  return "compare the settings of the hosts, and make them the same";
}

json value_json(const HostsOfValue& each, const std::vector<std::string>& names) {
  json object = {{"value", nullptr}, {"n_hosts", each.hosts.size()}};
  if (each.value)
    object["value"] = *each.value;
  else
    object["value_reason"] = "there is no such fact";
  if (names.empty())
    return object;
  object["hosts"] = json::array();
  for (std::size_t i = 0; i < std::min(each.hosts.size(), max_hosts_listed); ++i)
    object["hosts"].push_back(names[each.hosts[i]]);
  return object;
}

} // namespace

std::vector<std::size_t> FactDifference::outliers() const {
  std::vector<std::size_t> all;
  for (const HostsOfValue& each : others)
    all.insert(all.end(), each.hosts.begin(), each.hosts.end());
  std::sort(all.begin(), all.end());
  return all;
}

HostDifferences compare_hosts(const std::vector<HostFacts>& hosts) {
  HostDifferences result{host_names(hosts), "", 0, {}};
  for (const std::string& fact : names_of_facts(hosts)) {
    ++result.facts;
    std::vector<HostsOfValue> values = values_of(hosts, fact);
    if (values.size() < 2)
      continue;
    FactDifference difference{fact, std::nullopt, {}};
    difference.usual = take(values, place_of_majority(values, hosts.size()));
    difference.others = std::move(values);
    result.differences.push_back(std::move(difference));
  }
  leave_out_parts(result.differences);
  return result;
}

HostDifferences compare_with_golden(const HostFacts& golden, const std::vector<HostFacts>& hosts) {
  HostDifferences result{host_names(hosts), golden.host, 0, {}};
  std::set<std::string> names = names_of_facts(hosts);
  for (const auto& fact : golden.facts)
    names.insert(fact.first);
  for (const std::string& fact : names) {
    ++result.facts;
    const FactValue wanted = value_of(golden, fact);
    std::vector<HostsOfValue> values = values_of(hosts, fact);
    const auto same =
        std::find_if(values.begin(), values.end(),
                     [&wanted](const HostsOfValue& each) { return each.value == wanted; });
    std::optional<HostsOfValue> usual =
        take(values, static_cast<std::size_t>(same - values.begin()));
    if (values.empty())
      continue;
    if (!usual)
      usual = HostsOfValue{wanted, {}};
    result.differences.push_back({fact, std::move(usual), std::move(values)});
  }
  leave_out_parts(result.differences);
  return result;
}

Findings host_findings(const HostDifferences& differences) {
  Findings findings;
  const Wording wording(differences);
  const std::vector<Group> groups = groups_of(differences);
  const std::size_t shown = groups.size() > max_findings ? max_findings - 1 : groups.size();
  for (std::size_t i = 0; i < shown; ++i)
    findings.push_back({"hosts-differ", Severity::warning, wording.names(groups[i].hosts),
                        wording.message(groups[i]), fix_of(groups[i].facts.front()->fact)});
  if (groups.size() > shown) {
    std::set<std::size_t> hosts;
    std::size_t facts = 0;
    for (std::size_t i = shown; i < groups.size(); ++i) {
      hosts.insert(groups[i].hosts.begin(), groups[i].hosts.end());
      facts += groups[i].facts.size();
    }
    findings.push_back(
        {"hosts-differ", Severity::warning,
         fmt::format("{} more sets of hosts", groups.size() - shown),
         fmt::format("{} more sets of hosts, {} in all, differ in {}", groups.size() - shown,
                     counted(hosts.size(), "host"), counted(facts, "fact")),
         "read host_differences in the report: --json FILE"});
  }
  return findings;
}

json to_json(const HostDifferences& differences) {
  json list = json::array();
  for (const FactDifference& difference : differences.differences) {
    if (list.size() == max_differences)
      break;
    json object = {{"fact", difference.fact}, {"others", json::array()}};
    if (difference.usual)
      object["usual"] = value_json(*difference.usual, {});
    for (std::size_t i = 0; i < std::min(difference.others.size(), max_values); ++i)
      object["others"].push_back(value_json(difference.others[i], differences.hosts));
    if (difference.others.size() > max_values)
      object["more_values"] = difference.others.size() - max_values;
    list.push_back(std::move(object));
  }
  json result = {{"n_hosts", differences.hosts.size()},
                 {"n_facts", differences.facts},
                 {"differences", std::move(list)}};
  if (!differences.golden.empty())
    result["golden"] = differences.golden;
  if (differences.differences.size() > max_differences)
    result["more_differences"] = differences.differences.size() - max_differences;
  return result;
}

std::vector<HostFacts> facts_of(const Report& report) {
  std::vector<HostFacts> all;
  for (const json& host : report.hosts) {
    const json& facts = view::member(host, "facts");
    if (!facts.is_object() || facts.empty())
      continue;
    HostFacts one;
    if (const json& name = view::member(host, "name"); name.is_string())
      one.host = name.get<std::string>();
    for (const auto& [fact, value] : facts.items())
      if (value.is_string())
        one.facts[fact] = value.get<std::string>();
    all.push_back(std::move(one));
  }
  return all;
}

void tell_hosts_apart(std::vector<HostFacts>& hosts, const std::vector<std::string>& places) {
  std::map<std::string, std::size_t> count;
  for (HostFacts& host : hosts) {
    if (host.host.empty())
      host.host = "unnamed";
    ++count[host.host];
  }
  std::set<std::string> taken;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::string& name = hosts[i].host;
    if (count[name] > 1)
      name += " (" + places.at(i) + ")";
    const std::string wanted = name;
    for (int number = 2; !taken.insert(name).second; ++number)
      name = fmt::format("{} #{}", wanted, number);
  }
}

} // namespace shmemctl
