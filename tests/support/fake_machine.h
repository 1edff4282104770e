// A fake /sys and /proc in a temporary folder, laid out as a kernel lays out the real ones.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "src/base/sysroot.h"

namespace shmemctl::fake {

/// A PCI function. An attribute that is empty (or, for numbers, negative) gets no file.
struct PciSpec {
  std::string address = {}; ///< "0000:18:00.0"
  /// Bridges above the device, the root port first; made if missing.
  std::vector<std::string> parents = {};
  std::uint32_t class_code = 0x030200; ///< 24 bits
  std::uint32_t vendor = 0x10de;
  std::uint32_t device = 0x2330;
  int numa = 0;                         ///< -1 is written as the kernel does: "-1"
  std::string speed = "32.0 GT/s PCIe"; ///< current_link_speed
  std::string width = "16";             ///< current_link_width
  std::string max_speed = "32.0 GT/s PCIe";
  std::string max_width = "16";
  std::string driver = {};   ///< makes the link `driver`
  std::string root_bus = {}; ///< "0000:15"; default: the bus of the topmost bridge
  std::uint32_t subsystem_vendor = 0x10de;
  std::uint32_t subsystem_device = 0x16c1;
};

struct GidSpec {
  int index = 0;
  std::string value = {};  ///< "fe80:0000:..."
  std::string type = {};   ///< "RoCE v2"; "" creates no file
  std::string netdev = {}; ///< "" creates no file
};

/// A port of an RDMA device. An empty string creates no file.
struct PortSpec {
  int number = 1;
  std::string state = "4: ACTIVE";
  std::string link_layer = "InfiniBand";
  std::string rate = "400 Gb/sec (4X NDR)";
  std::string lid = "0x1";
  std::string phys_state = "5: LinkUp";
  std::vector<GidSpec> gids = {};
};

/// An RDMA device. Without `pci` it is a virtual one (Soft-RoCE) whose `parent` file names a
/// netdev.
struct RdmaSpec {
  std::string name = {};          ///< "mlx5_0"
  std::string pci = {};           ///< address of a function added before
  std::string parent_netdev = {}; ///< for virtual devices
  std::string node_guid = "0011:2233:4455:6677";
  std::string firmware = "28.39.1002";
  std::vector<PortSpec> ports = {PortSpec{}};
};

/// A network interface. With `pci` empty it is virtual (lo, bond0).
struct NetdevSpec {
  std::string name = {};
  std::string pci = {};
  std::string below = {};       ///< folder between function and net: "virtio2"
  std::string speed = "100000"; ///< Mbit/s; "-1" as the kernel says for a link that is down
  std::string operstate = "up";
  std::string mtu = "1500";
  std::string type = "1"; ///< ARPHRD: 1 Ethernet, 32 InfiniBand
  std::string address = "02:00:00:00:00:01";
  std::string dev_port = "0";
};

/// CPUs are numbered package by package, NUMA node by NUMA node.
struct CpuSpec {
  int packages = 2;
  int numa_per_package = 1;
  int cpus_per_numa = 2;
  std::uint64_t memory_kB_per_numa = 1048576;
  std::string model = "Fake CPU 9000";
};

/// The folder goes, with all that is in it, when the object goes. Paths given are absolute as the
/// machine writes them ("/sys/class/net"). Any failure throws: a test's tree must be what it says.
class FakeMachine {
public:
  FakeMachine() {
    // Thousands of small files: memory, where there is some, is a hundred times faster than disk.
    for (const std::string& folder :
         {std::string("/dev/shm"), std::filesystem::temp_directory_path().string()}) {
      std::string pattern = folder + "/test-shmemctl-fake-XXXXXX";
      if (!::mkdtemp(pattern.data()))
        continue;
      root_ = std::filesystem::canonical(pattern).string();
      directory("/sys");
      directory("/proc");
      return;
    }
    throw std::runtime_error("no folder for a fake machine could be made");
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;
  ~FakeMachine() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  const std::string& root() const { return root_; }
  Sysroot sysroot() const { return Sysroot(root_); }
  std::string host_path(const std::string& path) const { return root_ + path; }

  void directory(const std::string& path) { std::filesystem::create_directories(host_path(path)); }
  /// Writes a file, making the folders above it; replaces what was there.
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(host_path(path)).parent_path());
    std::ofstream file(host_path(path), std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file)
      throw std::runtime_error("write " + path);
  }
  /// A link with exactly this target (relative ones are relative to the link's folder).
  void symlink(const std::string& path, const std::string& target) {
    std::filesystem::create_directories(std::filesystem::path(host_path(path)).parent_path());
    std::filesystem::remove(host_path(path));
    std::filesystem::create_symlink(target, host_path(path));
  }
  /// A relative link from one path of the machine to another, as sysfs has them.
  void link(const std::string& path, const std::string& to) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    symlink(path, std::filesystem::path(to).lexically_relative(folder).string());
  }
  void remove(const std::string& path) { std::filesystem::remove_all(host_path(path)); }

  /// Adds a PCI function and the bridges above it that are missing. Returns its sysfs path.
  std::string add_pci(const PciSpec& spec) {
    const std::string& top = spec.parents.empty() ? spec.address : spec.parents.front();
    const std::string root_bus = spec.root_bus.empty() ? bus_of(top) : spec.root_bus;
    std::string path = "/sys/devices/pci" + root_bus;
    add_bus(root_bus, path);
    for (std::size_t i = 0; i < spec.parents.size(); ++i) {
      path += "/" + spec.parents[i];
      const std::string& below = i + 1 < spec.parents.size() ? spec.parents[i + 1] : spec.address;
      if (!std::filesystem::exists(host_path(path + "/class"))) {
        PciSpec bridge = spec;
        bridge.class_code = 0x060400;
        bridge.vendor = 0x1000;
        bridge.device = 0xc030;
        bridge.driver = "pcieport";
        write_function(path, spec.parents[i], bridge);
      }
      add_bus(bus_of(below), path);
    }
    path += "/" + spec.address;
    write_function(path, spec.address, spec);
    return path;
  }

  /// An NVIDIA GPU with the driver's files under /proc. Returns its sysfs path.
  std::string add_gpu(const std::string& address, const std::vector<std::string>& parents, int numa,
                      const std::string& model = "NVIDIA H100 80GB HBM3") {
    const std::string path =
        add_pci({.address = address, .parents = parents, .numa = numa, .driver = "nvidia"});
    write("/proc/driver/nvidia/gpus/" + address + "/information",
          fmt::format("Model: \t\t {}\nIRQ:   \t\t 100\nGPU UUID: \t {}\nVideo BIOS: \t "
                      "96.00.74.00.01\nBus Type: \t PCIe\nBus Location: \t {}\nDevice Minor: \t "
                      "{}\nGPU Excluded:\t No\n",
                      model, uuid_of(address), address, gpus_));
    ++gpus_;
    return path;
  }
  /// The UUID that add_gpu() gives to the GPU at this address.
  static std::string uuid_of(const std::string& address) {
    return fmt::format("GPU-00000000-0000-0000-0000-{:012x}",
                       std::hash<std::string>{}(address)&0xffffffffffffU);
  }

  /// A Mellanox network function (class 0x0207 InfiniBand, or 0x0200). Returns its sysfs path.
  std::string add_hca(const std::string& address, const std::vector<std::string>& parents, int numa,
                      std::uint32_t class_code = 0x020700) {
    return add_pci({.address = address,
                    .parents = parents,
                    .class_code = class_code,
                    .vendor = 0x15b3,
                    .device = 0x1021,
                    .numa = numa,
                    .driver = "mlx5_core",
                    .subsystem_vendor = 0x15b3,
                    .subsystem_device = 0x0041});
  }

  /// Adds an RDMA device on a function that add_pci() made, or a virtual one.
  void add_rdma(const RdmaSpec& spec) {
    const std::string function = spec.pci.empty() ? "" : path_of(spec.pci);
    const std::string path =
        (function.empty() ? "/sys/devices/virtual" : function) + "/infiniband/" + spec.name;
    directory(path);
    link("/sys/class/infiniband/" + spec.name, path);
    if (!function.empty())
      link(path + "/device", function);
    write_unless_empty(path + "/parent", spec.parent_netdev);
    write_unless_empty(path + "/node_guid", spec.node_guid);
    write_unless_empty(path + "/fw_ver", spec.firmware);
    write(path + "/node_type", "1: CA\n");
    for (const PortSpec& port : spec.ports)
      write_port(path + "/ports/" + std::to_string(port.number), port);
  }

  /// Adds a network interface on a function that add_pci() made, or a virtual one.
  void add_netdev(const NetdevSpec& spec) {
    std::string device = spec.pci.empty() ? "" : path_of(spec.pci);
    if (!spec.below.empty())
      device += "/" + spec.below;
    const std::string path =
        (device.empty() ? "/sys/devices/virtual" : device) + "/net/" + spec.name;
    directory(path);
    link("/sys/class/net/" + spec.name, path);
    if (!device.empty())
      link(path + "/device", device);
    write_unless_empty(path + "/speed", spec.speed);
    write_unless_empty(path + "/operstate", spec.operstate);
    write_unless_empty(path + "/mtu", spec.mtu);
    write_unless_empty(path + "/type", spec.type);
    write_unless_empty(path + "/address", spec.address);
    write_unless_empty(path + "/dev_port", spec.dev_port);
  }

  /// Packages, CPUs and NUMA nodes, as hwloc reads them.
  void add_cpu_topology(const CpuSpec& spec = {}) {
    const int nodes = spec.packages * spec.numa_per_package;
    const int cpus = nodes * spec.cpus_per_numa;
    const int per_package = spec.numa_per_package * spec.cpus_per_numa;
    std::string cpuinfo;
    for (int cpu = 0; cpu < cpus; ++cpu) {
      const int package = cpu / per_package;
      const std::string topology =
          "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      write(topology + "physical_package_id", std::to_string(package) + "\n");
      write(topology + "core_id", std::to_string(cpu % per_package) + "\n");
      for (const char* name : {"core_cpus", "thread_siblings"})
        write(topology + name, mask(cpu, 1, cpus));
      for (const char* name : {"package_cpus", "core_siblings"})
        write(topology + name, mask(package * per_package, per_package, cpus));
      cpuinfo += fmt::format("processor\t: {}\nvendor_id\t: GenuineIntel\nmodel name\t: {}\n"
                             "physical id\t: {}\ncore id\t\t: {}\n\n",
                             cpu, spec.model, package, cpu % per_package);
    }
    write("/proc/cpuinfo", cpuinfo);
    for (const char* name : {"online", "possible", "present"}) {
      write(std::string("/sys/devices/system/cpu/") + name, range(0, cpus));
      write(std::string("/sys/devices/system/node/") + name, range(0, nodes));
    }
    for (int node = 0; node < nodes; ++node) {
      const std::string path = "/sys/devices/system/node/node" + std::to_string(node) + "/";
      write(path + "cpumap", mask(node * spec.cpus_per_numa, spec.cpus_per_numa, cpus));
      write(path + "cpulist", range(node * spec.cpus_per_numa, spec.cpus_per_numa));
      write(path + "meminfo",
            fmt::format("Node {0} MemTotal:       {1} kB\nNode {0} MemFree:        {1} kB\n", node,
                        spec.memory_kB_per_numa));
      std::string distances;
      for (int other = 0; other < nodes; ++other)
        distances += fmt::format("{}{}", other ? " " : "", other == node ? 10 : 20);
      write(path + "distance", distances + "\n");
    }
  }

  /// A healthy two-socket node: 8 GPUs and 8 HCAs, one pair per PCIe switch, 4 switches per NUMA
  /// node. GPU i and mlx5_i are PIX to each other; GPUs of a socket are NODE apart, else SYS.
  void add_hgx_node() {
    write("/proc/sys/kernel/hostname", "hgx\n");
    add_cpu_topology();
    for (int i = 0; i < 8; ++i) {
      const int numa = i / 4;
      const std::vector<std::string> above = {hgx_address(i, 0, 1), hgx_address(i, 1, 0)};
      std::vector<std::string> to_gpu = above, to_nic = above;
      to_gpu.push_back(hgx_address(i, 2, 0));
      to_nic.push_back(hgx_address(i, 2, 1));
      add_gpu(hgx_address(i, 3, 0), to_gpu, numa);
      add_hca(hgx_address(i, 4, 0), to_nic, numa);
      const std::string netdev = fmt::format("ib{}", i);
      add_netdev({.name = netdev, .pci = hgx_address(i, 4, 0), .speed = "400000", .type = "32"});
      add_rdma(
          {.name = fmt::format("mlx5_{}", i),
           .pci = hgx_address(i, 4, 0),
           .node_guid = fmt::format("0011:2233:4455:660{}", i),
           .ports = {{.lid = fmt::format("0x{:x}", i + 1),
                      .gids = {{.index = 0,
                                .value = fmt::format("fe80:0000:0000:0000:0011:2233:4455:660{}", i),
                                .type = "IB/RoCE v1"}}}}});
    }
  }
  static std::string hgx_gpu(int index) { return hgx_address(index, 3, 0); }
  static std::string hgx_nic(int index) { return hgx_address(index, 4, 0); }

  /// The sysfs path of a function that was added.
  std::string path_of(const std::string& address) const {
    const std::filesystem::path at = host_path("/sys/bus/pci/devices/" + address);
    return "/" + std::filesystem::canonical(at).lexically_relative(root_).string();
  }

