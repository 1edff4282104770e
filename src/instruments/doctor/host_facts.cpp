// The facts of a machine that should be the same on all hosts of its type.
#include "src/instruments/doctor/host_facts.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/doctor/libraries.h"
#include "src/instruments/doctor/pcie.h"
#include "src/instruments/doctor/settings.h"
#include "src/instruments/doctor/support.h"
#include "src/model/topo/inventory.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

namespace {

using namespace doctor;

constexpr std::size_t max_value_bytes = 200;

/// Makes a text a part of a fact's name by replacing the dots, which separate parts.
std::string part_of_name(const std::string& name) {
  std::string part = printable(name, 64);
  std::replace(part.begin(), part.end(), '.', '_');
  return part;
}

/// Collects known facts.
class FactList {
public:
  explicit FactList(std::map<std::string, std::string>& to) : to_(to) {}

  void add(const std::string& name, const std::string& value) {
    if (!value.empty())
      to_[name] = printable(value, max_value_bytes);
  }
  template <class T>
  void add(const std::string& name, const std::optional<T>& value) {
    if (!value)
      return;
    if constexpr (std::is_convertible_v<T, std::string>)
      add(name, std::string(*value));
    else
      add(name, fmt::format("{:g}", static_cast<double>(*value)));
  }
  template <class T>
  void add(const std::string& name, const Fact<T>& fact) {
    add(name, fact.value);
  }

private:
  std::map<std::string, std::string>& to_;
};

/// Estimates the installed memory from MemTotal. The kernel keeps 1% to 2% for itself, and the
/// amount varies between boots. Rounds up to a multiple of a sixteenth of the largest power of two
/// that is not above the size.
std::string about(std::uint64_t size_bytes) {
  const std::uint64_t step = std::max<std::uint64_t>(std::bit_floor(size_bytes) / 16, 1);
  return format_size_bytes((size_bytes + step - 1) / step * step);
}

void add_system(const Node& node, const Sysroot& sysroot, FactList& facts) {
  const nlohmann::json host = host_json(node, &sysroot);
  for (const auto& [name, version] : versions_of(host))
    facts.add(name == "kernel" ? name : "driver." + part_of_name(name), version);
  if (const auto driver =
          parse_nvidia_version(sysroot.read("/proc/driver/nvidia/version").value_or(""))) {
    facts.add("driver.nvidia", driver->version);
    facts.add("driver.nvidia_modules", driver->open_modules ? "open" : "proprietary");
  }
  if (sysroot.is_directory("/sys/module"))
    for (const char* module : {"nvidia_peermem", "gdrdrv", "ib_uverbs", "rdma_ucm"})
      facts.add(std::string("module.") + module,
                module_evidence(sysroot, module) ? "loaded" : "not loaded");
  if (const auto release = sysroot.read("/etc/os-release"))
    for (const std::string& line : split(*release, '\n'))
      if (starts_with(line, "PRETTY_NAME=")) {
        std::string name = line.substr(line.find('=') + 1);
        std::erase(name, '"');
        facts.add("os", name);
      }
  facts.add("clocksource",
            sysroot.read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
  facts.add("ptrace_scope", sysroot.read_line("/proc/sys/kernel/yama/ptrace_scope"));
  const std::string limits = sysroot.read("/proc/self/limits").value_or("");
  if (const auto limit = find_limit(limits, "Max locked memory"))
    facts.add("limit.memlock", limit->soft ? format_size_bytes(*limit->soft) : "unlimited");
  if (const auto limit = find_limit(limits, "Max open files"))
    facts.add("limit.nofile", limit->soft ? std::to_string(*limit->soft) : "unlimited");
  for (const auto& [library, version] : installed_libraries(sysroot))
    facts.add("library." + library, version.empty() ? "of unknown version" : version);
}

void add_cpus_and_memory(const Node& node, const Sysroot& sysroot, FactList& facts) {
  if (!node.packages.empty()) {
    facts.add("cpu.model", node.packages.front().model);
    facts.add("cpu.packages", std::to_string(node.packages.size()));
  }
  if (!node.numa_nodes.empty())
    facts.add("cpu.numa_nodes",
              std::to_string(
                  std::count_if(node.numa_nodes.begin(), node.numa_nodes.end(),
                                [](const NumaNode& numa) { return numa.kind == NumaKind::cpu; })));
  facts.add("cpu.online", sysroot.read_line("/sys/devices/system/cpu/online"));
  std::vector<std::string> names;
  for (const auto& governor : governors(sysroot))
    names.push_back(governor.first);
  facts.add("cpu.governor", join(names, ", "));
  if (const auto total = memory_bytes(sysroot))
    facts.add("memory.total", about(*total));
  if (const auto total = shm_bytes(sysroot); total && *total > 0)
    facts.add("memory.dev_shm", about(*total));
  facts.add("memory.transparent_hugepages", transparent_huge_pages(sysroot));
  for (const auto& [pool, count] : huge_page_pools(sysroot))
    facts.add("memory." + part_of_name(pool), std::to_string(count));
  facts.add("memory.numa_balancing", sysroot.read_line("/proc/sys/kernel/numa_balancing"));
}

/// Adds the facts that GPUs and NICs have in common.
void add_device(const std::string& name, const InventoryDevice& device, const Sysroot& sysroot,
                FactList& facts) {
  const PcieLink& link = device.link;
  if (link.width && *link.width > 0) // virtual machines report 0
    facts.add(name + ".pcie_width", link.width);
  facts.add(name + ".numa", device.numa);
  if (const auto address = device.pci ? parse_pci_address(*device.pci) : std::nullopt)
    if (const std::optional<IommuGroup> group = iommu_group(sysroot, *address))
      facts.add(name + ".iommu", group->type.value_or("of unknown type"));
}

void add_gpus(const Node& node, const Sysroot& sysroot, FactList& facts) {
  const std::vector<InventoryDevice> gpus = gpu_inventory(node);
  facts.add("gpu.count", std::to_string(gpus.size()));
  if (!gpus.empty())
    facts.add("gpu.nvswitches", std::to_string(node.nvswitches));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const InventoryDevice& gpu = gpus[i];
    const std::string name = "gpu." + std::to_string(i);
    facts.add(name, gpu.model ? gpu.model.value : std::optional(gpu.pci_id.value.value_or("GPU")));
    facts.add(name + ".vbios", gpu.vbios);
    if (gpu.reports_links)
      facts.add(name + ".nvlinks", gpu.nvlinks);
    // An idle GPU lowers the speed of its link, so the current speed varies and is left out.
    facts.add(name + ".pcie_max_speed_GTps", gpu.link.max_speed_GTps);
    add_device(name, gpu, sysroot, facts);
  }
}

void add_port(const std::string& name, const RdmaPort& at, const Sysroot& sysroot,
              FactList& facts) {
  const NicPort& port = *at.port;
  if (port.state)
    facts.add(name, to_string(*port.state));
  if (port.link_layer)
    facts.add(name + ".link_layer", to_string(*port.link_layer));
  if (port.state.value != PortState::active)
    return; // rate and MTU of a port that is down mean nothing
  facts.add(name + ".rate_Gbps", port.rate_Gbps);
  facts.add(name + ".mtu_bytes", port_mtu_bytes(sysroot, at));
  if (port.link_layer.value == LinkLayer::ethernet)
    facts.add(name + ".gids", gid_kinds(port));
}

void add_nics(const Node& node, const Sysroot& sysroot, FactList& facts) {
  const std::vector<InventoryDevice> nics = nic_inventory(node);
  facts.add("nic.count", std::to_string(nics.size()));
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const InventoryDevice& nic = nics[i];
    const std::string name = "nic." + (nic.name ? part_of_name(*nic.name) : std::to_string(i));
    facts.add(name, nic.pci_id.value.value_or("RDMA NIC"));
    facts.add(name + ".driver", nic.driver);
    facts.add(name + ".firmware", nic.firmware);
    facts.add(name + ".pcie_speed_GTps", nic.link.speed_GTps);
    add_device(name, nic, sysroot, facts);
    if (const auto address = nic.pci ? parse_pci_address(*nic.pci) : std::nullopt)
      if (const auto space = read_config_space(sysroot, *address))
        if (const auto control = space->device_control()) {
          facts.add(name + ".max_read_request_bytes",
                    std::to_string(max_read_request_bytes(*control)));
          facts.add(name + ".relaxed_ordering",
                    (*control & devctl_relaxed_ordering) != 0 ? "on" : "off");
        }
  }
  for (const RdmaPort& at : rdma_ports(node))
    if (!at.nic->virtual_device)
      add_port(fmt::format("nic.{}.port{}", part_of_name(at.nic->name), at.port->number), at,
               sysroot, facts);
}

