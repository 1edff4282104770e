// One state of a machine and the expected result of one check.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/instruments/doctor/doctor.h"
#include "tests/support/fake_machine.h"

namespace shmemctl {

/// A copied tree, the node that was read from it, and the environment of the process.
struct Machine {
  fake::FakeMachine files;
  Node node;
  Environment environment;
  std::string python = {}; ///< --python
};

// Their tables are of these.
inline constexpr CheckStatus pass = CheckStatus::pass, warning = CheckStatus::warning,
                             fail = CheckStatus::fail, skipped = CheckStatus::skipped;

struct Scenario {
  std::string check; ///< id
  std::string name;  ///< the state, as a phrase
  std::function<void(Machine&)> build;
  CheckStatus status = CheckStatus::pass;
  std::string evidence; ///< part of the evidence
  std::string fix;      ///< part of the fix; must be "" for a pass
  /// For facts of a live machine: the verdict itself, instead of running the check.
  std::function<CheckResult()> verdict = nullptr;
};
using Scenarios = std::vector<Scenario>;

Scenarios driver_scenarios();
Scenarios gpudirect_scenarios();
Scenarios gpu_scenarios();
Scenarios gpu_device_scenarios();
Scenarios pcie_scenarios();
Scenarios rdma_scenarios();
Scenarios gid_scenarios();
Scenarios memory_scenarios();
Scenarios system_scenarios();
Scenarios library_scenarios();
Scenarios libfabric_scenarios();
Scenarios transport_scenarios();
Scenarios kernel_log_scenarios();
Scenarios rdma_sibling_scenarios();
Scenarios software_scenarios();
Scenarios descriptor_scenarios();
Scenarios network_setting_scenarios();

/// Two GPUs and two InfiniBand HCAs, GPU i and mlx5_i below one switch, a host bridge per pair.
/// All links are 16 lanes of 32 GT/s; the GPUs have 18 NVLinks each.
Node healthy_node();
/// As healthy_node(), with RoCE ports of netdevs eth0 and eth1 and an IPv4 GID at index 3.
Node roce_node();
Node node_without_gpus();
Node node_without_rdma();

/// The functions of healthy_node() by their indices in Node::pci.
inline constexpr const char* gpu_address[] = {"0000:13:00.0", "0000:23:00.0"};
inline constexpr const char* nic_address[] = {"0000:14:00.0", "0000:24:00.0"};
inline constexpr const char* switch_to_gpu[] = {"0000:12:00.0", "0000:22:00.0"};
PciDevice& function_at(Node& node, const std::string& address);

/// The first `size` bytes of a configuration space of 4096: a PCIe capability with that device
/// control, and, beyond 256 bytes, an ACS capability with that control.
std::string config_bytes(std::size_t size, std::uint16_t device_control, std::uint16_t acs_control);

} // namespace shmemctl