private:
  static std::string bus_of(const std::string& address) {
    return address.substr(0, address.rfind(':'));
  }
  /// Switch i has the buses 0x10 + 0x18 * i and following; one root complex each.
  static std::string hgx_address(int index, int bus, int device) {
    return fmt::format("0000:{:02x}:{:02x}.0", 0x10 + 0x18 * index + bus, device);
  }
  static std::string range(int first, int count) {
    return count == 1 ? fmt::format("{}\n", first)
                      : fmt::format("{}-{}\n", first, first + count - 1);
  }
  /// The kernel's bit mask of CPUs: words of 32 bits, the highest first.
  static std::string mask(int first, int count, int cpus) {
    std::vector<std::uint32_t> words(static_cast<std::size_t>((cpus + 31) / 32), 0);
    for (int cpu = first; cpu < first + count; ++cpu)
      words[static_cast<std::size_t>(cpu / 32)] |= 1U << (cpu % 32);
    std::string text;
    for (std::size_t i = words.size(); i-- > 0;)
      text += fmt::format("{:08x}{}", words[i], i ? "," : "\n");
    return text;
  }

  void write_unless_empty(const std::string& path, const std::string& text) {
    if (!text.empty())
      write(path, text + "\n");
  }
  /// The bus below `bridge`, with the class link that NVSHMEM and CUDA tools resolve.
  void add_bus(const std::string& bus, const std::string& bridge) {
    const std::string path = bridge + "/pci_bus/" + bus;
    directory(path);
    link(path + "/device", bridge);
    link("/sys/class/pci_bus/" + bus, path);
  }
  void write_function(const std::string& path, const std::string& address, const PciSpec& spec) {
    directory(path);
    link("/sys/bus/pci/devices/" + address, path);
    link(path + "/subsystem", "/sys/bus/pci");
    write(path + "/class", fmt::format("0x{:06x}\n", spec.class_code));
    write(path + "/vendor", fmt::format("0x{:04x}\n", spec.vendor));
    write(path + "/device", fmt::format("0x{:04x}\n", spec.device));
    write(path + "/subsystem_vendor", fmt::format("0x{:04x}\n", spec.subsystem_vendor));
    write(path + "/subsystem_device", fmt::format("0x{:04x}\n", spec.subsystem_device));
    write(path + "/numa_node", fmt::format("{}\n", spec.numa));
    write_unless_empty(path + "/current_link_speed", spec.speed);
    write_unless_empty(path + "/current_link_width", spec.width);
    write_unless_empty(path + "/max_link_speed", spec.max_speed);
    write_unless_empty(path + "/max_link_width", spec.max_width);
    if (!spec.driver.empty()) {
      const std::string driver = "/sys/bus/pci/drivers/" + spec.driver;
      link(path + "/driver", driver);
      link(driver + "/" + address, path);
      write("/sys/module/" + spec.driver + "/initstate", "live\n");
      link(driver + "/module", "/sys/module/" + spec.driver);
    }
  }
  void write_port(const std::string& path, const PortSpec& port) {
    directory(path);
    write_unless_empty(path + "/state", port.state);
    write_unless_empty(path + "/phys_state", port.phys_state);
    write_unless_empty(path + "/link_layer", port.link_layer);
    write_unless_empty(path + "/rate", port.rate);
    write_unless_empty(path + "/lid", port.lid);
    for (const GidSpec& gid : port.gids) {
      write(path + "/gids/" + std::to_string(gid.index), gid.value + "\n");
      write_unless_empty(path + "/gid_attrs/types/" + std::to_string(gid.index), gid.type);
      write_unless_empty(path + "/gid_attrs/ndevs/" + std::to_string(gid.index), gid.netdev);
    }
  }

  std::string root_;
  int gpus_ = 0;
};

} // namespace shmemctl::fake
