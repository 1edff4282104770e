// How much each port carried, and which ports carry more than their peers.
#include "src/instruments/hotspots/load.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

#include "src/base/statistics.h"

namespace shmemctl {

namespace {

constexpr double bytes_per_GB = 1e9;
constexpr double idle_share = 0.001; ///< share of the link's rate
constexpr double idle_GBps = 0.001;  ///< where the link's rate is not known
constexpr double min_packets = 100;  ///< fewer packets prove nothing
/// Tolerance for the clock and for headers that the link rate excludes.
constexpr double measuring_error = 0.02;
constexpr std::uint64_t soft_roce_payload_bytes = 4096;

/// Counter names of one kind, for both directions.
struct Source {
  std::array<const char*, 2> bytes, packets;
  double max_bytes_per_packet; ///< 0: no limit (segments that the device splits count as one)
};
constexpr std::array<Source, 4> sources = {{
    {{"ethtool_tx_bytes_phy", "ethtool_rx_bytes_phy"},
     {"ethtool_tx_packets_phy", "ethtool_rx_packets_phy"},
     16384},
    {{"port_xmit_data_bytes", "port_rcv_data_bytes"},
     {"port_xmit_packets", "port_rcv_packets"},
     4096 + 256}, // the largest MTU and all headers
    {{"tx_bytes", "rx_bytes"}, {"tx_pkts", "rx_pkts"}, 16384},
    {{"netdev_tx_bytes", "netdev_rx_bytes"}, {"netdev_tx_packets", "netdev_rx_packets"}, 0},
}};

std::size_t index_of(WireDirection direction) {
  return direction == WireDirection::sent ? 0 : 1;
}

/// The best kind of counters that the port has, readable or not: another kind would count something
/// else.
const Source* source_of(const PortTotals& totals, WireDirection direction) {
  for (const Source& source : sources) {
    const bool interface = &source == &sources.back();
    if (interface && totals.port.rdma && !totals.port.software)
      return nullptr; // RDMA bypasses the interface's counters
    const CounterTotal* bytes = totals.find(source.bytes[index_of(direction)]);
    if (bytes && bytes->read())
      return &source;
  }
  return nullptr;
}

/// Why these bytes are impossible; "" if they are plausible.
std::string disbelief(const PortTotals& totals, const Source& source, const CounterTotal& bytes,
                      const CounterTotal* packets, double GBps) {
  const MeasuredPort& port = totals.port;
  if (bytes.window_s < port.lifespan_s)
    return fmt::format("read twice within {:.0f} ms, in which the driver repeats its answer",
                       port.lifespan_s * 1e3);
  const double error = measuring_error + 2 * port.lifespan_s / bytes.window_s;
  if (port.link_Gbps && GBps > *port.link_Gbps / 8 * (1 + error))
    return fmt::format("{} reports {:.4g} GB/s, more than the link's {:.4g} "
                       "GB/s: one of the two is wrong",
                       bytes.counter, GBps, *port.link_Gbps / 8);
  if (!packets || !packets->delta)
    return "";
  const auto count = static_cast<double>(*packets->delta);
  const auto moved = static_cast<double>(*bytes.delta);
  if (moved == 0 && count >= min_packets)
    return fmt::format("{} does not change while {} counted {} packets", bytes.counter,
                       packets->counter, *packets->delta);
  if (source.max_bytes_per_packet > 0 &&
      moved > source.max_bytes_per_packet * (count + min_packets))
    return fmt::format("{} reports {} bytes in {} packets, more than they can hold", bytes.counter,
                       *bytes.delta, *packets->delta);
  return "";
}

/// Why the interface's counters miss packets of the device; "" if they do not. Soft-RoCE counts its
/// packets, but packets to itself and within the machine never reach the interface's counters.
std::string seen_by_device_only(const PortTotals& totals, const CounterTotal* packets,
                                WireDirection direction) {
  const CounterTotal* own =
      totals.find(direction == WireDirection::sent ? "sent_pkts" : "rcvd_pkts");
  if (!totals.port.software || !own || !own->delta || !packets || !packets->delta)
    return "";
  const double missing = static_cast<double>(*own->delta) - static_cast<double>(*packets->delta);
  if (missing < std::max(min_packets, 0.1 * static_cast<double>(*own->delta)))
    return "";
  return fmt::format("the device counted {} packets and its interface {}: the interface does not "
                     "see all of them",
                     *own->delta, *packets->delta);
}

std::optional<double> packets_per_s(const PortTotals& totals, const CounterTotal* packets,
                                    WireDirection direction) {
  const CounterTotal* own =
      totals.find(direction == WireDirection::sent ? "sent_pkts" : "rcvd_pkts");
  if (totals.port.software && own && own->per_s())
    return own->per_s();
  return packets ? packets->per_s() : std::nullopt;
}

void fill_rate(const PortTotals& totals, const Source& source, const CounterTotal& bytes,
               const CounterTotal* packets, WireDirection direction, DirectionLoad& load) {
  const auto per_s = bytes.per_s();
  if (!bytes.delta) {
    load.reason = bytes.counter + " " + bytes.problem;
    return;
  }
  if (!per_s) {
    load.bytes = static_cast<std::uint64_t>(*bytes.delta);
    load.reason = "the time between the readings is unknown";
    return;
  }
  load.reason = disbelief(totals, source, bytes, packets, *per_s / bytes_per_GB);
  if (load.reason.empty())
    load.reason = seen_by_device_only(totals, packets, direction);
  if (!load.reason.empty())
    return;
  load.bytes = static_cast<std::uint64_t>(*bytes.delta);
  load.GBps = *per_s / bytes_per_GB;
  if (totals.port.link_Gbps)
    load.link_share = *load.GBps / (*totals.port.link_Gbps / 8);
  if (bytes.peak_per_s) {
    load.peak_GBps = std::max(*bytes.peak_per_s / bytes_per_GB, *load.GBps);
    // the rate of a short interval is inexact; it must not exceed the link's rate
    if (totals.port.link_Gbps)
      load.peak_GBps = std::min(*load.peak_GBps, std::max(*totals.port.link_Gbps / 8, *load.GBps));
  }
}

DirectionLoad direction_load(const PortTotals& totals, WireDirection direction) {
  DirectionLoad load;
  const Source* source = source_of(totals, direction);
  if (!source) {
    const CounterTotal* none = nullptr;
    load.packets_per_s = packets_per_s(totals, none, direction);
    load.reason = totals.port.missing.empty() ? "none of its counters counts bytes"
                                              : "missing: " + totals.port.missing.front();
    return load;
  }
  const CounterTotal& bytes = *totals.find(source->bytes[index_of(direction)]);
  const CounterTotal* packets = totals.find(source->packets[index_of(direction)]);
  load.counter = bytes.counter;
  load.packets_per_s = packets_per_s(totals, packets, direction);
  fill_rate(totals, *source, bytes, packets, direction, load);
  return load;
}

bool is_idle(const DirectionLoad& load) {
  return load.link_share ? *load.link_share < idle_share : *load.GBps < idle_GBps;
}

} // namespace

std::string PortLoad::direction() const {
  if (!sent.GBps || !received.GBps)
    return "unknown";
  if (is_idle(sent) && is_idle(received))
    return "idle";
  if (*sent.GBps >= 2 * *received.GBps)
    return "sent";
  return *received.GBps >= 2 * *sent.GBps ? "received" : "both";
}

PortLoad load_of(const PortTotals& totals, const std::string& host) {
  PortLoad load;
  load.host = host;
  load.device = totals.port.device;
  load.port = totals.port.port;
  load.netdev = totals.port.netdev;
  load.rdma = totals.port.rdma;
  load.fabric = totals.port.fabric;
  load.software = totals.port.software;
  load.rail = totals.port.rail;
  load.link_Gbps = totals.port.link_Gbps.value;
  if (!load.link_Gbps)
    load.link_reason = totals.port.link_Gbps.origin;
  for (const CounterTotal& total : totals.counters)
    load.window_s = std::max(load.window_s, total.window_s);
  load.sent = direction_load(totals, WireDirection::sent);
  load.received = direction_load(totals, WireDirection::received);
  return load;
}

std::vector<PortLoad> loads_of(const NodeTotals& totals, const std::string& host) {
  std::vector<PortLoad> loads;
  for (const PortTotals& port : totals.ports())
    loads.push_back(load_of(port, host));
  return loads;
}

std::optional<MovedBytes> moved_bytes(const PortTotals& totals, WireDirection direction) {
  struct Teller {
    std::array<const char*, 2> names;
    std::uint64_t bytes_each;
    bool of_interface = false;
  };
  static constexpr std::array<Teller, 4> best_first = {{
      {{"port_xmit_data_bytes", "port_rcv_data_bytes"}, 1},
      {{"tx_bytes", "rx_bytes"}, 1},
      {{"sent_pkts", "rcvd_pkts"}, soft_roce_payload_bytes},
      {{"netdev_tx_bytes", "netdev_rx_bytes"}, 1, true},
  }};
  for (const Teller& teller : best_first) {
    const CounterTotal* total = totals.find(teller.names[index_of(direction)]);
    const bool passed_by = teller.of_interface && totals.port.rdma && !totals.port.software;
    if (total && total->delta && !passed_by)
      return MovedBytes{static_cast<std::uint64_t>(std::max<std::int64_t>(*total->delta, 0)) *
                            teller.bytes_each,
                        total->counter};
  }
  return std::nullopt;
}

bool is_load_counter(const std::string& counter) {
  if (counter == "sent_pkts" || counter == "rcvd_pkts")
    return true;
  return std::any_of(sources.begin(), sources.end(), [&counter](const Source& source) {
    return counter == source.bytes[0] || counter == source.bytes[1] ||
           counter == source.packets[0] || counter == source.packets[1];
  });
}

namespace {

constexpr std::size_t few = 3;

struct Usual {
  double median = 0, mad = 0;
};

Usual usual_of(const std::vector<double>& values) {
  return {median(values), median_deviation(values)};
}

/// How far from the median an outlier must be.
double min_distance(const LoadGroup& group, const PortLoad& load, const Usual& usual,
                    const OutlierSettings& settings) {
  double least =
      std::max(settings.mads * usual.mad, group.packets ? settings.packets_per_s : settings.GBps);
  const bool by_link = !group.packets && load.link_Gbps;
  if (by_link)
    least = std::max(least, settings.link_share * *load.link_Gbps / 8);
  if (!by_link || settings.ratio_too)
    least = std::max(least, (settings.ratio - 1) * usual.median);
  return least;
}

std::vector<double> values_of(const LoadGroup& group, const std::vector<PortLoad>& loads,
                              std::size_t without) {
  std::vector<double> values;
  for (std::size_t member : group.members)
    if (member != without)
      values.push_back(load_in(group, loads[member]));
  return values;
}

void judge(LoadGroup& group, const std::vector<PortLoad>& loads, const OutlierSettings& settings) {
  constexpr auto nobody = static_cast<std::size_t>(-1);
  const std::vector<double> all = values_of(group, loads, nobody);
  const Usual usual = usual_of(all);
  group.median = usual.median;
  group.mad = usual.mad;
  double sum = 0, most = 0;
  for (double value : all) {
    sum += value;
    most = std::max(most, value);
  }
  group.skew = sum > 0 ? most / (sum / static_cast<double>(all.size())) : 1;
  for (std::size_t member : group.members) {
    const Usual others =
        group.members.size() <= few ? usual_of(values_of(group, loads, member)) : usual;
    const double load = load_in(group, loads[member]);
    const double distance = load - others.median;
    const double least = min_distance(group, loads[member], others, settings);
    if (distance > least)
      group.hot.push_back(member);
    else if (-distance > least && load * settings.ratio < others.median)
      group.low.push_back(member);
  }
}

/// Chooses the group's unit; splits the ports into those whose load is known in it, and the rest.
void choose_unit(LoadGroup& group, const std::vector<PortLoad>& loads,
                 const std::vector<std::size_t>& ports) {
  const auto known = [&](auto member) {
    return std::count_if(ports.begin(), ports.end(), [&](std::size_t port) {
      return (loads[port].in(group.direction).*member).has_value();
    });
  };
  const auto with_rate = known(&DirectionLoad::GBps);
  const auto with_packets = known(&DirectionLoad::packets_per_s);
  group.packets = with_packets > with_rate;
  for (std::size_t port : ports) {
    const DirectionLoad& load = loads[port].in(group.direction);
    const bool has_load = group.packets ? load.packets_per_s.has_value() : load.GBps.has_value();
    (has_load ? group.members : group.unknown).push_back(port);
  }
}

} // namespace

OutlierSettings over_a_job(OutlierSettings settings) {
  settings.link_share /= 10;
  settings.ratio_too = true;
  return settings;
}

double load_in(const LoadGroup& group, const PortLoad& load) {
  const DirectionLoad& direction = load.in(group.direction);
  return group.packets ? direction.packets_per_s.value_or(0) : direction.GBps.value_or(0);
}

std::vector<LoadGroup> judge_balance(const std::vector<PortLoad>& loads,
                                     const OutlierSettings& settings) {
  std::map<std::string, std::vector<std::size_t>> nodes;
  std::map<int, std::vector<std::size_t>> rails;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (loads[i].fabric) {
      nodes[loads[i].host].push_back(i);
      rails[loads[i].rail].push_back(i);
    }
  std::vector<LoadGroup> groups;
  const auto add = [&](const char* kind, const std::string& name,
                       const std::vector<std::size_t>& ports) {
    for (WireDirection direction : {WireDirection::sent, WireDirection::received}) {
      LoadGroup group;
      group.kind = kind;
      group.name = name;
      group.direction = direction;
      choose_unit(group, loads, ports);
      if (group.members.size() < 2)
        continue;
      judge(group, loads, settings);
      groups.push_back(std::move(group));
    }
  };
  for (const auto& [host, ports] : nodes)
    add("node", host, ports);
  if (nodes.size() > 1)
    for (const auto& [rail, ports] : rails)
      add("rail", std::to_string(rail), ports);
  return groups;
}

} // namespace shmemctl
