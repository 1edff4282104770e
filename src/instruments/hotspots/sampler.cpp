// The ports whose counters are read, and a sampler that reads all of them repeatedly at little
// cost.
#include "src/instruments/hotspots/sampler.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <set>

#include "src/base/text.h"
#include "src/instruments/hotspots/counters.h"
#include "src/instruments/hotspots/load.h"
#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

namespace {

constexpr unsigned port_counter_bytes =
    4; ///< unit of port_xmit_data and port_rcv_data (IBA, PortCounters)
/// Maximum age of hw_counters values if the driver does not report it (Linux, RDMA core).
constexpr double usual_lifespan_s = 0.010;

bool has_counter(const MeasuredPort& port, const std::string& counter) {
  return std::any_of(port.counters.begin(), port.counters.end(),
                     [&](const CounterSource& source) { return source.counter == counter; });
}

void add_file(MeasuredPort& port, const std::string& path, const std::string& name,
              const std::string& counter) {
  const bool words = name == "port_xmit_data" || name == "port_rcv_data";
  const std::string shown = counter + (words ? "_bytes" : "");
  if (!has_counter(port, shown))
    port.counters.push_back({shown, path, "", words ? port_counter_bytes : 1});
}

/// @return whether the folder exists
bool add_folder(const Sysroot& sysroot, MeasuredPort& port, const std::string& folder) {
  const std::vector<std::string> names = sysroot.list(folder);
  for (const std::string& name : names) {
    if (name == "lifespan") {
      const auto lifespan_ms = sysroot.read_integer(folder + "/lifespan");
      port.lifespan_s = lifespan_ms && *lifespan_ms >= 0 && *lifespan_ms <= 3'600'000
                            ? static_cast<double>(*lifespan_ms) / 1e3
                            : usual_lifespan_s;
    } else {
      add_file(port, folder + "/" + name, name, name);
    }
  }
  return !names.empty();
}

void add_interface(const Sysroot& sysroot, MeasuredPort& port) {
  if (port.netdev.empty())
    return;
  static constexpr std::array<const char*, 10> statistics = {
      "tx_bytes",   "rx_bytes",  "tx_packets", "rx_packets",       "tx_dropped",
      "rx_dropped", "tx_errors", "rx_errors",  "rx_missed_errors", "rx_crc_errors"};
  const std::string folder = "/sys/class/net/" + port.netdev;
  if (!sysroot.is_directory(folder + "/statistics")) {
    port.missing.push_back(folder + "/statistics");
    return;
  }
  for (const char* name : statistics)
    add_file(port, fmt::format("{}/statistics/{}", folder, name), name,
             std::string("netdev_") + name);
  if (sysroot.exists(folder + "/carrier_changes"))
    add_file(port, folder + "/carrier_changes", "carrier_changes", "carrier_changes");
}

void add_rdma_counters(const Sysroot& sysroot, MeasuredPort& port, bool first_port) {
  const std::string device = "/sys/class/infiniband/" + port.device;
  const std::string folder = fmt::format("{}/ports/{}", device, port.port);
  const bool standard = add_folder(sysroot, port, folder + "/counters");
  const bool own = add_folder(sysroot, port, folder + "/hw_counters");
  // EFA puts commands and failures into this folder.
  const bool devices = first_port && add_folder(sysroot, port, device + "/hw_counters");
  if (!standard && !own && !devices)
    port.missing.push_back(folder + "/counters and hw_counters");
}

MeasuredPort describe(const Nic& nic, const NicPort& of) {
  MeasuredPort port;
  port.device = nic.name;
  port.port = of.number;
  port.netdev = of.netdev ? *of.netdev : "";
  port.rdma = nic.rdma.value.value_or(false);
  const std::string driver = nic.driver.value.value_or("");
  port.software = driver == "rdma_rxe" || driver == "siw";
  port.link_Gbps = of.rate_Gbps;
  if (port.software)
    port.link_Gbps = unknown<double>("the rate of a software device is not that of a link");
  else if (port.link_Gbps && *port.link_Gbps <= 0)
    port.link_Gbps = unknown<double>("the rate reads 0");
  port.numa = nic.numa;
  return port;
}

} // namespace

