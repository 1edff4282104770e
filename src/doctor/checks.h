// The functions behind the table in checks.cpp, by group.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/doctor/cuda_probe.h"
#include "src/doctor/doctor.h"

namespace shmemctl::doctor {

// driver.cpp
CheckResult nvidia_driver(const CheckContext& context);
CheckResult cuda_driver(const CheckContext& context);
CheckResult nvidia_devices(const CheckContext& context);
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
CheckResult gpu_p2p(const CheckContext& context);
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

// rdma_gid.cpp
CheckResult rdma_gid_table(const CheckContext& context);
CheckResult rdma_gid_index(const CheckContext& context);

// memory.cpp
CheckResult memlock(const CheckContext& context);
CheckResult dev_shm(const CheckContext& context);
CheckResult hugepages(const CheckContext& context);
CheckResult numa_balancing(const CheckContext& context);

// system.cpp
CheckResult kernel(const CheckContext& context);
CheckResult cpu_governor(const CheckContext& context);
CheckResult clocksource(const CheckContext& context);
CheckResult open_files(const CheckContext& context);

// isolation.cpp
CheckResult pid_namespace(const CheckContext& context);
CheckResult ptrace_scope(const CheckContext& context);
CheckResult container_capabilities(const CheckContext& context);

// libraries.cpp
/// The check of one library that is loaded at run time, by the id of its check; throws
/// std::logic_error for an id that the table of libraries does not have.
std::function<CheckResult(const CheckContext&)> library(const std::string& id);

// Verdicts on what only a live machine can tell, apart from the asking, so that tests can state it.
CheckResult judge_cuda_driver(const CudaProbe& probe, const std::string& toolkit_version);
CheckResult judge_gpu_p2p(const CudaProbe& probe, bool nvlinks);

/// What NVML says about one GPU's memory; nothing where this GPU or driver does not count it.
struct GpuHealth {
  std::string address;
  std::optional<unsigned long long> uncorrected_errors; ///< ECC, since the last reset
  std::optional<bool> remapping_failed;                 ///< no spare rows left
  std::optional<bool> remapping_pending;                ///< at the next reset
  std::optional<bool> retirement_pending;               ///< of pages, on GPUs before Ampere
};
CheckResult judge_gpu_health(const std::vector<GpuHealth>& gpus);

} // namespace shmemctl::doctor
