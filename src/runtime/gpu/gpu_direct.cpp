#include "src/runtime/gpu/gpu_direct.h"

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "transports/device_memory_user.h"

namespace shmemctl {

namespace {

GpuDirectCapability capability_of(const GpuDirectCandidate& candidate,
                                  const std::vector<bool>& needed,
                                  const std::shared_ptr<const DeviceMemory>& memory,
                                  const RegionView& sample) {
  GpuDirectCapability capability;
  capability.transport = candidate.transport->name();
  for (std::size_t pe = 0; pe < needed.size() && capability.reaches_all; ++pe)
    if (needed[pe] && !candidate.reaches[pe]) {
      capability.reaches_all = false;
      capability.reason = "it does not reach PE " + std::to_string(pe);
    }
  if (!capability.reason.empty())
    return capability;
  auto* const user = dynamic_cast<DeviceMemoryUser*>(candidate.transport);
  capability.reason = user ? memory->why_unordered() : std::string("it ") + host_memory_only;
  if (!capability.reason.empty())
    return capability;
  const DeviceReach reach = user->try_device_memory(memory, sample.base, sample.size_bytes);
  capability.method = reach.method;
  capability.reason = reach.reason;
  return capability;
}

/// The capabilities of all PEs for one transport, combined.
struct Verdict {
  bool works = true, reaches_all = true;
  std::set<std::string> methods;
  std::string reason; ///< reason of the first PE on which it does not work
};

Verdict verdict_of(const std::vector<GpuDirectCapabilities>& by_pe, std::size_t transport) {
  Verdict verdict;
  std::size_t without = 0;
  for (std::size_t pe = 0; pe < by_pe.size(); ++pe) {
    const GpuDirectCapability capability =
        transport < by_pe[pe].size() ? by_pe[pe][transport] : GpuDirectCapability{};
    verdict.reaches_all = verdict.reaches_all && capability.reaches_all;
    if (!capability.method.empty())
      verdict.methods.insert(capability.method);
    else if (without++ == 0)
      verdict.reason = "PE " + std::to_string(pe) + ": " +
                       (capability.reason.empty() ? "it says nothing" : capability.reason);
  }
  if (without > 1)
    verdict.reason += " (no access on " + std::to_string(without) + " of " +
                      std::to_string(by_pe.size()) + " PEs)";
  verdict.works = without == 0;
  return verdict;
}

} // namespace

void serialize(Archive& archive, GpuDirectCapability& capability) {
  archive(capability.transport, capability.method, capability.reason, capability.reaches_all);
}

GpuDirectCapabilities try_gpu_direct(const std::vector<GpuDirectCandidate>& candidates,
                                     const std::vector<bool>& needed,
                                     const std::shared_ptr<const DeviceMemory>& memory,
                                     const RegionView& sample) {
  GpuDirectCapabilities capabilities;
  for (const GpuDirectCandidate& candidate : candidates)
    capabilities.push_back(capability_of(candidate, needed, memory, sample));
  return capabilities;
}

GpuDirectChoice choose_gpu_direct(const std::string& wanted,
                                  const std::vector<GpuDirectCapabilities>& by_pe) {
  if (wanted == "off")
    return {-1, "staged: SHMEMCTL_GPUDIRECT=off"};
  std::vector<std::string> reasons, of_partial;
  // A PE reports no capabilities if its GPUDIRECT is "off", so the names come from the longest
  // list.
  const GpuDirectCapabilities& names = *std::max_element(
      by_pe.begin(), by_pe.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (std::size_t at = 0; at < names.size(); ++at) {
    const Verdict verdict = verdict_of(by_pe, at);
    const std::string& name = names[at].transport;
    if (verdict.works)
      return {static_cast<int>(at),
              "GPUDirect RDMA by " + join({verdict.methods.begin(), verdict.methods.end()}, ", ") +
                  " over " + name};
    // The reason of a transport that does not reach all `needed` PEs (such as shm across nodes) is
    // reported only if no transport reaches all of them.
    (verdict.reaches_all ? reasons : of_partial).push_back(name + ": " + verdict.reason);
  }
  const std::string all = join(reasons.empty() ? of_partial : reasons, "; ");
  if (wanted != "auto")
    throw Error(ExitCode::unavailable, "SHMEMCTL_GPUDIRECT=" + wanted, "register GPU memory", all,
                "run shmemctl doctor --only dma-buf,nvidia-peermem, or set it to auto");
  return {-1, "staged: " + all};
}

} // namespace shmemctl
