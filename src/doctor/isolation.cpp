// What containers and security modules keep processes from doing with each other.
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/support.h"

namespace shmemctl::doctor {

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
    return skipped("the PID namespace is not told", absent(namespace_path));
  const std::string evidence = said(namespace_path, *target);
  if (*target == initial_pid_namespace)
    return passed("processes are in the host's PID namespace", evidence);
  return warned("this is a PID namespace of its own: PEs in different containers of this node "
                "cannot pass memory handles to each other",
                evidence, "docker run --pid=host --ipc=host  # Kubernetes: hostPID, hostIPC");
}

CheckResult ptrace_scope(const CheckContext& context) {
  const Sysroot& sysroot = context.sysroot;
  const auto value = sysroot.read_line(ptrace_path);
  if (!value) {
    if (!sysroot.is_directory("/proc/sys/kernel"))
      return skipped("the kernel's settings are not told", absent("/proc/sys/kernel"));
    return passed("the Yama security module is not active", absent(ptrace_path));
  }
  const std::string evidence = said(ptrace_path, *value);
  if (*value == "0")
    return passed("processes of one user may attach to each other", evidence);
  const auto capabilities = effective_capabilities(sysroot);
  if (*value != "3" && capabilities && has_capability(*capabilities, cap_sys_ptrace))
    return passed("CAP_SYS_PTRACE lifts the restriction",
                  evidence + "; " + said(status_path, fmt::format("CapEff {:x}", *capabilities)));
  return warned("processes may not attach to their siblings: copies between processes (CMA) and "
                "memory handles by pidfd fail",
                evidence,
                *value == "3" ? "sysctl -w kernel.yama.ptrace_scope=0  # needs a reboot: 3 is final"
                              : "sysctl -w kernel.yama.ptrace_scope=0");
}

CheckResult container_capabilities(const CheckContext& context) {
  const auto container = container_evidence(context.sysroot, context.environment);
  if (!container)
    return skipped("not in a container");
  const auto capabilities = effective_capabilities(context.sysroot);
  if (!capabilities)
    return skipped("the capabilities are not told", absent(status_path));
  const std::string evidence =
      *container + "; " + said(status_path, fmt::format("CapEff {:016x}", *capabilities));
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
