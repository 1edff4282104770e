// Checks of kernel, CPUs, limits, daemons and containers.
#include <fmt/format.h>
#include <map>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/settings.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr std::array<int, 2> good_kernel = {5, 12}; // first with dma-buf in RDMA
constexpr std::array<int, 2> min_kernel = {4, 18};  // RHEL 8
constexpr std::uint64_t min_open_files = 16384;
constexpr const char* system_limits_path = "/proc/self/limits";
constexpr const char* clocksource_folder = "/sys/devices/system/clocksource/clocksource0";

/// Whether this clock source is read without a system call.
bool is_fast_clock(const std::string& name) {
  for (const char* fast : {"tsc", "tsc-early", "kvm-clock", "hyperv_clocksource_tsc_page",
                           "arch_sys_counter", "timebase", "riscv_clocksource"})
    if (name == fast)
      return true;
  return false;
}

/// The files that contain the governors, one per CPU or one per group of CPUs.
std::vector<std::string> governor_files(const Sysroot& sysroot) {
  std::vector<std::string> files;
  for (const std::string& name : sysroot.list("/sys/devices/system/cpu/cpufreq"))
    if (starts_with(name, "policy"))
      files.push_back("/sys/devices/system/cpu/cpufreq/" + name + "/scaling_governor");
  if (!files.empty())
    return files;
  for (const std::string& name : sysroot.list("/sys/devices/system/cpu"))
    if (starts_with(name, "cpu") && parse_integer(name.substr(3)))
      files.push_back("/sys/devices/system/cpu/" + name + "/cpufreq/scaling_governor");
  return files;
}

} // namespace

CheckResult kernel(const CheckContext& context) {
  const auto version = kernel_version(context.sysroot);
  if (!version)
    return skipped("the kernel version is unknown", absent(osrelease_path));
  const std::string evidence = file_evidence(osrelease_path, version->release);
  const std::string fix = install_newer_kernel(context.sysroot);
  if (version->number() < min_kernel)
    return failed("Linux " + version->release + " is older than 4.18", evidence, fix);
  if (version->number() < good_kernel)
    return warned("Linux " + version->release +
                      " is older than 5.12: no GPU memory over RDMA through dma-buf",
                  evidence, fix);
  return passed("Linux " + version->release, evidence);
}

std::map<std::string, std::vector<std::string>> governors(const Sysroot& sysroot) {
  std::map<std::string, std::vector<std::string>> files_by_governor;
  for (const std::string& path : governor_files(sysroot))
    if (const auto governor = sysroot.read_line(path))
      files_by_governor[*governor].push_back(path);
  return files_by_governor;
}