/// Adds interfaces that have their own hardware. Virtual interfaces come and go, and virtual
/// functions belong to guests.
void add_interfaces(const Sysroot& sysroot, FactList& facts) {
  for (const std::string& interface : sysroot.list("/sys/class/net")) {
    const std::string folder = "/sys/class/net/" + interface;
    if (!sysroot.exists(folder + "/device") || sysroot.exists(folder + "/device/physfn"))
      continue;
    const std::string name = "netdev." + part_of_name(interface);
    const std::string state = sysroot.read_line(folder + "/operstate").value_or("unknown");
    facts.add(name, state);
    facts.add(name + ".mtu_bytes", sysroot.read_line(folder + "/mtu"));
    if (const auto speed_Mbps = sysroot.read_integer(folder + "/speed");
        state == "up" && speed_Mbps && *speed_Mbps > 0)
      facts.add(name + ".speed_Mbps", std::to_string(*speed_Mbps));
  }
}

} // namespace

HostFacts read_host_facts(const Node& node, const Sysroot& sysroot) {
  HostFacts host;
  host.host = node.hostname;
  FactList facts(host.facts);
  add_system(node, sysroot, facts);
  add_cpus_and_memory(node, sysroot, facts);
  add_gpus(node, sysroot, facts);
  add_nics(node, sysroot, facts);
  add_interfaces(sysroot, facts);
  return host;
}

} // namespace shmemctl
