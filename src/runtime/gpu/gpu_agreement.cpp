#include "src/runtime/gpu/gpu_agreement.h"

#include <algorithm>

namespace shmemctl {

void serialize(Archive& archive, GpuCapabilities& capabilities) {
  archive(capabilities.there, capabilities.reason, capabilities.uuid, capabilities.shareable,
          capabilities.fabric, capabilities.no_kernels);
}

std::string why_no_gpus(const std::vector<GpuCapabilities>& capabilities_by_pe,
                        const Placement& placement) {
  const auto without =
      std::find_if(capabilities_by_pe.begin(), capabilities_by_pe.end(),
                   [](const GpuCapabilities& capabilities) { return !capabilities.there; });
  if (without == capabilities_by_pe.end())
    return "";
  const bool nobody =
      std::none_of(capabilities_by_pe.begin(), capabilities_by_pe.end(),
                   [](const GpuCapabilities& capabilities) { return capabilities.there; });
  if (nobody)
    return capabilities_by_pe[static_cast<std::size_t>(placement.pe)].reason;
  const auto pe = static_cast<std::size_t>(without - capabilities_by_pe.begin());
  return "PE " + std::to_string(pe) + " on " + placement.hosts[pe].host_name +
         " has no GPU: " + without->reason;
}

std::string why_no_kernels_of_job(const std::vector<GpuCapabilities>& capabilities_by_pe,
                                  const Placement& placement) {
  for (std::size_t pe = 0; pe < capabilities_by_pe.size(); ++pe)
    if (const std::string& why = capabilities_by_pe[pe].no_kernels; !why.empty())
      return "PE " + std::to_string(pe) + " on " + placement.hosts[pe].host_name + ": " + why;
  return "";
}

namespace {

/// An NVLink domain that contains PEs of several machines; "" if there is none, or if some PE can
/// export its memory to no domain.
std::string domain_of_machines(const std::vector<GpuCapabilities>& capabilities_by_pe,
                               const Placement& placement) {
  std::string found;
  for (std::size_t a = 0; a < capabilities_by_pe.size(); ++a) {
    if (capabilities_by_pe[a].fabric.empty())
      return "";
    for (std::size_t b = 0; b < a && found.empty(); ++b)
      if (capabilities_by_pe[a].fabric == capabilities_by_pe[b].fabric &&
          placement.hosts[a].machine_id != placement.hosts[b].machine_id)
        found = capabilities_by_pe[a].fabric;
  }
  return found;
}

} // namespace

HeapKind choose_gpu_heap(const std::string& wanted,
                         const std::vector<GpuCapabilities>& capabilities_by_pe,
                         const Placement& placement) {
  if (wanted != "auto")
    return {wanted, "SHMEMCTL_HEAP asks for it"};
  if (const std::string domain = domain_of_machines(capabilities_by_pe, placement); !domain.empty())
    return {"fabric", "PEs of several machines are in the NVLink domain " + domain};
  const auto without =
      std::find_if(capabilities_by_pe.begin(), capabilities_by_pe.end(),
                   [](const GpuCapabilities& capabilities) { return !capabilities.shareable; });
  if (without == capabilities_by_pe.end())
    return {"vmm", "all GPUs have virtual memory with file descriptors"};
  return {"ipc", "the GPU of PE " + std::to_string(without - capabilities_by_pe.begin()) +
                     " has no virtual memory with file descriptors"};
}

int pes_on_device(const std::vector<GpuCapabilities>& capabilities_by_pe,
                  const Placement& placement) {
  const auto own_pe = static_cast<std::size_t>(placement.pe);
  int count = 0;
  for (std::size_t pe = 0; pe < capabilities_by_pe.size(); ++pe)
    if (capabilities_by_pe[pe].uuid == capabilities_by_pe[own_pe].uuid &&
        placement.hosts[pe].machine_id == placement.hosts[own_pe].machine_id)
      ++count;
  return count;
}

std::vector<int> mapping_group(const std::vector<int>& candidates,
                               const std::vector<std::vector<std::string>>& why_not, int pe) {
  const auto both_map = [&](int left, int right) {
    const auto a = static_cast<std::size_t>(left), b = static_cast<std::size_t>(right);
    return why_not[a][b].empty() && why_not[b][a].empty();
  };
  std::vector<std::vector<int>> groups;
  for (const int candidate : candidates) {
    const auto takes = [&](const std::vector<int>& group) {
      return std::all_of(group.begin(), group.end(),
                         [&](int member) { return both_map(candidate, member); });
    };
    const auto found = std::find_if(groups.begin(), groups.end(), takes);
    if (found == groups.end())
      groups.push_back({candidate});
    else
      found->push_back(candidate);
  }
  for (const std::vector<int>& group : groups)
    if (std::find(group.begin(), group.end(), pe) != group.end())
      return group;
  return {pe};
}

} // namespace shmemctl
