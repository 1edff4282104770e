// What NVLinks have carried, as NVML counts it.
#include <fmt/format.h>

#include "src/topo/readers/nvml_session.h"

namespace shmemctl {

NvlinkCounters Nvml::nvlink_counters(const std::string& pci_address) const {
  NvlinkCounters counters;
  nvml_abi::Device device = nullptr;
  if (const NvmlOutcome found =
          session_->call("nvmlDeviceGetHandleByPciBusId_v2", pci_address.c_str(), &device);
      !found) {
    counters.problem = found.reason;
    return counters;
  }
  unsigned mig_now = 0, mig_later = 0;
  session_->call("nvmlDeviceGetMigMode", device, &mig_now, &mig_later); // 0 where there is no MIG
  const Fact<Session::Nvlinks> links = session_->nvlinks(device, mig_now == 1);
  if (!links) {
    counters.problem = links.origin;
    return counters;
  }
  const Session::Nvlinks& numbers = *links;
  for (const unsigned link : numbers.active)
    counters.links.push_back({link, session_->field(device, nvml_abi::field_nvlink_sent_KiB, link),
                              session_->field(device, nvml_abi::field_nvlink_received_KiB, link)});
  if (numbers.present.empty())
    counters.problem = "the GPU has no NVLink";
  else if (numbers.active.empty())
    counters.problem = fmt::format("none of its {} NVLinks is active", numbers.present.size());
  else {
    counters.sent_KiB =
        session_->field(device, nvml_abi::field_nvlink_sent_KiB, nvml_abi::scope_all_nvlinks);
    counters.received_KiB =
        session_->field(device, nvml_abi::field_nvlink_received_KiB, nvml_abi::scope_all_nvlinks);
  }
  return counters;
}

} // namespace shmemctl
