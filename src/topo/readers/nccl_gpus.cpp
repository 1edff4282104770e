#include "src/topo/readers/nccl_gpus.h"

#include "src/topo/readers/nccl_attributes.h"

namespace shmemctl::nccl {

namespace {

int count_of(const XmlElement& element, const std::string& subject) {
  const std::optional<long long> count = parse_integer(element.get("count"));
  if (!count || *count < 0 || *count >= 1000)
    throw bad_element(subject, element,
                      "<" + element.name + "> with the count " +
                          printable(element.get("count"), 40));
  return static_cast<int>(*count);
}

/// NCCL's words: 0x0680 is an NVSwitch, 0x03 and 0x12 a GPU, 0x068001 and 0x0601 a CPU (POWER).
LinkTarget target_of(const XmlElement& element, const std::string& subject) {
  const Fact<std::uint32_t> target =
      hexadecimal<std::uint32_t>(subject, element, "tclass", 0xffffff);
  if (!target)
    return LinkTarget::unknown;
  const std::uint32_t base = *target >> 16;
  const std::uint32_t kind = *target >> 8;
  if (base == 0x03 || base == 0x12)
    return LinkTarget::gpu;
  if (*target == 0x068001 || kind == 0x0600 || kind == 0x0601)
    return LinkTarget::cpu;
  return kind == 0x0680 ? LinkTarget::nvswitch : LinkTarget::unknown;
}

GpuLink nvlink_of(const XmlElement& element, const std::string& subject) {
  GpuLink link;
  link.kind = element.name == "xgmi" ? GpuLinkKind::xgmi : GpuLinkKind::nvlink;
  link.count = count_of(element, subject);
  if (link.count == 0)
    return link;
  link.bandwidth_GBps = unknown<double>(silent);
  link.target = target_of(element, subject);
  // A virtual machine does not see its NVSwitches: NCCL writes this in place of their address, and
  // what people write by hand leaves it out.
  const std::string* const target = element.find("target");
  if (target == nullptr || starts_with(*target, "fffffff:ff:ff"))
    return link;
  link.target_address = parse_pci_address(*target);
  if (!link.target_address)
    throw bad_element(subject, element,
                      "target " + printable(*target, 40) + " is not a PCI address");
  return link;
}

/// `bw` is in MB/s per link.
GpuLink c2c_of(const XmlElement& element, const std::string& subject) {
  GpuLink link;
  link.kind = GpuLinkKind::c2c;
  link.target = LinkTarget::cpu;
  link.count = count_of(element, subject);
  const std::optional<double> bandwidth = parse_number(element.get("bw"));
  link.bandwidth_GBps = bandwidth && *bandwidth > 0
                            ? known(*bandwidth / 1000, line_of(element) + ", bw")
                            : unknown<double>(silent);
  return link;
}

} // namespace

int read_gpu(const XmlElement& element, const std::string& subject, Gpu& gpu,
             std::set<PciAddress>& nvswitches) {
  int without_end = 0;
  if (const std::optional<long long> dev = parse_integer(element.get("dev"));
      dev && *dev >= 0 && *dev < 65536)
    gpu.driver_index = known(static_cast<int>(*dev), line_of(element) + ", dev");
  if (gpu.vendor.empty() && element.find("gcn") != nullptr)
    gpu.vendor = "amd";
  for (const XmlElement& child : element.children) {
    if (child.name != "nvlink" && child.name != "xgmi" && child.name != "c2c")
      continue;
    GpuLink link = child.name == "c2c" ? c2c_of(child, subject) : nvlink_of(child, subject);
    if (link.target == LinkTarget::nvswitch && link.target_address)
      nvswitches.insert(*link.target_address);
    const bool to_peer = link.target == LinkTarget::gpu || link.target == LinkTarget::unknown;
    without_end += link.count > 0 && to_peer && !link.target_address ? 1 : 0;
    if (link.count > 0)
      gpu.links.push_back(std::move(link));
  }
  if (gpu.vendor.empty() && !gpu.links.empty())
    gpu.vendor = gpu.links.front().kind == GpuLinkKind::xgmi ? "amd" : "nvidia";
  return without_end;
}

} // namespace shmemctl::nccl
