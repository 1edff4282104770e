// The check functions that the table in checks.cpp lists, grouped by the source file that defines
// them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/doctor/cuda_probe.h"
#include "src/instruments/doctor/doctor.h"
#include "src/instruments/doctor/nvlink.h"
#include "src/runtime/cuda/gpu_survey.h"
#include "transports/libfabric/probe.h"

namespace shmemctl::doctor {

// driver.cpp
CheckResult nvidia_driver(const CheckContext& context);
CheckResult cuda_driver(const CheckContext& context);
CheckResult nvidia_devices(const CheckContext& context);

// system.cpp
CheckResult fabric_manager(const CheckContext& context);
CheckResult persistence(const CheckContext& context);

// gpudirect.cpp
CheckResult peer_mapping_override(const CheckContext& context);
CheckResult nvidia_peermem(const CheckContext& context);
CheckResult dma_buf(const CheckContext& context);
CheckResult gpudirect_rdma(const CheckContext& context);
CheckResult gdrcopy(const CheckContext& context);

// gpu.cpp
CheckResult gpus_visible(const CheckContext& context);
CheckResult gpu_health(const CheckContext& context);
CheckResult gpu_clocks(const CheckContext& context);
CheckResult gpu_p2p(const CheckContext& context);

// gpu.cpp
CheckResult gpu_kernel(const CheckContext& context);

// gpu_devices.cpp
CheckResult gpu_abilities(const CheckContext& context);
CheckResult gpu_copies(const CheckContext& context);

// nvlink.cpp
CheckResult nvlink_state(const CheckContext& context);

// pcie.cpp
CheckResult pcie_link_width(const CheckContext& context);
CheckResult pcie_link_speed(const CheckContext& context);
CheckResult pcie_acs(const CheckContext& context);
CheckResult iommu(const CheckContext& context);
CheckResult relaxed_ordering(const CheckContext& context);
CheckResult pcie_max_read_request(const CheckContext& context);

// rdma.cpp
CheckResult rdma_devices(const CheckContext& context);
CheckResult rdma_port_state(const CheckContext& context);
CheckResult rdma_link_layer(const CheckContext& context);
CheckResult rdma_rate(const CheckContext& context);
CheckResult rdma_mtu(const CheckContext& context);
CheckResult rdma_uverbs(const CheckContext& context);

// rdma.cpp
CheckResult rdma_gid_table(const CheckContext& context);
CheckResult rdma_gid_index(const CheckContext& context);

// rdma_siblings.cpp
CheckResult rdma_firmware(const CheckContext& context);
CheckResult rdma_pkeys(const CheckContext& context);

// libraries.cpp
CheckResult libfabric_provider(const CheckContext& context);
CheckResult libfabric_environment(const CheckContext& context);
CheckResult libfabric_gdrcopy(const CheckContext& context);

// transports.cpp
CheckResult remote_transport_unknown(const CheckContext& context);
/// One loopback check for each registered transport that uses NICs, in the order of the registry.
std::vector<Check> loopback_checks();

// memory.cpp
CheckResult memlock(const CheckContext& context);
CheckResult dev_shm(const CheckContext& context);
CheckResult hugepages(const CheckContext& context);
CheckResult numa_balancing(const CheckContext& context);

// address_handles.cpp
CheckResult address_handles(const CheckContext& context);

// gpu_initiated.cpp
CheckResult efa_gda(const CheckContext& context);
CheckResult nccl_gin(const CheckContext& context);

// rdma_siblings.cpp
CheckResult roce_priorities(const CheckContext& context);
CheckResult link_flaps(const CheckContext& context);

// system.cpp
CheckResult imex(const CheckContext& context);
CheckResult kernel(const CheckContext& context);
CheckResult cpu_governor(const CheckContext& context);
CheckResult clocksource(const CheckContext& context);
CheckResult open_files(const CheckContext& context);

// system.cpp
CheckResult pid_namespace(const CheckContext& context);
CheckResult ptrace_scope(const CheckContext& context);
CheckResult container_capabilities(const CheckContext& context);

// descriptor_passing.cpp
CheckResult pidfd_getfd(const CheckContext& context);
CheckResult descriptor_passing(const CheckContext& context);

// kernel_log_checks.cpp
/// The check for one kind of kernel messages: "xid" gives the check kernel-log-xid.
std::function<CheckResult(const CheckContext&)> kernel_log(const std::string& check);

// software.cpp
CheckResult software_loader(const CheckContext& context);
CheckResult software_python(const CheckContext& context);
CheckResult software_versions(const CheckContext& context);
CheckResult software_cuda(const CheckContext& context);
CheckResult software_modules(const CheckContext& context);

// libraries.cpp
/// The check of one library that is loaded at run time. `id` is the id of that check. Throws
/// std::logic_error if the table of libraries has no such id.
std::function<CheckResult(const CheckContext&)> library(const std::string& id);

// These functions judge facts of a live machine. They are separate from the functions that query
// the machine, so that tests can supply the facts.
CheckResult judge_cuda_driver(const CudaProbe& probe, const std::string& toolkit_version);
/// The result of every check that launches a kernel if the driver cannot run the kernels of this
/// binary; empty if it can.
std::optional<CheckResult> judge_kernels_of_driver(const CudaProbe& probe,
                                                   const std::string& toolkit_version);
CheckResult judge_gpu_p2p(const CudaProbe& probe, const Node& node);
/// @param answer lines "0 ok NAME" or "0 bad NAME: ERROR", or one line "none WHY"
CheckResult judge_gpu_kernel(const std::string& answer);
/// GPU features that the runtime needs: memory shared between processes, cooperative launch.
CheckResult judge_gpu_abilities(const cuda::DeviceSurvey& survey);
/// Host-to-device and device-to-host copies compared with the PCIe links that the node declares.
CheckResult judge_gpu_copies(const cuda::DeviceSurvey& survey, const Node& node);
CheckResult judge_gpu_health(const NvmlSurvey& survey);
CheckResult judge_gpu_clocks(const NvmlSurvey& survey);
/// Settings that may prevent a process from taking a file descriptor of a sibling process.
struct PassingRights {
  std::optional<std::string> ptrace_scope; ///< Yama's ptrace_scope; empty without Yama
  bool may_trace = false;                  ///< CAP_SYS_PTRACE
  bool seccomp = false;                    ///< a seccomp filter is in force
  bool container = false;
  std::string newer_kernel; ///< the command that installs a newer kernel
};
/// @param answer "ok", or "STEP<tab>ERRNO" for the step that failed
CheckResult judge_pidfd_getfd(const std::string& answer, const PassingRights& rights);
CheckResult judge_descriptor_passing(const std::string& answer, const PassingRights& rights);
CheckResult judge_persistence(const NvmlSurvey& survey);
/// The libfabric provider that this node should have.
struct ExpectedProvider {
  std::string provider; ///< the name of a profile, or libfabric's name of the provider
  std::string reason;
  bool needed = false; ///< it is requested, or no other transport can use the NICs
};
CheckResult judge_libfabric_provider(const ExpectedProvider& expected,
                                     const fabric::ProviderPresence& presence);
/// @param answer one line for each attempt: "ok<tab>PORT<tab>CONNECTION",
///               "none<tab>PORT<tab>REASON" if the transport cannot be used there, or
///               "bad<tab>PORT<tab>MESSAGE<tab>FIX"; PORT may be empty
/// @param needed whether the transport should be usable on this node
CheckResult judge_loopback(const std::string& transport, const std::string& answer, bool needed);
/// @param answer one line for each address: "ok<tab>PORT<tab>INDEX<tab>ADDRESS",
///               "bad<tab>PORT<tab>INDEX<tab>ADDRESS<tab>ERRNO",
///               "untried<tab>PORT<tab>INDEX<tab>REASON"; or one line "none<tab>REASON"
CheckResult judge_address_handles(const std::string& answer);
/// Empty if NVML does not report the state of the fabric.
std::optional<CheckResult> judge_fabric_state(const NvmlSurvey& survey);
/// Checks for every GPU that all NVLinks which are present are active. Empty if NVML reports no
/// NVLinks.
std::optional<CheckResult> judge_nvlinks(const NvmlSurvey& survey);

} // namespace shmemctl::doctor
