// The daemons beside the NVIDIA driver, and the states that they keep.
#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/support.h"

namespace shmemctl::doctor {

namespace {

/// The NVSwitch fabric of a single node has its manager on that node.
bool has_nvswitch_target(const Node& node) {
  for (const Gpu& gpu : node.gpus)
    for (const GpuLink& link : gpu.links)
      if (link.kind == GpuLinkKind::nvlink && link.target == LinkTarget::nvswitch)
        return true;
  return false;
}

} // namespace

std::optional<CheckResult> judge_fabric_state(const NvmlSurvey& survey) {
  std::vector<std::string> states;
  bool completed = true;
  for (const SurveyedGpu& each : survey.gpus) {
    const Fact<FabricState>& state = each.health.fabric_state;
    if (!state || *state == FabricState::not_supported)
      continue;
    const bool failed_status = each.health.fabric_status.value.value_or(0) != 0;
    completed = completed && *state == FabricState::completed && !failed_status;
    states.push_back(
        each.name() + " " + to_string(*state) +
        (failed_status ? " with error " + std::to_string(*each.health.fabric_status) : ""));
  }
  if (states.empty())
    return std::nullopt;
  const std::string evidence = "nvmlDeviceGetGpuFabricInfo: " + name_list(states);
  if (completed)
    return passed("every GPU is registered with the NVSwitch fabric", evidence);
  return failed("GPUs are not registered with the NVSwitch fabric: NVLink between them is off",
                evidence,
                "systemctl restart nvidia-fabricmanager && nvidia-smi -q | grep -A3 Fabric");
}

CheckResult fabric_manager(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  const Node& node = context.node;
  if (node.nvswitches == 0 && !has_nvswitch_target(node))
    return skipped("no NVSwitch on this node: no fabric manager is needed");
  const std::string switches = std::to_string(node.nvswitches) + " NVSwitch functions";
  if (const auto process = process_evidence(context.sysroot, "nv-fabricmanager"))
    return passed("the fabric manager runs", *process);
  if (context.sysroot.live())
    if (const auto state = judge_fabric_state(live_nvml()))
      return *state;
  // CUDA refuses to start (802) until the fabric is configured, whoever configures it.
  if (context.sysroot.live() && live_cuda().initialized())
    return passed("the NVSwitch fabric is configured; its manager is not visible from here",
                  live_cuda().library + ": cuInit returned 0");
  const std::string evidence = "/proc/*/comm: no nv-fabricmanager; " + switches;
  if (const auto container = container_evidence(context.sysroot, context.environment))
    return skipped("the host's processes are not visible in a container: " + *container, evidence);
  if (node.nvswitches == 0)
    return skipped("the NVSwitches are not on this node (a VM, or a rack's switch trays): their "
                   "manager runs elsewhere",
                   evidence);
  if (context.sysroot.list("/proc").empty() || !context.sysroot.exists("/proc/1/comm"))
    return skipped("the tree does not show the processes", absent("/proc/1/comm"));
  return failed("the node has NVSwitches, but no fabric manager runs: NVLink between GPUs is off",
                evidence, "systemctl enable --now nvidia-fabricmanager");
}

CheckResult judge_persistence(const NvmlSurvey& survey) {
  std::vector<std::string> on;
  std::vector<std::string> off;
  for (const SurveyedGpu& each : survey.gpus)
    if (each.health.persistence_mode)
      (*each.health.persistence_mode ? on : off).push_back(each.name());
  if (on.empty() && off.empty())
    return skipped("NVML does not tell the persistence mode", survey.problem);
  if (off.empty())
    return passed("the GPUs stay initialised between jobs",
                  "nvmlDeviceGetPersistenceMode: on for " + name_list(on));
  return warned("without persistence mode a job that finds the GPU unused initialises it anew, "
                "which takes seconds: " +
                    name_list(off),
                "nvmlDeviceGetPersistenceMode: off for " + name_list(off),
                "systemctl enable --now nvidia-persistenced || nvidia-smi -pm 1");
}

CheckResult persistence(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  const Sysroot& sysroot = context.sysroot;
  if (sysroot.live() && live_nvml().problem.empty())
    return judge_persistence(live_nvml());
  if (const auto process = process_evidence(sysroot, "nvidia-persistenced"))
    return passed("the persistence daemon keeps the GPUs initialised", *process);
  const std::string socket = "/run/nvidia-persistenced/socket";
  if (sysroot.exists(socket))
    return passed("the persistence daemon keeps the GPUs initialised", socket + ": there");
  if (const auto container = container_evidence(sysroot, context.environment))
    return skipped("the host's processes are not visible in a container: " + *container);
  if (!sysroot.exists("/proc/1/comm"))
    return skipped("the tree does not show the processes", absent("/proc/1/comm"));
  return warned("no persistence daemon: each start without another GPU process initialises the "
                "GPUs anew, which takes seconds",
                "/proc/*/comm: no nvidia-persistenced; " + absent(socket),
                "systemctl enable --now nvidia-persistenced || nvidia-smi -pm 1");
}

} // namespace shmemctl::doctor
