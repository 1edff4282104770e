#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/xml_text.h"
#include "src/model/topo/cpus.h"
#include "src/model/topo/node_fields.h"
#include "src/model/topo/readers/nccl_xml.h"
#include "src/model/topo/readers/xml.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

namespace {

/// One element being written. NCCL takes at most 16 attributes and no tabs between them.
class Tag {
public:
  Tag(std::string& out, int depth, std::string name)
      : out_(out), indent_(static_cast<std::size_t>(2 * depth), ' '), name_(std::move(name)) {
    out_ += indent_ + "<" + name_;
  }
  void attribute(const char* key, const std::string& value) {
    out_ += fmt::format(" {}=\"{}\"", key, value);
  }
  template <class T>
  void hexadecimal(const char* key, const Fact<T>& fact, int digits) {
    if (fact)
      attribute(key, fmt::format("0x{:0{}x}", *fact, digits));
  }
  void end_empty() { out_ += "/>\n"; }
  void open() { out_ += ">\n"; }
  void close() { out_ += indent_ + "</" + name_ + ">\n"; }

private:
  std::string& out_;
  std::string indent_;
  std::string name_;
};

/// The value with XML's characters escaped, cut where NCCL would overflow.
std::string short_text(std::string value) {
  std::string escaped = xml_escape(value);
  while (escaped.size() > nccl::max_value_bytes) {
    value.resize(std::min(value.size() - 1, nccl::max_value_bytes));
    escaped = xml_escape(value);
  }
  return escaped;
}

/// "16.0 GT/s PCIe": NCCL looks the whole text up.
std::string speed_text(const Fact<double>& speed_GTps) {
  if (!speed_GTps)
    return "";
  return *speed_GTps == std::round(*speed_GTps) ? fmt::format("{:.1f} GT/s PCIe", *speed_GTps)
                                                : fmt::format("{} GT/s PCIe", *speed_GTps);
}

const char* target_class(const GpuLink& link) {
  switch (link.target) {
  case LinkTarget::gpu:
    return link.kind == GpuLinkKind::xgmi ? "0x120000" : "0x030200";
  case LinkTarget::nvswitch:
    return "0x068000";
  case LinkTarget::cpu:
    return "0x068001";
  case LinkTarget::unknown:
    break;
  }
  return nullptr;
}

/// NCCL's elements of a node.
class PlainWriter {
public:
  explicit PlainWriter(const Node& node) : node_(node) { arrange(); }

  /// From <system> to the last <cpu>; </system> is left to the caller.
  std::string write() {
    out_ = "<system version=\"1\">\n";
    bool virtual_nics = true; // still to be written
    for (const Group& group : groups_) {
      // NCCL reads the architecture of a CPU from the machine only if a device is below it.
      if (group.roots.empty() && !(virtual_nics && !nics_at_[-1].empty()))
        continue;
      Tag cpu(out_, 1, "cpu");
      cpu.attribute("numaid", std::to_string(group.numa));
      if (const std::string mask = affinity(group.numa); !mask.empty())
        cpu.attribute("affinity", mask);
      cpu.open();
      for (int entry : group.roots)
        write_pci(entry, 2);
      if (std::exchange(virtual_nics, false))
        write_nics(-1, 2);
      cpu.close();
    }
    return out_;
  }

private:
  struct Group {
    int host_bridge = -1; ///< host bridge in a source that groups by CPU itself, else -1
    int numa = -1;
    std::vector<int> roots;
  };

  const PciDevice& pci(int entry) const { return node_.pci[static_cast<std::size_t>(entry)]; }
  bool valid(int entry) const { return entry >= 0 && entry < static_cast<int>(node_.pci.size()); }
  int bridge_above(int entry) const {
    const int parent = pci(entry).parent;
    return valid(parent) && parent < entry ? parent : -1;
  }

  /// NCCL follows sysfs upwards two steps at a time, so that it sees only the upstream port of a
  /// switch, and no root port. This function skips the same bridges.
  int parent_in_xml(int entry) const {
    const int above = bridge_above(entry);
    if (above < 0 || pci(above).kind != PciKind::bridge)
      return above;
    return bridge_above(above);
  }

