#include "src/bench/nic_watch.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/whole_number.h"
#include "src/bench/nic_pace.h"

namespace shmemctl::bench {

namespace {

using nlohmann::json;

bool is_first_of_its_machine(const Runtime& runtime) {
  const auto& hosts = runtime.placement().hosts;
  const auto mine = hosts[static_cast<std::size_t>(runtime.pe())].machine_id;
  for (int pe = 0; pe < runtime.pe(); ++pe)
    if (hosts[static_cast<std::size_t>(pe)].machine_id == mine)
      return false;
  return true;
}

NicTraffic since(const NicTraffic& now, const std::vector<NicTraffic>& before) {
  NicTraffic moved = now;
  for (const NicTraffic& then : before)
    if (then.nic == now.nic) {
      moved.put_bytes -= std::min(moved.put_bytes, then.put_bytes);
      moved.get_bytes -= std::min(moved.get_bytes, then.get_bytes);
      moved.operations -= std::min(moved.operations, then.operations);
      moved.long_bytes -= std::min(moved.long_bytes, then.long_bytes);
      moved.long_ns -= std::min(moved.long_ns, then.long_ns);
    }
  return moved;
}

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

template <class T>
std::optional<T> optional_at(const json& row, std::size_t at) {
  return row.at(at).is_null() ? std::nullopt
                              : std::optional<T>(require_whole_number<T>(row.at(at)));
}

void read_rows(const std::string& text, const std::string& host, std::vector<NicCounter>& counters,
               std::vector<PortClaim>& claims) {
  const json object = json::parse(text);
  for (const json& row : object.at("counters")) {
    NicCounter counter;
    counter.host = host;
    counter.device = row.at(0);
    counter.port = require_whole_number<int>(row.at(1));
    counter.counter = row.at(2);
    counter.before = optional_at<std::uint64_t>(row, 3);
    counter.after = optional_at<std::uint64_t>(row, 4);
    counter.delta = optional_at<std::int64_t>(row, 5);
    counters.push_back(std::move(counter));
  }
  for (const json& row : object.at("claims")) {
    PortClaim claim{host, {{row.at(0), require_whole_number<int>(row.at(1))}}};
    claim.traffic.put_bytes = require_whole_number<std::uint64_t>(row.at(2));
    claim.traffic.get_bytes = require_whole_number<std::uint64_t>(row.at(3));
    claim.traffic.operations = require_whole_number<std::uint64_t>(row.at(4));
    claim.traffic.long_bytes = require_whole_number<std::uint64_t>(row.at(5));
    claim.traffic.long_ns = require_whole_number<std::uint64_t>(row.at(6));
    claims.push_back(std::move(claim));
  }
}

/// One for each port, in order of appearance.
std::vector<PortClaim> summed(const std::vector<PortClaim>& claims) {
  std::vector<PortClaim> sums;
  for (const PortClaim& claim : claims) {
    const auto found = std::find_if(sums.begin(), sums.end(), [&](const PortClaim& sum) {
      return sum.host == claim.host && sum.traffic.nic == claim.traffic.nic;
    });
    if (found == sums.end()) {
      sums.push_back(claim);
      continue;
    }
    found->traffic.put_bytes += claim.traffic.put_bytes;
    found->traffic.get_bytes += claim.traffic.get_bytes;
  }
  return sums;
}

} // namespace

std::vector<NicTraffic> traffic_of(Runtime& runtime) {
  std::vector<NicTraffic> all;
  for (const TransportEntry& entry : runtime.transports())
    for (const NicTraffic& traffic : entry.transport->traffic())
      all.push_back(traffic);
  return all;
}

std::string watch_text(const std::vector<CounterChange>& changes,
                       const std::vector<NicTraffic>& claims) {
  json object{{"counters", json::array()}, {"claims", json::array()}};
  for (const CounterChange& change : changes)
    object["counters"].push_back({change.device, change.port, change.counter,
                                  optional_json(change.before), optional_json(change.after),
                                  optional_json(change.delta)});
  for (const NicTraffic& claim : claims)
    object["claims"].push_back({claim.nic.device, claim.nic.port, claim.put_bytes, claim.get_bytes,
                                claim.operations, claim.long_bytes, claim.long_ns});
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

void read_watch_text(const std::string& text, const std::string& host,
                     std::vector<NicCounter>& counters, std::vector<PortClaim>& claims) {
  try {
    read_rows(text, host, counters, claims);
  } catch (const std::exception&) { // of the JSON library, or a number out of range
    throw Error(ExitCode::unavailable, "NIC counters of " + host, "read",
                "what a PE sent is not understood",
                "start all PEs with the same version of this tool");
  }
}

Findings judge_claims(const std::vector<NicCounter>& counters,
                      const std::vector<PortClaim>& claims) {
  Findings findings;
  for (const PortClaim& claim : summed(claims)) {
    const HcaPort& nic = claim.traffic.nic;
    std::vector<CounterChange> changes;
    for (const NicCounter& counter : counters)
      if (counter.host == claim.host)
        changes.push_back({counter.device, counter.port, counter.counter, counter.before,
                           counter.after, counter.delta});
    const auto judge = [&](WireDirection direction, std::uint64_t claimed, const char* verb) {
      const auto moved = moved_bytes(changes, nic.device, nic.port, direction);
      if (!moved || moved->at_most >= claimed)
        return;
      findings.push_back(
          {"traffic-elsewhere", Severity::error,
           claim.host + " " + nic.device + ":" + std::to_string(nic.port),
           "the transports say that they " + std::string(verb) + " " + std::to_string(claimed) +
               " bytes through it, its counter " + moved->by + " has seen " +
               std::to_string(moved->at_most) + " at most",
           "look at shmemctl bringup --verbose for the way of each pair, and at other ports' "
           "counters in the report"});
    };
    judge(WireDirection::sent, claim.traffic.put_bytes, "sent");
    judge(WireDirection::received, claim.traffic.get_bytes, "received");
  }
  return findings;
}

NicWatch::NicWatch(Runtime& runtime)
    : runtime_(runtime), reads_(is_first_of_its_machine(runtime)),
      claimed_before_(traffic_of(runtime)) {
  if (reads_)
    before_ = read_nic_counters(Sysroot("/"), runtime.node());
}

bool NicWatch::end(Report& report) {
  std::vector<CounterChange> changes;
  if (reads_)
    changes = nic_counter_changes(before_, read_nic_counters(Sysroot("/"), runtime_.node()));
  std::vector<NicTraffic> claims;
  for (const NicTraffic& now : traffic_of(runtime_))
    claims.push_back(since(now, claimed_before_));
  const std::vector<std::string> texts = runtime_.gather_text(watch_text(changes, claims));
  std::vector<NicCounter> counters;
  std::vector<PortClaim> all;
  for (std::size_t pe = 0; pe < texts.size(); ++pe)
    read_watch_text(texts[pe], runtime_.placement().hosts[pe].host_name, counters, all);
  const Findings findings = judge_claims(counters, all);
  if (runtime_.pe() == 0) {
    report.findings.insert(report.findings.end(), findings.begin(), findings.end());
    const Findings slow = judge_paces(all);
    report.findings.insert(report.findings.end(), slow.begin(), slow.end());
    report.nic_counters = std::move(counters);
  }
  return !findings.empty();
}

} // namespace shmemctl::bench
