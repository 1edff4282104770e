// All checks of `doctor`, in the order in which they are shown.
#include "src/instruments/doctor/checks.h"

namespace shmemctl {

const char* to_string(CheckStatus status) {
  switch (status) {
  case CheckStatus::pass:
    return "pass";
  case CheckStatus::warning:
    return "warning";
  case CheckStatus::fail:
    return "fail";
  case CheckStatus::skipped:
    return "skipped";
  }
  return "skipped";
}

namespace {

void append(std::vector<Check>& table, const std::vector<Check>& more) {
  table.insert(table.end(), more.begin(), more.end());
}

std::vector<Check> make_checks() {
  using namespace doctor;
  // clang-format off
  std::vector<Check> table = {
      {"nvidia-driver", "driver", "NVIDIA kernel driver loaded, version matches the user-space libraries", nvidia_driver},
      {"cuda-driver", "driver", "CUDA initializes and is new enough for this binary", cuda_driver},
      {"nvidia-devices", "driver", "NVIDIA device nodes exist and can be opened", nvidia_devices},
      {"fabric-manager", "driver", "fabric manager runs if the node has NVSwitches", fabric_manager},
      {"imex", "driver", "IMEX runs and has a channel, if NVLinks reach other nodes", imex},
      {"peer-mapping-override", "driver", "GPU can ring NIC doorbells (IBGDA)", peer_mapping_override},
      {"nvidia-peermem", "driver", "nvidia_peermem available for GPUDirect RDMA", nvidia_peermem},
      {"dma-buf", "driver", "dma-buf available for GPUDirect RDMA", dma_buf},
      {"gpudirect-rdma", "driver", "GPUDirect RDMA: dma-buf or nvidia_peermem", gpudirect_rdma},
      {"gdrcopy", "driver", "GDRCopy: module, device and library", gdrcopy},

      {"gpus-visible", "gpu", "driver sees every GPU on the PCI bus", gpus_visible},
      {"gpu-health", "gpu", "ECC errors, remapped rows, retired pages", gpu_health},
      {"gpu-clocks", "gpu", "no setting lowers the clocks of GPUs", gpu_clocks},
      {"gpu-kernel", "gpu", "each GPU runs a kernel and its results verify", gpu_kernel},
      {"gpu-abilities", "gpu", "GPU features: IPC/VMM handle export, cooperative launch", gpu_abilities},
      {"gpu-copies", "gpu", "host-device copy bandwidth compared with the PCIe link", gpu_copies},
      {"gpu-p2p", "gpu", "GPU peer-to-peer access", gpu_p2p},
      {"nvlink-state", "gpu", "all NVLinks of every GPU are active", nvlink_state},
      {"nvidia-persistence", "gpu", "GPUs stay initialised between jobs", persistence},

      {"pcie-link-width", "pcie", "PCIe link width of GPUs and NICs", pcie_link_width},
      {"pcie-link-speed", "pcie", "PCIe link speed of GPUs and NICs", pcie_link_speed},
      {"pcie-acs", "pcie", "no ACS redirect between GPU and NIC", pcie_acs},
      {"iommu", "pcie", "IOMMU disabled or in passthrough mode", iommu},
      {"relaxed-ordering", "pcie", "PCIe relaxed ordering enabled on NICs", relaxed_ordering},
      {"pcie-max-read-request", "pcie", "PCIe maximum read request size of NICs", pcie_max_read_request},

      {"rdma-devices", "rdma", "every RDMA-capable NIC has an RDMA device", rdma_devices},
      {"rdma-port-state", "rdma", "RDMA ports are active", rdma_port_state},
      {"rdma-link-layer", "rdma", "same link layer on all ports", rdma_link_layer},
      {"rdma-rate", "rdma", "same rate on all ports", rdma_rate},
      {"rdma-mtu", "rdma", "active MTU is 4096", rdma_mtu},
      {"rdma-gid-table", "rdma", "RoCE ports have an IPv4 RoCE v2 GID", rdma_gid_table},
      {"rdma-gid-index", "rdma", "same RoCE v2 GID index on every device", rdma_gid_index},
      {"rdma-uverbs", "rdma", "RDMA devices can be opened", rdma_uverbs},
      {"rdma-address-handles", "rdma", "address handles can be made to the addresses in use", address_handles},
      {"rdma-firmware", "rdma", "HCAs of the same kind have the same firmware", rdma_firmware},
      {"rdma-pkeys", "rdma", "InfiniBand ports are full members of the same partitions", rdma_pkeys},
      {"roce-priorities", "rdma", "RoCE ports have the same PFC, ETS, ECN and traffic class", roce_priorities},
      {"link-flaps", "rdma", "no port has lost its link much more often than the others", link_flaps},
      {"nccl-gin", "rdma", "NCCL GIN: kernels may start transfers", nccl_gin},
      {"efa-gda", "rdma", "GPU-initiated EFA (NCCL GIN type 5)", efa_gda},
      {"libfabric-provider", "rdma", "libfabric has a provider for the NICs", libfabric_provider},
      {"libfabric-environment", "rdma", "environment variables of the libfabric provider", libfabric_environment},
      {"libfabric-gdrcopy", "rdma", "GDRCopy available if the libfabric provider needs it", libfabric_gdrcopy},

      {"remote-transport-unknown", "transport", "REMOTE_TRANSPORT names a known transport", remote_transport_unknown},
  };
  append(table, loopback_checks()); // transport-ibrc, ...: one for each transport that uses NICs
  append(table, {
      {"memlock", "memory", "locked-memory limit (memlock)", memlock},
      {"dev-shm", "memory", "size of /dev/shm", dev_shm},
      {"hugepages", "memory", "huge pages available", hugepages},
      {"numa-balancing", "memory", "automatic NUMA balancing disabled", numa_balancing},

      {"kernel-version", "system", "Linux kernel version", kernel},
      {"cpu-governor", "system", "CPU frequency governor", cpu_governor},
      {"clocksource", "system", "clock source is readable without a system call", clocksource},
      {"open-files", "system", "open-files limit (nofile)", open_files},
      {"pid-namespace", "system", "PEs share a PID namespace", pid_namespace},
      {"ptrace-scope", "system", "ptrace_scope allows access between processes (CMA)", ptrace_scope},
      {"pidfd-getfd", "system", "a process may take a descriptor of its sibling (pidfd_getfd)", pidfd_getfd},
      {"descriptor-passing", "system", "processes pass descriptors in messages (SCM_RIGHTS)", descriptor_passing},
      {"container-capabilities", "system", "container capabilities", container_capabilities},

      {"kernel-log-xid", "kernel-log", "no Xid: errors of GPUs", kernel_log("xid")},
      {"kernel-log-sxid", "kernel-log", "no SXid: errors of NVSwitches", kernel_log("sxid")},
      {"kernel-log-nvrm", "kernel-log", "no failure of the NVIDIA driver", kernel_log("nvrm")},
      {"kernel-log-nic", "kernel-log", "no failure of a NIC, its firmware or its transceiver", kernel_log("nic")},
      {"kernel-log-link", "kernel-log", "no link of a NIC goes down again and again", kernel_log("link")},
      {"kernel-log-pcie", "kernel-log", "no PCIe errors (AER, DPC)", kernel_log("pcie")},
      {"kernel-log-iommu", "kernel-log", "no access to memory that the IOMMU refused", kernel_log("iommu")},
      {"kernel-log-process", "kernel-log", "no process killed for lack of memory, or stuck in the kernel", kernel_log("process")},

      {"software-loader", "software", "no older communication library hides a newer one from the loader", software_loader},
      {"software-python", "software", "packages of the Python environment fit together", software_python},
      {"software-versions", "software", "installed libraries fit together: NVSHMEM releases, symbol versions", software_versions},
      {"software-cuda", "software", "CUDA_HOME fits the driver and PyTorch", software_cuda},
      {"software-modules", "software", "environment modules fit together", software_modules},

      {"libcuda", "library", "CUDA driver library", library("libcuda")},
      {"libnvidia-ml", "library", "NVML", library("libnvidia-ml")},
      {"libibverbs", "library", "verbs", library("libibverbs")},
      {"libmlx5", "library", "mlx5 direct verbs", library("libmlx5")},
      {"librdmacm", "library", "RDMA connection manager", library("librdmacm")},
      {"libfabric", "library", "libfabric", library("libfabric")},
      {"libucp", "library", "UCX", library("libucp")},
      {"libmpi", "library", "MPI", library("libmpi")},
      {"libpmix", "library", "PMIx", library("libpmix")},
      {"liboshmem", "library", "OpenSHMEM", library("liboshmem")},
      {"libgdrapi", "library", "GDRCopy", library("libgdrapi")},
  });
  // clang-format on
  return table;
}

} // namespace

const std::vector<Check>& all_checks() {
  static const std::vector<Check> checks = make_checks();
  return checks;
}

} // namespace shmemctl
