#include "src/hotspots/measured_port.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "src/topo/mapping/mapping.h"

namespace shmemctl {

namespace {

constexpr unsigned word_bytes = 4; ///< of port_xmit_data and port_rcv_data (IBA, PortCounters)
/// How old values of hw_counters may be where the driver does not say (Linux, RDMA core).
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
    port.counters.push_back({shown, path, "", words ? word_bytes : 1});
}

/// @return whether the folder is there
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
  // EFA keeps commands and failures there.
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
    port.link_Gbps = unknown<double>("the rate of a software device is made up");
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
      const auto place = std::find_if(fabric.begin(), fabric.end(), [&](const NicUse& use) {
        return use.nic == static_cast<int>(nic) && use.port == port.port;
      });
      port.fabric = port.rdma && place != fabric.end();
      port.rail = port.fabric ? static_cast<int>(place - fabric.begin()) : -1;
      if (port.rdma)
        add_rdma_counters(sysroot, port, i == 0);
      add_interface(sysroot, port);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

} // namespace shmemctl
