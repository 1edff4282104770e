// A whole copied machine, read as `doctor --sysroot` reads it, and checked.
#include <gtest/gtest.h>
#include <map>

#include "src/model/topo/readers/reader.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

/// The files of a healthy node, except those of its devices.
void add_healthy_files(fake::FakeMachine& files) {
  files.write("/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n");
  files.write("/proc/driver/nvidia/params",
              "EnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1;\"\n");
  files.write("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
  files.write("/proc/sys/kernel/numa_balancing", "0\n");
  files.write("/proc/sys/kernel/yama/ptrace_scope", "0\n");
  files.write("/proc/self/limits", "Max open files            1048576  1048576  files\n"
                                   "Max locked memory         unlimited  unlimited  bytes\n");
  files.write("/proc/mounts", "tmpfs /dev/shm tmpfs rw,size=1056755920k 0 0\n");
  files.symlink("/proc/self/ns/pid", "pid:[4026531836]");
  files.write("/proc/9/comm", "nvidia-persiste\n");
  files.directory("/sys/class/iommu");
  files.write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  files.write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  files.write("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
  for (int i = 0; i < 8; ++i)
    files.write("/sys/class/infiniband_verbs/uverbs" + std::to_string(i) + "/ibdev",
                "mlx5_" + std::to_string(i) + "\n");
}

std::map<std::string, CheckResult> results_of(const fake::FakeMachine& files) {
  const Sysroot sysroot = files.sysroot();
  const Node node = read_machine(sysroot);
  std::map<std::string, CheckResult> results;
  for (const CheckOutcome& outcome : run_checks({sysroot, node, {}}, {}, {}))
    results.emplace(outcome.check->id, outcome.result);
  return results;
}

} // namespace

TEST(DoctorWholeMachine, AHealthyCopyHasNoProblem) {
  fake::FakeMachine files;
  files.add_hgx_node();
  add_healthy_files(files);
  std::size_t passes = 0;
  for (const auto& [id, result] : results_of(files)) {
    // this machine lacks the gdrdrv module: a warning that must not hide others
    if (id == "gdrcopy")
      continue;
    EXPECT_TRUE(result.status == CheckStatus::pass || result.status == CheckStatus::skipped)
        << id << ": " << to_string(result.status) << ": " << result.reason;
    passes += result.status == CheckStatus::pass ? 1 : 0;
  }
  EXPECT_GE(passes, 20U);
}

TEST(DoctorWholeMachine, TroubleIsNamedByTheDeviceThatHasIt) {
  fake::FakeMachine files;
  files.add_hgx_node();
  add_healthy_files(files);
  files.write(files.path_of(fake::FakeMachine::hgx_gpu(3)) + "/current_link_width", "8\n");
  files.write(files.path_of(fake::FakeMachine::hgx_nic(5)) + "/infiniband/mlx5_5/ports/1/state",
              "1: DOWN\n");
  const std::map<std::string, CheckResult> results = results_of(files);
  const CheckResult& width = results.at("pcie-link-width");
  EXPECT_STREQ(to_string(width.status), "fail") << width.reason;
  EXPECT_NE(width.reason.find(fake::FakeMachine::hgx_gpu(3)), std::string::npos) << width.reason;
  const CheckResult& state = results.at("rdma-port-state");
  EXPECT_STREQ(to_string(state.status), "warning") << state.reason;
  EXPECT_NE(state.reason.find("mlx5_5:1"), std::string::npos) << state.reason;
}

} // namespace shmemctl