  void arrange() {
    std::set<PciAddress> endpoints;
    for (std::size_t i = 0; i < node_.gpus.size(); ++i)
      if (valid(node_.gpus[i].pci))
        gpus_at_[node_.gpus[i].pci].push_back(i);
    for (std::size_t i = 0; i < node_.nics.size(); ++i)
      nics_at_[valid(node_.nics[i].pci) ? node_.nics[i].pci : -1].push_back(i);
    std::set<int> wanted;
    for (int entry = 0; entry < static_cast<int>(node_.pci.size()); ++entry) {
      const bool used = gpus_at_.count(entry) + nics_at_.count(entry) > 0;
      if (pci(entry).kind == PciKind::whole_switch ||
          (used && endpoints.insert(pci(entry).address).second))
        want(entry, wanted);
    }
    for (const HostBridge& bridge : node_.host_bridges)
      if (!bridge.exact)
        groups_.push_back(
            {static_cast<int>(&bridge - node_.host_bridges.data()), numa_id(bridge.numa), {}});
    for (int entry : wanted)
      place(entry);
    if (groups_.empty() && !node_.nics.empty())
      groups_.push_back({});
  }

  void want(int entry, std::set<int>& wanted) const {
    while (entry >= 0 && wanted.insert(entry).second)
      entry = parent_in_xml(entry);
  }

  /// Parents come first, so that their depth is known.
  void place(int entry) {
    constexpr int deepest = 150; // XML nests no deeper than max_nesting
    const int parent = parent_in_xml(entry);
    const int depth = parent < 0 ? 0 : depth_[parent] + 1;
    if (parent >= 0 && depth < deepest) {
      depth_[entry] = depth;
      children_[parent].push_back(entry);
    } else {
      depth_[entry] = 0;
      group_of(entry).roots.push_back(entry);
    }
  }

  static int numa_id(const Fact<int>& numa) {
    return numa && *numa >= 0 && *numa < 65536 ? *numa : -1;
  }

  Group& group_of(int entry) {
    const int index = pci(entry).host_bridge;
    const bool placed = index >= 0 && index < static_cast<int>(node_.host_bridges.size());
    const HostBridge* bridge =
        placed ? &node_.host_bridges[static_cast<std::size_t>(index)] : nullptr;
    const bool own = bridge != nullptr && !bridge->exact;
    const bool from_bridge = !pci(entry).numa && bridge != nullptr;
    const Group wanted{
        own ? index : -1, numa_id(own || from_bridge ? bridge->numa : pci(entry).numa), {}};
    for (Group& group : groups_)
      if (group.host_bridge == wanted.host_bridge && group.numa == wanted.numa)
        return group;
    groups_.push_back(wanted);
    return groups_.back();
  }

  std::string affinity(int numa) const {
    for (const NumaNode& candidate : node_.numa_nodes) {
      if (candidate.os_index != numa || !candidate.cpus)
        continue;
      const std::optional<CpuSet> cpus = parse_cpulist(*candidate.cpus);
      const std::string mask = cpus && !cpus->empty() ? format_cpumap(*cpus) : "";
      return mask.size() <= nccl::max_value_bytes ? mask : "";
    }
    return "";
  }

  void write_pci(int entry, int depth) {
    const PciDevice& device = pci(entry);
    Tag tag(out_, depth, "pci");
    tag.attribute("busid", to_string(device.address));
    if (device.class_code && *device.class_code <= 0xffffff)
      tag.hexadecimal("class", device.class_code, 6);
    tag.hexadecimal("vendor", device.vendor, 4);
    tag.hexadecimal("device", device.device, 4);
    tag.hexadecimal("subsystem_vendor", device.subsystem_vendor, 4);
    tag.hexadecimal("subsystem_device", device.subsystem_device, 4);
    // NCCL reads both values, expects the link's maximum (an idle GPU's link runs slower), and
    // treats "" and 0 as unknown.
    const PcieLink& link = device.link;
    tag.attribute("link_speed",
                  speed_text(link.max_speed_GTps ? link.max_speed_GTps : link.speed_GTps));
    const Fact<int>& width = link.max_width ? link.max_width : link.width;
    tag.attribute("link_width", std::to_string(width ? *width : 0));
    tag.open();
    for (std::size_t gpu : gpus_at_[entry])
      write_gpu(node_.gpus[gpu], depth + 1);
    write_nics(entry, depth + 1);
    for (int child : children_[entry])
      write_pci(child, depth + 1);
    tag.close();
  }

