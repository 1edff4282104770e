// Every check, in the order it is shown: this page is the list of what `doctor` looks at.
#include "src/doctor/checks.h"

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

const std::vector<Check>& all_checks() {
  using namespace doctor;
  // clang-format off
  static const std::vector<Check> table = {
      {"nvidia-driver", "driver", "NVIDIA kernel driver loaded, of its libraries' version", nvidia_driver},
      {"cuda-driver", "driver", "CUDA starts and is new enough for this binary", cuda_driver},
      {"nvidia-devices", "driver", "device nodes of the NVIDIA driver", nvidia_devices},
      {"fabric-manager", "driver", "fabric manager runs where there are NVSwitches", fabric_manager},
      {"peer-mapping-override", "driver", "GPU may ring a NIC's doorbell (IBGDA)", peer_mapping_override},
      {"nvidia-peermem", "driver", "peer memory client for RDMA of GPU memory", nvidia_peermem},
      {"dma-buf", "driver", "RDMA of GPU memory through dma-buf", dma_buf},
      {"gpudirect-rdma", "driver", "at least one way for NICs to GPU memory", gpudirect_rdma},
      {"gdrcopy", "driver", "GDRCopy: module, device and library", gdrcopy},

      {"gpus-visible", "gpu", "driver sees every GPU that PCI shows", gpus_visible},
      {"gpu-health", "gpu", "ECC errors, remapped rows, retired pages", gpu_health},
      {"gpu-kernel", "gpu", "each GPU runs a kernel and keeps what it wrote", gpu_kernel},
      {"gpu-abilities", "gpu", "memory can be shared between processes, grids can meet", gpu_abilities},
      {"gpu-copies", "gpu", "copies from and to the host, beside the PCIe link", gpu_copies},
      {"gpu-p2p", "gpu", "GPUs reach each other's memory", gpu_p2p},
      {"nvlink-state", "gpu", "all NVLinks of every GPU are active", nvlink_state},
      {"nvidia-persistence", "gpu", "GPUs stay initialised between jobs", persistence},

      {"pcie-link-width", "pcie", "PCIe lanes to GPUs and NICs", pcie_link_width},
      {"pcie-link-speed", "pcie", "PCIe speed to GPUs and NICs", pcie_link_speed},
      {"pcie-acs", "pcie", "no ACS redirect between GPU and NIC", pcie_acs},
      {"iommu", "pcie", "IOMMU off or passing through", iommu},
      {"relaxed-ordering", "pcie", "PCIe relaxed ordering on NICs", relaxed_ordering},
      {"pcie-max-read-request", "pcie", "size of the NICs' PCIe read requests", pcie_max_read_request},

      {"rdma-devices", "rdma", "RDMA devices of every capable NIC", rdma_devices},
      {"rdma-port-state", "rdma", "ports are active", rdma_port_state},
      {"rdma-link-layer", "rdma", "one link layer on all ports", rdma_link_layer},
      {"rdma-rate", "rdma", "one rate on all ports", rdma_rate},
      {"rdma-mtu", "rdma", "packets of 4096 bytes", rdma_mtu},
      {"rdma-gid-table", "rdma", "RoCE v2 address on IPv4", rdma_gid_table},
      {"rdma-gid-index", "rdma", "same GID index on every device", rdma_gid_index},
      {"rdma-uverbs", "rdma", "RDMA devices can be opened", rdma_uverbs},
      {"libfabric-provider", "rdma", "libfabric has a provider for the NICs", libfabric_provider},
      {"libfabric-environment", "rdma", "variables of libfabric's provider", libfabric_environment},
      {"libfabric-gdrcopy", "rdma", "GDRCopy where libfabric's provider needs it", libfabric_gdrcopy},

      {"remote-transport-unknown", "transport", "REMOTE_TRANSPORT names a transport", remote_transport_unknown},
      {"transport-ibrc", "transport", "ibrc moves bytes through each port and back", transport_ibrc},
      {"transport-ibdevx", "transport", "the CPU's own mlx5 queues move bytes through each port", transport_ibdevx},
      {"transport-ibgda", "transport", "mlx5 queues as GPUs use them move bytes, posted by the CPU", transport_ibgda},
      {"transport-libfabric", "transport", "libfabric moves bytes to this process itself", transport_libfabric},
      {"transport-ucx", "transport", "UCX moves bytes to this process itself", transport_ucx},

      {"memlock", "memory", "limit of locked memory", memlock},
      {"dev-shm", "memory", "size of /dev/shm", dev_shm},
      {"hugepages", "memory", "huge pages", hugepages},
      {"numa-balancing", "memory", "automatic NUMA balancing is off", numa_balancing},

      {"kernel-version", "system", "Linux is new enough", kernel},
      {"cpu-governor", "system", "CPU clock governor", cpu_governor},
      {"clocksource", "system", "clock is quick to read", clocksource},
      {"open-files", "system", "limit of open files", open_files},
      {"pid-namespace", "system", "PEs see each other's processes", pid_namespace},
      {"ptrace-scope", "system", "processes may attach to each other", ptrace_scope},
      {"container-capabilities", "system", "capabilities of the container", container_capabilities},

      {"libcuda", "library", "CUDA driver library", library("libcuda")},
      {"libnvidia-ml", "library", "NVML", library("libnvidia-ml")},
      {"libibverbs", "library", "verbs", library("libibverbs")},
      {"libmlx5", "library", "mlx5 direct verbs", library("libmlx5")},
      {"librdmacm", "library", "RDMA connection manager", library("librdmacm")},
      {"libfabric", "library", "libfabric", library("libfabric")},
      {"libucp", "library", "UCX", library("libucp")},
      {"libmpi", "library", "MPI", library("libmpi")},
      {"libpmix", "library", "PMIx", library("libpmix")},
      {"libpmi", "library", "PMI", library("libpmi")},
      {"libpmi2", "library", "PMI-2", library("libpmi2")},
      {"liboshmem", "library", "OpenSHMEM", library("liboshmem")},
      {"libgdrapi", "library", "GDRCopy", library("libgdrapi")},
  };
  // clang-format on
  return table;
}

} // namespace shmemctl
