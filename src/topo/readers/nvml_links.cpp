// NVLink and C2C links of one GPU, as NVML tells them.
#include <algorithm>
#include <cstring>

#include "src/topo/readers/nvml_session.h"

namespace shmemctl {

namespace {

using nvml_abi::Device;

LinkTarget target_of(int remote_type) {
  switch (remote_type) {
  case nvml_abi::remote_is_gpu:
    return LinkTarget::gpu;
  case nvml_abi::remote_is_ibm_npu:
    return LinkTarget::cpu;
  case nvml_abi::remote_is_switch:
    return LinkTarget::nvswitch;
  default:
    return LinkTarget::unknown;
  }
}

Fact<double> bandwidth_GBps(const Fact<std::uint64_t>& speed_MBps) {
  if (!speed_MBps || *speed_MBps == 0)
    return unknown<double>(speed_MBps ? "NVML says 0 MB/s" : speed_MBps.origin);
  return known(static_cast<double>(*speed_MBps) / 1000.0, speed_MBps.origin);
}

/// Adds one link to the entry with the same target, or makes one.
void add_link(std::vector<GpuLink>& links, GpuLink link) {
  const auto same = std::find_if(links.begin(), links.end(), [&link](const GpuLink& other) {
    return other.kind == link.kind && other.target == link.target &&
           other.target_address == link.target_address;
  });
  if (same == links.end())
    links.push_back(std::move(link));
  else
    same->count += link.count;
}

/// The other end of an active NVLink. In a virtual machine NVML names the kind of device but hides
/// its address (ffffffff:ff:ff.0), which parses as none.
template <class Session>
GpuLink describe_nvlink(const Session& session, Device device, unsigned number) {
  GpuLink link;
  int remote_type = -1;
  if (session.call("nvmlDeviceGetNvLinkRemoteDeviceType", device, number, &remote_type))
    link.target = target_of(remote_type);
  nvml_abi::PciInfo remote{};
  if (session.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, number, &remote))
    link.target_address = parse_pci_address(
        std::string(remote.bus_id, ::strnlen(remote.bus_id, sizeof remote.bus_id)));
  Fact<std::uint64_t> speed_MBps = session.field(device, nvml_abi::field_nvlink_speed_MBps, number);
  if (!speed_MBps)
    speed_MBps = session.field(device, nvml_abi::field_nvlink_speed_common_MBps, 0);
  link.bandwidth_GBps = bandwidth_GBps(speed_MBps);
  return link;
}

template <class Session>
bool has_no_nvlinks(const Session& session, Device device) {
  const Fact<std::uint64_t> count = session.field(device, nvml_abi::field_nvlink_count, 0);
  return count && *count == 0;
}

/// C2C (Grace Hopper): present only where the driver counts at least one link.
template <class Session>
void add_c2c_links(const Session& session, Device device, std::vector<GpuLink>& links) {
  const Fact<std::uint64_t> count = session.field(device, nvml_abi::field_c2c_link_count, 0);
  if (!count)
    return;
  for (unsigned number = 0; number < std::min<std::uint64_t>(*count, nvml_abi::max_nvlinks);
       ++number) {
    const Fact<std::uint64_t> status =
        session.field(device, nvml_abi::field_c2c_link_status, number);
    if (!status || *status != 1)
      continue;
    GpuLink link;
    link.kind = GpuLinkKind::c2c;
    link.target = LinkTarget::cpu;
    link.bandwidth_GBps =
        bandwidth_GBps(session.field(device, nvml_abi::field_c2c_link_bandwidth_MBps, number));
    add_link(links, std::move(link));
  }
}

} // namespace

Fact<Nvml::Session::Nvlinks> Nvml::Session::nvlinks(Device device, bool has_mig) const {
  Nvlinks found;
  for (unsigned number = 0; number < nvml_abi::max_nvlinks; ++number) {
    int state = 0;
    const NvmlOutcome result = call("nvmlDeviceGetNvLinkState", device, number, &state);
    if (result.code == nvml_abi::invalid_argument && (number > 0 || has_no_nvlinks(*this, device)))
      break; // there are no more links
    // A card without NVLink says "not supported" for all of them, and so does one in MIG mode,
    // whose links exist but cannot be asked.
    if (result.code == nvml_abi::not_supported && !has_mig)
      continue;
    if (!result)
      return unknown<Nvlinks>(result.reason + (has_mig ? " (MIG is enabled)" : ""));
    found.present.push_back(number);
    if (state == 1)
      found.active.push_back(number);
  }
  return known(std::move(found), "NVML: nvmlDeviceGetNvLinkState");
}

void Nvml::Session::read_links(Device device, NvmlGpu& gpu) const {
  const Fact<Nvlinks> found = nvlinks(device, gpu.mig_enabled && *gpu.mig_enabled);
  if (!found) {
    gpu.links = unknown<std::vector<GpuLink>>(found.origin);
    gpu.nvlinks_present = gpu.nvlinks_active = unknown<int>(found.origin);
    return;
  }
  std::vector<GpuLink> links;
  for (const unsigned number : (*found).active)
    add_link(links, describe_nvlink(*this, device, number));
  add_c2c_links(*this, device, links);
  gpu.links = known(std::move(links), found.origin);
  gpu.nvlinks_present = known(static_cast<int>((*found).present.size()), found.origin);
  gpu.nvlinks_active = known(static_cast<int>((*found).active.size()), found.origin);
}

} // namespace shmemctl
