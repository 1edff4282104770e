#include "src/topo/nic_counters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <tuple>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;
constexpr std::uint64_t word_bytes = 4; ///< of port_xmit_data and port_rcv_data
constexpr std::uint64_t soft_roce_payload_bytes = 4096;

bool counts_words(const std::string& name) {
  return name == "port_xmit_data" || name == "port_rcv_data";
}

void read_folder(const Sysroot& sysroot, const std::string& folder, const std::string& prefix,
                 const std::vector<std::string>& names, CounterReading reading,
                 std::vector<CounterReading>& out) {
  for (const std::string& name : names) {
    if (name == "lifespan") // how old, in ms, the values may be
      continue;
    const std::optional<std::string> text = sysroot.read_line(folder + "/" + name);
    const std::optional<long long> number = text ? parse_integer(*text) : std::nullopt;
    reading.value.reset();
    if (number && *number >= 0)
      reading.value = static_cast<std::uint64_t>(*number);
    reading.counter = prefix + name;
    if (counts_words(name)) {
      reading.counter += "_bytes";
      if (reading.value)
        *reading.value *= word_bytes;
    }
    out.push_back(reading);
  }
}

/// Bits of IBA's PortCounters attribute (volume 1, 16.1.3.5), which end at their largest value.
/// Where the device keeps wider ones (PortCountersExtended), sysfs gives those.
int width_of(const std::string& counter) {
  static constexpr std::array<std::pair<std::string_view, int>, 11> widths = {{
      {"symbol_error", 16},
      {"link_error_recovery", 8},
      {"link_downed", 8},
      {"port_rcv_errors", 16},
      {"port_rcv_remote_physical_errors", 16},
      {"port_rcv_constraint_errors", 8},
      {"port_xmit_constraint_errors", 8},
      {"port_xmit_discards", 16},
      {"local_link_integrity_errors", 4},
      {"excessive_buffer_overrun_errors", 4},
      {"VL15_dropped", 16},
  }};
  for (const auto& [name, bits] : widths)
    if (name == counter)
      return bits;
  return 32;
}

} // namespace

std::uint64_t counter_step_bytes(const std::string& counter) {
  return counter == "port_xmit_data_bytes" || counter == "port_rcv_data_bytes" ? word_bytes : 1;
}

CounterStep counter_step(const std::string& counter, std::uint64_t before, std::uint64_t after) {
  const std::uint64_t step = counter_step_bytes(counter);
  const std::uint64_t round = two_to_32 * step;
  const std::uint64_t ceiling = ((std::uint64_t{1} << width_of(counter)) - 1) * step;
  if (before == after && (after == ceiling || after == round - step))
    return {std::nullopt,
            fmt::format("stays at {}, the largest value of its width: it tells nothing", after),
            false};
  if (after >= before)
    return {static_cast<std::int64_t>(after - before), "", false};
  if (before < round && before >= round / 4 * 3 && after < round / 4)
    return {static_cast<std::int64_t>(after + round - before), "", true};
  return {std::nullopt, fmt::format("went back from {} to {}: it was reset", before, after), false};
}

std::vector<CounterReading> read_nic_counters(const Sysroot& sysroot, const Node& node) {
  std::vector<CounterReading> readings;
  for (const Nic& nic : node.nics) {
    if (!nic.rdma || !*nic.rdma)
      continue;
    const std::string device = "/sys/class/infiniband/" + nic.name;
    for (const NicPort& port : nic.ports) {
      const std::string folder = fmt::format("{}/ports/{}", device, port.number);
      const CounterReading of_port{nic.name, port.number, {}, {}};
      const auto add = [&](const std::string& from, const std::string& prefix) {
        const std::vector<std::string> names = sysroot.list(from);
        read_folder(sysroot, from, prefix, names, of_port, readings);
        return !names.empty();
      };
      const bool standard = add(folder + "/counters", "");
      if (!add(folder + "/hw_counters", ""))
        add(device + "/hw_counters", "");
      if (!standard && port.netdev)
        read_folder(
            sysroot, "/sys/class/net/" + *port.netdev + "/statistics", "netdev_",
            {"tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "tx_dropped", "rx_dropped"},
            of_port, readings);
    }
  }
  return readings;
}

std::vector<CounterChange> nic_counter_changes(const std::vector<CounterReading>& before,
                                               const std::vector<CounterReading>& after) {
  const auto same = [](const auto& a, const auto& b) {
    return std::tie(a.device, a.port, a.counter) == std::tie(b.device, b.port, b.counter);
  };
  std::vector<CounterChange> changes;
  for (const CounterReading& now : after)
    changes.push_back({now.device, now.port, now.counter, std::nullopt, now.value, std::nullopt});
  for (const CounterReading& then : before) {
    auto found = std::find_if(changes.begin(), changes.end(),
                              [&](const CounterChange& change) { return same(change, then); });
    if (found == changes.end())
      found = changes.insert(changes.end(), {then.device, then.port, then.counter, {}, {}, {}});
    found->before = then.value;
  }
  for (CounterChange& change : changes)
    if (change.before && change.after)
      change.delta = counter_step(change.counter, *change.before, *change.after).delta;
  return changes;
}

std::optional<MovedBytes> moved_bytes(const std::vector<CounterChange>& changes,
                                      const std::string& device, int port,
                                      WireDirection direction) {
  struct Source {
    const char *sent, *received;
    std::uint64_t bytes_each;
  };
  static constexpr std::array<Source, 4> best_first = {{
      {"port_xmit_data_bytes", "port_rcv_data_bytes", 1},
      {"tx_bytes", "rx_bytes", 1},
      {"sent_pkts", "rcvd_pkts", soft_roce_payload_bytes},
      {"netdev_tx_bytes", "netdev_rx_bytes", 1},
  }};
  for (const Source& source : best_first) {
    const std::string name = direction == WireDirection::sent ? source.sent : source.received;
    for (const CounterChange& change : changes)
      if (change.device == device && change.port == port && change.counter == name && change.delta)
        return MovedBytes{static_cast<std::uint64_t>(std::max<std::int64_t>(*change.delta, 0)) *
                              source.bytes_each,
                          name};
  }
  return std::nullopt;
}

} // namespace shmemctl