  void write_gpu(const Gpu& gpu, int depth) {
    Tag tag(out_, depth, "gpu");
    if (gpu.driver_index)
      tag.attribute("dev", std::to_string(*gpu.driver_index));
    tag.open();
    for (const GpuLink& link : gpu.links)
      if (link.count > 0 && link.count < 1000)
        write_link(link, depth + 1);
    tag.close();
  }

  void write_link(const GpuLink& link, int depth) {
    if (link.kind == GpuLinkKind::c2c) {
      if (!link.bandwidth_GBps || !(*link.bandwidth_GBps > 0 && *link.bandwidth_GBps < 1e6))
        return; // NCCL refuses one without bw
      Tag tag(out_, depth, "c2c");
      tag.attribute("bw", fmt::format("{:.0f}", *link.bandwidth_GBps * 1000));
      tag.attribute("count", std::to_string(link.count));
      return tag.end_empty();
    }
    Tag tag(out_, depth, link.kind == GpuLinkKind::xgmi ? "xgmi" : "nvlink");
    tag.attribute("target",
                  link.target_address ? to_string(*link.target_address) : "fffffff:ff:ff.0");
    tag.attribute("count", std::to_string(link.count));
    if (const char* const tclass = target_class(link))
      tag.attribute("tclass", tclass);
    tag.end_empty();
  }

  /// @param entry the function, or -1 for the NICs without a function
  void write_nics(int entry, int depth) {
    const std::vector<std::size_t>& nics = nics_at_[entry];
    // A label of ours is not a name: NCCL identifies such a NIC by the PCI class alone.
    if (std::all_of(nics.begin(), nics.end(),
                    [this](std::size_t nic) { return node_.nics[nic].unnamed; }))
      return;
    Tag tag(out_, depth, "nic");
    tag.open();
    for (std::size_t i = 0; i < nics.size(); ++i)
      if (!node_.nics[nics[i]].unnamed)
        write_nets(node_.nics[nics[i]], static_cast<int>(i), depth + 1);
    tag.close();
  }

  /// One <net> per port. NCCL continues the count of `port` over the devices of one function.
  void write_nets(const Nic& nic, int position, int depth) {
    std::vector<const NicPort*> ports;
    for (const NicPort& port : nic.ports)
      ports.push_back(&port);
    if (ports.empty())
      ports.push_back(nullptr);
    for (const NicPort* port : ports) {
      Tag tag(out_, depth, "net");
      if (!nic.name.empty())
        tag.attribute("name", short_text(nic.name));
      if (port != nullptr) {
        const bool socket = nic.rdma && !*nic.rdma;
        tag.attribute("port", std::to_string(socket ? 0 : port->number + position));
        if (port->rate_Gbps && *port->rate_Gbps > 0 && *port->rate_Gbps < 1e6)
          tag.attribute("speed", fmt::format("{:.0f}", *port->rate_Gbps * 1000));
      }
      tag.end_empty();
    }
  }

  const Node& node_;
  std::vector<Group> groups_;
  std::map<int, std::vector<std::size_t>> gpus_at_, nics_at_;
  std::map<int, std::vector<int>> children_;
  std::map<int, int> depth_;
  std::string out_;
};

} // namespace

std::string write_nccl_xml(const Node& node) {
  static const std::string end = "</system>\n";
  static const std::string self = "the XML just written";
  const std::string plain = PlainWriter(node).write();
  const Node read_back = nccl::node_of_system(parse_xml(plain + end, self), self);
  return plain + nccl::extras(read_back, node) + end;
}

} // namespace shmemctl