std::vector<MeasuredPort> measured_ports(const Sysroot& sysroot, const Node& node) {
  const std::vector<NicUse> fabric = fabric_ports(node);
  std::vector<MeasuredPort> ports;
  for (std::size_t nic = 0; nic < node.nics.size(); ++nic) {
    const Nic& device = node.nics[nic];
    for (std::size_t i = 0; i < device.ports.size(); ++i) {
      MeasuredPort port = describe(device, device.ports[i]);
      const auto position = std::find_if(fabric.begin(), fabric.end(), [&](const NicUse& use) {
        return use.nic == static_cast<int>(nic) && use.port == port.port;
      });
      port.fabric = port.rdma && position != fabric.end();
      port.rail = port.fabric ? static_cast<int>(position - fabric.begin()) : -1;
      if (port.rdma)
        add_rdma_counters(sysroot, port, i == 0);
      add_interface(sysroot, port);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

namespace {

/// A selection of the hundreds of driver statistics: physical port, pause, discards, ECN, CRC,
/// PCIe. Per-queue numbers say nothing about a link, and shares of the last second are not counts.
bool is_of_the_link(const std::string& name) {
  static constexpr std::array<std::string_view, 8> words = {"_phy",   "pause", "discard", "_prio",
                                                            "marked", "pci",   "crc",     "missed"};
  if (name == "outbound_pci_stalled_rd" || name == "outbound_pci_stalled_wr")
    return false;
  return name.find("queue") == std::string::npos &&
         std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

/// An open file that is read repeatedly; empty if there is no regular file of that name.
FileDescriptor open_regular(const Sysroot& sysroot, const std::string& path) {
  int error_number = 0;
  return sysroot.open(path, error_number);
}

void add_interface_counters(MeasuredPort& port, const std::vector<NamedCounter>& counters) {
  std::set<std::string> seen;
  for (const CounterSource& source : port.counters)
    seen.insert(source.counter);
  for (const NamedCounter& counter : counters) {
    const std::string name = "ethtool_" + counter.name;
    if (is_of_the_link(counter.name) && seen.insert(name).second)
      port.counters.push_back({name, "", counter.name, 1});
  }
}

} // namespace

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CounterSampler::CounterSampler(const Sysroot& sysroot, const Node& node, KeepFiles keep)
    : sysroot_(sysroot), keep_(keep), ports_(measured_ports(sysroot, node)) {
  for (MeasuredPort& port : ports_) {
    first_of_interface_.push_back(port.counters.size());
    std::vector<std::size_t>& of_load = of_load_.emplace_back();
    for (std::size_t i = 0; i < port.counters.size(); ++i)
      if (is_load_counter(port.counters[i].counter))
        of_load.push_back(i);
    files_.emplace_back(port.counters.size());
    add_interface_counters(port, ask_interface(port));
  }
}

std::size_t CounterSampler::counters() const {
  std::size_t count = 0;
  for (const MeasuredPort& port : ports_)
    count += port.counters.size();
  return count;
}

std::vector<NamedCounter> CounterSampler::ask_interface(const MeasuredPort& port) const {
  if (port.netdev.empty())
    return {};
  if (sysroot_.live())
    return read_ethtool(port.netdev);
  const auto text = sysroot_.read("/ethtool-S/" + port.netdev);
  return text ? parse_ethtool_text(*text) : std::vector<NamedCounter>();
}

void CounterSampler::read_file(std::size_t port, std::size_t counter, CounterText& value) {
  const CounterSource& source = ports_[port].counters[counter];
  FileDescriptor& file = files_[port][counter];
  if (!file)
    file = open_regular(sysroot_, source.path);
  if (!file) {
    value = {std::nullopt, "missing: " + source.path};
    return;
  }
  std::array<char, 128> buffer;
  const ssize_t count = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  if (count < 0)
    value = {std::nullopt, std::string("cannot be read: ") + std::strerror(errno)};
  if (count < 0 || keep_ == KeepFiles::closed)
    file.reset(); // the device may have been removed and added again: reopen the file
  if (count < 0)
    return;
  value = parse_counter_text({buffer.data(), static_cast<std::size_t>(count)});
  if (value.value && *value.value > static_cast<std::uint64_t>(INT64_MAX) / source.scale)
    value = {std::nullopt, "is larger than any counter value"};
  if (value.value)
    *value.value *= source.scale;
}

void CounterSampler::read_interface(std::size_t port, PortSample& sample) {
  const std::vector<CounterSource>& counters = ports_[port].counters;
  const std::size_t first = first_of_interface_[port];
  if (first == counters.size())
    return;
  const std::vector<NamedCounter> now = ask_interface(ports_[port]);
  std::size_t next = 0; // both lists are in the driver's order
  for (std::size_t i = first; i < counters.size(); ++i) {
    std::size_t tried = 0;
    while (tried < now.size() && now[next % now.size()].name != counters[i].key) {
      ++next;
      ++tried;
    }
    if (tried == now.size())
      sample.values[i] = {std::nullopt, "the interface no longer reports it"};
    else
      sample.values[i] = now[next % now.size()].text;
  }
}

void CounterSampler::read(NodeSample& sample, SampleDepth depth, double (*now_s)()) {
  sample.resize(ports_.size());
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    PortSample& into = sample[port];
    const std::size_t count = ports_[port].counters.size();
    into.values.resize(count);
    into.at_s = now_s();
    if (depth == SampleDepth::load) {
      into.skipped.assign(count, true);
      for (const std::size_t i : of_load_[port]) {
        read_file(port, i, into.values[i]);
        into.skipped[i] = false;
      }
      continue;
    }
    into.skipped.assign(count, false);
    for (std::size_t i = 0; i < first_of_interface_[port]; ++i)
      read_file(port, i, into.values[i]);
    read_interface(port, into);
  }
}

} // namespace shmemctl
