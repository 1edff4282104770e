#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/hotspots/hotspots.h"

namespace shmemctl {

namespace {

constexpr std::size_t most_named = 4;
constexpr double GB = 1e9;

std::string some_of(std::vector<std::string> names, const char* separator = ", ") {
  if (names.size() > most_named) {
    const std::size_t more = names.size() - most_named;
    names.resize(most_named);
    names.push_back(fmt::format("{} more", more));
  }
  return join(names, separator);
}

std::string amount(const LoadGroup& group, double value) {
  if (group.packets)
    return fmt::format("{:.0f} packets/s", value);
  return fmt::format("{:.3g} GB/s", value);
}

std::string amount_of(const LoadGroup& group, const PortLoad& load) {
  std::string text = amount(group, load_in(group, load));
  if (const auto share = load.in(group.direction).link_share; share && !group.packets)
    text += fmt::format(" ({:.0f}% of its link)", *share * 100);
  return text;
}

std::string pes_text(const PortLoad& load) {
  if (!load.pes_reason.empty())
    return "";
  if (load.pes.empty())
    return "; no PE is mapped to it";
  std::vector<std::string> names;
  for (const PeBytes& one : load.moved_by)
    names.push_back(fmt::format("{} ({:.3g} GB)", one.pe,
                                static_cast<double>(one.put_bytes + one.get_bytes) / GB));
  if (!names.empty())
    return std::string("; put and got through it: ") + (names.size() == 1 ? "PE " : "PEs ") +
           some_of(names);
  for (int pe : load.pes)
    names.push_back(std::to_string(pe));
  return std::string("; mapped to it: ") + (names.size() == 1 ? "PE " : "PEs ") + some_of(names);
}

std::string hotspot_fix(const PortLoad& load) {
  if (!load.pes_reason.empty() || load.pes.size() > 1)
    return "shmemctl topo shows who uses it and prints a mapping that spreads PEs evenly";
  if (load.pes.empty())
    return "look for what else uses it: storage, other jobs, a library with a NIC choice of its "
           "own";
  return "if all PEs should send alike, compare the mapping (shmemctl topo) with what the job sets "
         "in its environment; else the traffic itself is uneven (shmemctl moe)";
}

Finding hotspot_of(const PortLoad& load, const std::vector<const LoadGroup*>& groups) {
  std::vector<std::string> parts;
  for (const LoadGroup* group : groups) {
    const std::string others =
        group->kind == "node"
            ? fmt::format("the {} fabric ports of {}", group->members.size(), load.host)
            : fmt::format("rail {} of {} hosts", group->name, group->members.size());
    parts.push_back(fmt::format("{} {}, and the median of {} is {}",
                                group->direction == WireDirection::sent ? "sent" : "received",
                                amount_of(*group, load), others, amount(*group, group->median)));
  }
  return {"nic-hotspot-measured", Severity::warning, load.host + " " + load.name(),
          fmt::format("{} of {} {}{}", load.name(), load.host, join(parts, "; "), pes_text(load)),
          hotspot_fix(load)};
}

void add_hotspots(const Hotspots& hotspots, Findings& findings) {
  for (std::size_t i = 0; i < hotspots.loads.size(); ++i) {
    std::vector<const LoadGroup*> groups;
    for (const LoadGroup& group : hotspots.groups)
      if (std::find(group.hot.begin(), group.hot.end(), i) != group.hot.end())
        groups.push_back(&group);
    if (!groups.empty())
      findings.push_back(hotspot_of(hotspots.loads[i], groups));
  }
}

std::string sign_text(const CounterSign& sign, const NicThresholds& thresholds) {
  std::string rate;
  if (sign.rule->per_s > 0 && sign.window_s > 0)
    rate = fmt::format(" ({:.3g}{})",
                       static_cast<double>(sign.delta) / sign.window_s * sign.rule->per_s,
                       sign.rule->per_s == 1    ? "/s"
                       : sign.rule->per_s == 60 ? "/min"
                                                : "/h");
  const auto source = thresholds.sources.find(sign.rule->source);
  const std::string who = source == thresholds.sources.end() ? sign.rule->source : source->first;
  return fmt::format("{} +{}{}, limit {} by {}: {}", sign.counter, sign.delta, rate,
                     sign.rule->limit_text(), who, sign.rule->meaning);
}

const char* fix_of(const std::string& finding) {
  if (finding == "link-flapping")
    return "reseat or change cable and transceiver, look at the switch port (ibstat, ethtool, "
           "mlxlink), then at the kernel's log";
  if (finding == "nic-lossy")
    return "look at PFC and buffers of host and switch port, at this host's PCIe link (shmemctl "
           "topo), and at the port's link errors";
  return "look at ECN and PFC of the switches on the way, at how many senders share a receiver "
         "(shmemctl moe), and at this host's PCIe link (shmemctl topo)";
}

void add_signs(const Hotspots& hotspots, const NicThresholds& thresholds, Findings& findings) {
  static constexpr std::array ids = {"link-flapping", "nic-lossy", "nic-congested"};
  for (const PortLoad& load : hotspots.loads)
    for (const char* id : ids) {
      std::vector<std::string> texts;
      Severity severity = Severity::info;
      for (const CounterSign& sign : hotspots.signs)
        if (sign.host == load.host && sign.device == load.device && sign.port == load.port &&
            sign.rule->finding == id) {
          texts.push_back(sign_text(sign, thresholds));
          severity = std::max(severity, sign.rule->severity);
        }
      if (!texts.empty())
        findings.push_back(
            {id, severity, load.host + " " + load.name(),
             fmt::format("{} of {}: {}", load.name(), load.host, some_of(std::move(texts), "; ")),
             fix_of(id)});
    }
}

/// A port that carries nothing because it is down needs no counters.
void add_unavailable(const Hotspots& hotspots, Findings& findings) {
  for (const PortLoad& load : hotspots.loads) {
    std::vector<std::string> texts;
    for (WireDirection direction : {WireDirection::sent, WireDirection::received})
      if (const DirectionLoad& one = load.in(direction); !one.GBps)
        texts.push_back(std::string(direction == WireDirection::sent ? "sent: " : "received: ") +
                        one.reason);
    const bool rate_unknown = !texts.empty();
    for (const UnavailableCounter& counter : hotspots.unavailable)
      if (counter.host == load.host && counter.device == load.device && counter.port == load.port &&
          counter.counter != load.sent.counter && counter.counter != load.received.counter)
        texts.push_back(counter.counter + " " + counter.reason);
    if (!texts.empty())
      findings.push_back(
          {"counters-unavailable",
           rate_unknown && (load.fabric || load.rdma) ? Severity::warning : Severity::info,
           load.host + " " + load.name(),
           fmt::format("{} of {}: {}{}", load.name(), load.host,
                       rate_unknown ? "how much it carries is not known in full. " : "",
                       some_of(std::move(texts), "; ")),
           "look at the files under /sys/class/infiniband/" + load.device +
               "; a driver or firmware that counts nothing is to be updated, one that was reset "
               "in between measured again"});
  }
}

} // namespace

Findings hotspot_findings(const Hotspots& hotspots, const NicThresholds& thresholds) {
  Findings findings;
  add_hotspots(hotspots, findings);
  add_signs(hotspots, thresholds, findings);
  add_unavailable(hotspots, findings);
  return findings;
}

} // namespace shmemctl
