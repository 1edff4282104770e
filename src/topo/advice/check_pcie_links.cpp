#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "src/base/text.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/wording.h"

namespace shmemctl {

namespace {

/// A GPU or an RDMA NIC with its link.
struct LinkedDevice {
  std::string name;   ///< of a NIC
  int gpu_index = -1; ///< -1: a NIC
  const PciDevice* pci = nullptr;
};

/// A number of the link that says something: VMs and virtual functions read 0.
template <class T>
bool told(const Fact<T>& fact) {
  return fact && *fact > 0;
}

std::vector<LinkedDevice> linked_devices(const Node& node) {
  std::vector<LinkedDevice> devices;
  for (const Gpu& gpu : node.gpus)
    if (gpu.pci >= 0)
      devices.push_back({"", gpu.index, &node.pci[static_cast<std::size_t>(gpu.pci)]});
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (nic.pci >= 0 && !nic.virtual_device && (!nic.rdma || *nic.rdma))
      devices.push_back(
          {nic_name(node, static_cast<int>(i)), -1, &node.pci[static_cast<std::size_t>(nic.pci)]});
  }
  return devices;
}

/// What a link reaches at best: its own maximum or, where that is unknown, the best of the same
/// model in this machine.
struct BestLink {
  double speed_GTps = 0;
  int width = 0;
};
using Model = std::pair<std::uint16_t, std::uint16_t>;

std::map<Model, BestLink> best_of_models(const std::vector<LinkedDevice>& devices) {
  std::map<Model, BestLink> best;
  for (const LinkedDevice& device : devices) {
    if (!device.pci->vendor || !device.pci->device)
      continue;
    BestLink& link = best[{*device.pci->vendor, *device.pci->device}];
    link.speed_GTps = std::max(link.speed_GTps, device.pci->link.speed_GTps.value.value_or(0));
    link.width = std::max(link.width, device.pci->link.width.value.value_or(0));
  }
  return best;
}

BestLink expected_link(const LinkedDevice& device, const std::map<Model, BestLink>& models) {
  const PcieLink& link = device.pci->link;
  BestLink expected;
  if (device.pci->vendor && device.pci->device)
    expected = models.at({*device.pci->vendor, *device.pci->device});
  if (told(link.max_speed_GTps))
    expected.speed_GTps = *link.max_speed_GTps;
  if (told(link.max_width))
    expected.width = *link.max_width;
  return expected;
}

bool slot_is_the_limit(const Node& node, const PciDevice& device) {
  if (device.parent < 0)
    return false;
  const PciDevice& port = node.pci[static_cast<std::size_t>(device.parent)];
  if (port.kind != PciKind::bridge)
    return false;
  const bool speed_met = told(port.link.max_speed_GTps) && told(device.link.speed_GTps) &&
                         *port.link.max_speed_GTps == *device.link.speed_GTps;
  const bool width_met = told(port.link.max_width) && told(device.link.width) &&
                         *port.link.max_width == *device.link.width;
  const bool speed_full = told(device.link.max_speed_GTps) && told(device.link.speed_GTps) &&
                          *device.link.speed_GTps >= *device.link.max_speed_GTps;
  const bool width_full = told(device.link.max_width) && told(device.link.width) &&
                          *device.link.width >= *device.link.max_width;
  return (speed_met || speed_full) && (width_met || width_full);
}

/// Why a link is below its best; each is a finding of its own.
enum class LinkCause { degraded, idle_gpu, slot };

/// Devices whose links are below their best by the same cause.
class DegradedLinks {
public:
  void add(const LinkedDevice& device, const std::string& shortfall) {
    Group& group = groups_[shortfall];
    if (device.gpu_index >= 0)
      group.gpus.push_back(device.gpu_index);
    else
      group.nics.push_back(device.name);
    if (first_address_.empty())
      first_address_ = to_string(device.pci->address);
  }

  const std::string& first_address() const { return first_address_; }
  /// "GPU 0-7 and mlx5_3"
  std::string subject() const {
    Group all;
    for (const auto& [shortfall, group] : groups_) {
      all.gpus.insert(all.gpus.end(), group.gpus.begin(), group.gpus.end());
      all.nics.insert(all.nics.end(), group.nics.begin(), group.nics.end());
    }
    return all.words();
  }
  /// "GPU 0-7 at 2.5 of 32 GT/s; mlx5_3 on 8 of 16 lanes"
  std::string words() const {
    std::vector<std::string> parts;
    for (const auto& [shortfall, group] : groups_)
      parts.push_back(group.words() + " " + shortfall);
    return join(parts, "; ");
  }

private:
  struct Group {
    std::vector<int> gpus;
    std::vector<std::string> nics;
    std::string words() const {
      std::vector<std::string> devices = nics;
      if (!gpus.empty())
        devices.insert(devices.begin(), numbered("GPU", gpus));
      return enumerate(devices);
    }
  };
  std::map<std::string, Group> groups_;
  std::string first_address_;
};

Finding describe(LinkCause cause, const DegradedLinks& links) {
  const std::string subject = links.subject();
  const std::string words = "PCIe links below their best: " + links.words();
  switch (cause) {
  case LinkCause::idle_gpu:
    return {"pcie-degraded", Severity::info, subject,
            words + "; an idle GPU lowers its link's speed, so this may be power saving",
            "look again under load: nvidia-smi "
            "--query-gpu=index,pcie.link.gen.current,pcie.link.gen.max --format=csv"};
  case LinkCause::slot:
    return {"pcie-degraded", Severity::info, subject, words + "; the slot above can do no more",
            "move the device to a faster slot if its bandwidth is needed"};
  case LinkCause::degraded:
    break;
  }
  return {"pcie-degraded", Severity::warning, subject, words + "; this limits their bandwidth",
          fmt::format("reseat the device or its riser and check the slot's settings in the "
                      "firmware: lspci -vvs {} | grep -E 'LnkCap|LnkSta'",
                      links.first_address())};
}

} // namespace

Findings check_pcie_links(const Node& node) {
  const std::vector<LinkedDevice> devices = linked_devices(node);
  const std::map<Model, BestLink> models = best_of_models(devices);
  std::map<LinkCause, DegradedLinks> groups;
  for (const LinkedDevice& device : devices) {
    const PcieLink& link = device.pci->link;
    const BestLink expected = expected_link(device, models);
    const bool slow = told(link.speed_GTps) && *link.speed_GTps < expected.speed_GTps;
    const bool narrow = told(link.width) && *link.width < expected.width;
    if (!slow && !narrow)
      continue;
    LinkCause cause = LinkCause::degraded;
    if (slot_is_the_limit(node, *device.pci))
      cause = LinkCause::slot;
    else if (device.gpu_index >= 0 && !narrow)
      cause = LinkCause::idle_gpu;
    std::vector<std::string> parts;
    if (slow)
      parts.push_back(fmt::format("at {} of {} GT/s", *link.speed_GTps, expected.speed_GTps));
    if (narrow)
      parts.push_back(fmt::format("on {} of {} lanes", *link.width, expected.width));
    groups[cause].add(device, enumerate(parts));
  }
  Findings findings;
  for (const auto& [cause, links] : groups)
    findings.push_back(describe(cause, links));
  return findings;
}

} // namespace shmemctl