CheckResult cpu_governor(const CheckContext& context) {
  std::map<std::string, std::vector<std::string>> files_by_governor = governors(context.sysroot);
  if (files_by_governor.empty())
    return skipped(
        "no CPU frequency governor here (a virtual machine, or frequency set by firmware)",
        absent("/sys/devices/system/cpu/cpufreq"));
  const auto performance = files_by_governor.extract("performance");
  if (files_by_governor.empty())
    return passed("all CPUs use the performance governor",
                  file_evidence(performance.mapped().front(), "performance"));
  std::vector<std::string> others;
  others.reserve(files_by_governor.size());
  for (const auto& [governor, files] : files_by_governor)
    others.push_back(fmt::format("{} on {}", printable(governor, 40), files.size()));
  return warned(
      "CPUs do not use the performance governor: " + name_list(others),
      file_evidence(files_by_governor.begin()->second.front(), files_by_governor.begin()->first),
      "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
}

CheckResult clocksource(const CheckContext& context) {
  const std::string path = std::string(clocksource_folder) + "/current_clocksource";
  const auto name = context.sysroot.read_line(path);
  if (!name)
    return skipped("the clock source is unknown", absent(path));
  if (is_fast_clock(*name))
    return passed("the clock is read without a system call", file_evidence(path, *name));
  const std::string available_path = std::string(clocksource_folder) + "/available_clocksource";
  const auto available = context.sysroot.read_line(available_path);
  for (const std::string& candidate : split_blanks(available.value_or("")))
    if (is_fast_clock(candidate))
      return warned("the clock " + printable(*name, 40) + " is slow to read: timings are coarse",
                    file_evidence(path, *name) + "; " + file_evidence(available_path, *available),
                    fmt::format("echo {} > {}", candidate, path));
  return warned("the clock " + printable(*name, 40) +
                    " is slow to read, and the kernel lists no faster one",
                file_evidence(path, *name), "dmesg | grep -i -E 'tsc|clocksource'");
}

CheckResult open_files(const CheckContext& context) {
  const auto text = context.sysroot.read(system_limits_path);
  const auto limit = text ? find_limit(*text, "Max open files") : std::nullopt;
  if (!limit)
    return skipped("the open-files limit is unknown", absent(system_limits_path));
  const std::string evidence = file_evidence(system_limits_path, "Max open files " + limit->text);
  if (!limit->soft || *limit->soft >= min_open_files)
    return passed("the open-files limit is sufficient", evidence);
  const bool may_raise = !limit->hard || *limit->hard >= min_open_files;
  const std::string fix = may_raise ? "ulimit -n 65536 || ulimit -n $(ulimit -Hn)"
                          : container_evidence(context.sysroot, context.environment)
                              ? "docker run --ulimit nofile=65536"
                              : "printf '* soft nofile 65536\\n* hard nofile 65536\\n' > "
                                "/etc/security/limits.d/nofile.conf  # then log in again";
  return warned(fmt::format("the open-files limit is {}: a large job needs a few files per peer",
                            *limit->soft),
                evidence, fix);
}

namespace {

/// Whether GPUs are linked to an NVSwitch of this node. The fabric manager runs on the node only if
/// the NVSwitch fabric is within the node.
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
  return failed("GPUs are not registered with the NVSwitch fabric: NVLink between them is disabled",
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
  // CUDA fails to initialise (802) until the fabric is configured, by whichever service.
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
  return failed(
      "the node has NVSwitches, but no fabric manager runs: NVLink between GPUs is disabled",
      evidence, "systemctl enable --now nvidia-fabricmanager");
}

CheckResult imex(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  const Sysroot& sysroot = context.sysroot;
  const std::string config = "/etc/nvidia-imex/nodes_config.cfg";
  const std::string channels = "/dev/nvidia-caps-imex-channels";
  std::vector<std::string> nodes;
  for (const std::string& line : split(sysroot.read(config).value_or(""), '\n'))
    if (const std::string_view address = trim(line); !address.empty() && address.front() != '#')
      nodes.emplace_back(address);
  const auto process = process_evidence(sysroot, "nvidia-imex");
  if (nodes.empty() && !process)
    return skipped("no IMEX domain is configured: it is needed only where NVLinks reach other "
                   "nodes",
                   sysroot.exists(config) ? config + ": no address" : absent(config));
  const std::string domain =
      config + ": " + (nodes.empty() ? "no address" : counted(nodes.size(), "node"));
  if (!process) {
    if (const auto container = container_evidence(sysroot, context.environment))
      return skipped("the host's processes are not visible in a container: " + *container, domain);
    if (!sysroot.exists("/proc/1/comm"))
      return skipped("the tree does not show the processes", absent("/proc/1/comm"));
    return failed("an IMEX domain is configured, but the service does not run: memory of other "
                  "nodes cannot be mapped over NVLink",
                  domain + "; /proc/*/comm: no nvidia-imex",
                  "systemctl enable --now nvidia-imex  # on every node of the domain");
  }
  if (!has_device_nodes(sysroot))
    return skipped("the copied tree has no device nodes", *process + "; " + absent("/dev"));
  std::vector<std::string> names;
  for (const std::string& name : sysroot.list(channels))
    if (starts_with(name, "channel"))
      names.push_back(name);
  if (names.empty())
    return failed("the IMEX service runs, but there is no channel: CUDA refuses to share memory "
                  "between nodes",
                  *process + "; " + channels + ": " +
                      (sysroot.is_directory(channels) ? "empty" : "not there"),
                  "mkdir -p /dev/nvidia-caps-imex-channels && mknod "
                  "-m 666 /dev/nvidia-caps-imex-channels/channel0 c "
                  "$(awk '$2==\"nvidia-caps-imex-channels\"{print $1}' /proc/devices) 0");
  if (nodes.size() == 1)
    return warned("the IMEX domain has one node: memory of other nodes cannot be mapped", domain,
                  "list the addresses of all nodes of the domain in " + config +
                      ", then systemctl restart nvidia-imex");
  return passed("the IMEX service runs and there is a channel",
                *process + "; " + domain + "; " + channels + ": " + name_list(names));
}

CheckResult judge_persistence(const NvmlSurvey& survey) {
  std::vector<std::string> on;
  std::vector<std::string> off;
  for (const SurveyedGpu& each : survey.gpus)
    if (each.health.persistence_mode)
      (*each.health.persistence_mode ? on : off).push_back(each.name());
  if (on.empty() && off.empty())
    return skipped("NVML does not report the persistence mode", survey.problem);
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

namespace {

// The kernel gives the initial PID namespace this fixed number (PROC_PID_INIT_INO).
constexpr const char* initial_pid_namespace = "pid:[4026531836]";
constexpr const char* namespace_path = "/proc/self/ns/pid";
constexpr const char* ptrace_path = "/proc/sys/kernel/yama/ptrace_scope";

struct Capability {
  int bit;
  const char* name;
  const char* need;
};
constexpr Capability wanted[] = {
    {cap_ipc_lock, "IPC_LOCK", "lock memory for RDMA"},
    {cap_sys_ptrace, "SYS_PTRACE", "copy between processes (CMA) and pass memory handles by pidfd"},
    {cap_sys_nice, "SYS_NICE", "bind memory to NUMA nodes"},
};

} // namespace

CheckResult pid_namespace(const CheckContext& context) {
  const auto target = link_target(context.sysroot, namespace_path);
  if (!target)
    return skipped("the PID namespace is unknown", absent(namespace_path));
  const std::string evidence = file_evidence(namespace_path, *target);
  if (*target == initial_pid_namespace)
    return passed("processes are in the host's PID namespace", evidence);
  return warned(
      "this container has its own PID namespace: PEs in different containers of this node "
      "cannot pass memory handles to each other",
      evidence, "docker run --pid=host --ipc=host  # Kubernetes: hostPID, hostIPC");
}

CheckResult ptrace_scope(const CheckContext& context) {
  const Sysroot& sysroot = context.sysroot;
  const auto value = sysroot.read_line(ptrace_path);
  if (!value) {
    if (!sysroot.is_directory("/proc/sys/kernel"))
      return skipped("the kernel settings are unknown", absent("/proc/sys/kernel"));
    return passed("the Yama security module is not active", absent(ptrace_path));
  }
  const std::string evidence = file_evidence(ptrace_path, *value);
  if (*value == "0")
    return passed("processes of one user may ptrace each other", evidence);
  const auto capabilities = effective_capabilities(sysroot);
  if (*value != "3" && capabilities && has_capability(*capabilities, cap_sys_ptrace))
    return passed("CAP_SYS_PTRACE lifts the restriction",
                  evidence + "; " +
                      file_evidence(status_path, fmt::format("CapEff {:x}", *capabilities)));
  return warned("processes may not ptrace their siblings: copies between processes (CMA) and "
                "memory handles by pidfd fail",
                evidence,
                *value == "3"
                    ? "echo kernel.yama.ptrace_scope=0 > /etc/sysctl.d/99-ptrace.conf && reboot  "
                      "# 3 cannot be lowered without a reboot"
                    : "sysctl -w kernel.yama.ptrace_scope=0");
}

CheckResult container_capabilities(const CheckContext& context) {
  const auto container = container_evidence(context.sysroot, context.environment);
  if (!container)
    return skipped("not in a container");
  const auto capabilities = effective_capabilities(context.sysroot);
  if (!capabilities)
    return skipped("the capabilities are unknown", absent(status_path));
  const std::string evidence =
      *container + "; " + file_evidence(status_path, fmt::format("CapEff {:016x}", *capabilities));
  std::vector<std::string> missing;
  std::string fix = "docker run";
  for (const Capability& each : wanted) {
    if (has_capability(*capabilities, each.bit))
      continue;
    missing.push_back(fmt::format("CAP_{} ({})", each.name, each.need));
    fix += fmt::format(" --cap-add={}", each.name);
  }
  if (missing.empty())
    return passed("the container has the capabilities IPC_LOCK, SYS_PTRACE and SYS_NICE", evidence);
  return warned("the container lacks " + name_list(missing), evidence, fix);
}

} // namespace shmemctl::doctor
