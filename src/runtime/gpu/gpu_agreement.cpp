#include "src/runtime/gpu/gpu_agreement.h"

#include <algorithm>

namespace shmemctl {

std::string to_line(const GpuCapabilities& offer) {
  return offer.there ? std::string("gpu ") + (offer.shareable ? "1 " : "0 ") + offer.uuid +
                           (offer.fabric.empty() ? "" : " " + offer.fabric)
                     : "none " + offer.reason;
}

GpuCapabilities parse_gpu_capabilities(const std::string& line) {
  constexpr std::size_t head = 6; // "gpu 1 "
  GpuCapabilities offer;
  if (line.rfind("none ", 0) == 0) {
    offer.reason = line.substr(5);
  } else if (line.size() >= head && line.rfind("gpu ", 0) == 0) {
    offer.there = true;
    offer.shareable = line[4] == '1';
    const std::size_t space = line.find(' ', head);
    offer.uuid = line.substr(head, space == std::string::npos ? space : space - head);
    offer.fabric = space == std::string::npos ? "" : line.substr(space + 1);
  } else {
    offer.reason = "it runs another version of this tool";
  }
  return offer;
}

std::string why_no_gpus(const std::vector<GpuCapabilities>& offers, const Placement& placement) {
  const auto without = std::find_if(offers.begin(), offers.end(),
                                    [](const GpuCapabilities& offer) { return !offer.there; });
  if (without == offers.end())
    return "";
  const bool nobody = std::none_of(offers.begin(), offers.end(),
                                   [](const GpuCapabilities& offer) { return offer.there; });
  if (nobody)
    return offers[static_cast<std::size_t>(placement.pe)].reason;
  const auto pe = static_cast<std::size_t>(without - offers.begin());
  return "PE " + std::to_string(pe) + " on " + placement.hosts[pe].host_name +
         " has no GPU: " + without->reason;
}

namespace {

/// An NVLink domain that contains PEs of several machines; "" if there is none, or if not every PE
/// can export its memory there.
std::string domain_of_machines(const std::vector<GpuCapabilities>& offers,
                               const Placement& placement) {
  std::string found;
  for (std::size_t a = 0; a < offers.size(); ++a) {
    if (offers[a].fabric.empty())
      return "";
    for (std::size_t b = 0; b < a && found.empty(); ++b)
      if (offers[a].fabric == offers[b].fabric &&
          placement.hosts[a].machine_id != placement.hosts[b].machine_id)
        found = offers[a].fabric;
  }
  return found;
}

} // namespace

HeapKind choose_gpu_heap(const std::string& wanted, const std::vector<GpuCapabilities>& offers,
                         const Placement& placement) {
  if (wanted != "auto")
    return {wanted, "SHMEMCTL_HEAP asks for it"};
  if (const std::string domain = domain_of_machines(offers, placement); !domain.empty())
    return {"fabric", "PEs of several machines are in the NVLink domain " + domain};
  const auto without = std::find_if(offers.begin(), offers.end(),
                                    [](const GpuCapabilities& offer) { return !offer.shareable; });
  if (without == offers.end())
    return {"vmm", "all GPUs have virtual memory with file descriptors"};
  return {"ipc", "the GPU of PE " + std::to_string(without - offers.begin()) +
                     " has no virtual memory with file descriptors"};
}

int pes_on_device(const std::vector<GpuCapabilities>& offers, const Placement& placement) {
  const auto mine = static_cast<std::size_t>(placement.pe);
  int count = 0;
  for (std::size_t pe = 0; pe < offers.size(); ++pe)
    if (offers[pe].uuid == offers[mine].uuid &&
        placement.hosts[pe].machine_id == placement.hosts[mine].machine_id)
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
