#include "src/instruments/gather/recorded_files.h"

#include "src/base/text.h"

namespace shmemctl::gather {

const std::vector<RecordedFiles>& recorded_files() {
  using enum Treatment;
  static const std::vector<RecordedFiles> files = {
      // PCI: topo's tree, doctor's links, ACS, IOMMU
      {"/sys/bus/pci/devices/*/class"},
      {"/sys/bus/pci/devices/*/vendor"},
      {"/sys/bus/pci/devices/*/device"},
      {"/sys/bus/pci/devices/*/subsystem_vendor"},
      {"/sys/bus/pci/devices/*/subsystem_device"},
      {"/sys/bus/pci/devices/*/numa_node"},
      {"/sys/bus/pci/devices/*/local_cpus"},
      {"/sys/bus/pci/devices/*/current_link_speed"},
      {"/sys/bus/pci/devices/*/current_link_width"},
      {"/sys/bus/pci/devices/*/max_link_speed"},
      {"/sys/bus/pci/devices/*/max_link_width"},
      {"/sys/bus/pci/devices/*/config", binary},
      {"/sys/bus/pci/devices/*/driver", presence},
      {"/sys/bus/pci/devices/*/physfn", presence},
      {"/sys/bus/pci/devices/*/iommu_group/type"},
      {"/sys/class/iommu/*", presence},
      {"/proc/cmdline", kernel_command, "iommu|intel_iommu|amd_iommu|pci=|pcie|nvidia|hugepages|"
                                        "default_hugepagesz|isolcpus|nohz_full|numa_balancing|tsc"},
      // CPUs and memory
      {"/sys/devices/system/cpu/online"},
      {"/sys/devices/system/cpu/cpu*/topology/physical_package_id"},
      {"/sys/devices/system/cpu/cpu*/topology/*_list"},
      {"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"},
      {"/sys/devices/system/cpu/cpufreq/*/scaling_governor"},
      {"/sys/devices/system/node/node*/cpulist"},
      {"/sys/devices/system/node/node*/cpumap"},
      {"/sys/devices/system/node/node*/meminfo"},
      {"/sys/devices/system/node/node*/distance"},
      {"/sys/devices/system/clocksource/clocksource0/current_clocksource"},
      {"/sys/devices/system/clocksource/clocksource0/available_clocksource"},
      {"/sys/kernel/mm/hugepages/*/*hugepages"},
      {"/sys/kernel/mm/transparent_hugepage/*enabled"},
      {"/proc/cpuinfo", lines, "processor|model name|vendor_id|cpu family|clock|machine"},
      {"/proc/meminfo", lines, "MemTotal|MemFree|MemAvailable|Huge"},
      {"/proc/stat", lines, "btime"},
      // RDMA devices
      {"/sys/class/infiniband/*/fw_ver"},
      {"/sys/class/infiniband/*/board_id"},
      {"/sys/class/infiniband/*/hca_type"},
      {"/sys/class/infiniband/*/node_type"},
      {"/sys/class/infiniband/*/node_guid"},
      {"/sys/class/infiniband/*/sys_image_guid"},
      {"/sys/class/infiniband/*/parent"},
      {"/sys/class/infiniband/*/device", presence},
      {"/sys/class/infiniband/*/device/driver", presence},
      {"/sys/class/infiniband/*/ports/*/state"},
      {"/sys/class/infiniband/*/ports/*/phys_state"},
      {"/sys/class/infiniband/*/ports/*/link_layer"},
      {"/sys/class/infiniband/*/ports/*/rate"},
      {"/sys/class/infiniband/*/ports/*/lid"},
      {"/sys/class/infiniband/*/ports/*/gids/*"},
      {"/sys/class/infiniband/*/ports/*/gid_attrs/types/*"},
      {"/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*"},
      {"/sys/class/infiniband/*/ports/*/pkeys/*"},
      {"/sys/class/infiniband/*/ports/*/counters/*"},
      {"/sys/class/infiniband/*/ports/*/hw_counters/*"},
      {"/sys/class/infiniband_verbs/*/ibdev"},
      {"/sys/class/infiniband_verbs/*/abi_version"},
      {"/dev/infiniband/*", presence},
      // Network interfaces
      {"/sys/class/net/*/operstate"},
      {"/sys/class/net/*/type"},
      {"/sys/class/net/*/speed"},
      {"/sys/class/net/*/mtu"},
      {"/sys/class/net/*/dev_port"},
      {"/sys/class/net/*/phys_port_name"},
      {"/sys/class/net/*/carrier_changes"},
      {"/sys/class/net/*/uevent"},
      {"/sys/class/net/*/device", presence},
      {"/sys/class/net/*/device/driver", presence},
      {"/sys/class/net/*/lower_*", presence},
      {"/sys/class/net/*/statistics/*"},
      {"/sys/class/net/*/ecn/*/*"},
      {"/sys/class/net/*/ecn/*/*/*"},
      {"/sys/class/net/*/qos/*"},
      {"/ethtool-S/*"},
      {"/proc/net/dev"},
      // NVIDIA's driver, GPUDirect, modules
      {"/proc/driver/nvidia/version"},
      {"/proc/driver/nvidia/params"},
      {"/proc/driver/nvidia/gpus/*/information"},
      {"/proc/driver/nvidia/gpus/*/numa_status"},
      {"/proc/driver/nvidia-nvlink/*/*"},
      {"/proc/modules"},
      {"/sys/module/nouveau", presence},
      {"/sys/module/nvidia*/version"},
      {"/sys/module/nvidia_peermem", presence},
      {"/sys/module/nv_peer_mem", presence},
      {"/sys/module/gdrdrv", presence},
      {"/sys/module/*/version"},
      {"/sys/kernel/mm/memory_peers/*/version"},
      {"/dev/nvidia*", presence},
      {"/dev/nvidia-caps-imex-channels/*", presence},
      {"/dev/gdrdrv", presence},
      {"/dev/kfd", presence},
      {"/etc/nvidia-imex/config.cfg"},
      {"/run/nvidia-persistenced/socket", presence},
      {"/boot/config-*", lines, "CONFIG_DMABUF|CONFIG_DMA_|CONFIG_PCI_P2PDMA|CONFIG_INFINIBAND|"
                                "CONFIG_ZONE_DEVICE|CONFIG_HMM|CONFIG_UDMABUF"},
      {"/lib/modules/*/config", lines, "CONFIG_DMABUF|CONFIG_DMA_|CONFIG_PCI_P2PDMA|"
                                       "CONFIG_INFINIBAND|CONFIG_ZONE_DEVICE|CONFIG_HMM"},
      {"/usr/lib/modules/*/config", lines, "CONFIG_DMABUF|CONFIG_DMA_|CONFIG_PCI_P2PDMA|"
                                           "CONFIG_INFINIBAND|CONFIG_ZONE_DEVICE|CONFIG_HMM"},
      // The system
      {"/proc/sys/kernel/hostname"},
      {"/proc/sys/kernel/osrelease"},
      {"/proc/sys/kernel/numa_balancing"},
      {"/proc/sys/kernel/yama/ptrace_scope"},
      {"/proc/mounts", mounts},
      {"/proc/self/limits"},
      {"/proc/self/status"},
      {"/proc/self/cgroup"},
      {"/proc/self/ns/pid", link},
      {"/proc/thread-self/status"},
      {"/proc/1/comm"},
      {"/proc/1/cgroup"},
      {"/proc/*/comm", lines, "nv-|nvidia-|nvsm|slurmd"},
      {"/etc/os-release", lines, "ID=|ID_LIKE=|VERSION_ID=|PRETTY_NAME=|NAME="},
      {"/.dockerenv", presence},
      {"/run/.containerenv", presence},
      {"/.singularity.d", presence},
      // Libraries
      {"/etc/ld.so.conf"},
      {"/etc/ld.so.conf.d/*.conf"},
      {"/usr/local/lib/*-linux-gnu", presence},
      {"/usr/lib/*-linux-gnu", presence},
      {"/lib/*-linux-gnu", presence},
      {"{libraries}/libcuda.so*", library},
      {"{libraries}/libnvidia-ml.so*", library},
      {"{libraries}/libibverbs.so*", library},
      {"{libraries}/libmlx5.so*", library},
      {"{libraries}/librdmacm.so*", library},
      {"{libraries}/libfabric.so*", library},
      {"{libraries}/libuc?.so*", library},
      {"{libraries}/libmpi*.so*", library},
      {"{libraries}/libpmi*.so*", library},
      {"{libraries}/liboshmem.so*", library},
      {"{libraries}/libgdrapi.so*", library},
      {"{libraries}/libnccl*.so*", library},
      {"{libraries}/libnvshmem*.so*", library},
      // Processes of jobs. What they have mapped follows their maps.
      {"/proc/{child}/stat"},
      {"/proc/{pid}/status"},
      {"/proc/{pid}/cmdline", command},
      {"/proc/{pid}/environ", environment},
      {"/proc/{pid}/maps", maps},
      {"/proc/{pid}/limits"},
      {"/proc/{pid}/cgroup"},
      {"/proc/{pid}/exe", link},
      {"/proc/{pid}/ns/*", link},
      {"/proc/{pid}/fd/*", descriptor},
      {"/proc/{pid}/net/tcp", sockets},
      {"/proc/{pid}/net/tcp6", sockets},
      {"/proc/{pid}/net/dev"},
      {"/proc/{pid}/task/*/stat"},
      {"/proc/{pid}/task/*/wchan"},
      {"/proc/{pid}/task/*/syscall", first_word},
      {"/etc/passwd", users},
  };
  return files;
}

bool recorded_variable(std::string_view name) {
  static constexpr const char* patterns[] = {
      "NVSHMEM_*",        "NCCL_*",          "UCX_*",      "FI_*",           "OMPI_*",
      "DEEP_EP_*",        "DEEPEP_*",        "RANK",       "WORLD_SIZE",     "LOCAL_RANK",
      "LOCAL_WORLD_SIZE", "GROUP_RANK",      "NODE_RANK",  "MASTER_ADDR",    "MASTER_PORT",
      "PMI_RANK",         "PMI_SIZE",        "PMIX_RANK",  "PMIX_NAMESPACE", "MPI_LOCAL*",
      "SLURM_JOB_ID",     "SLURM_PROCID",    "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NNODES",
      "SLURM_NODEID",     "SLURM_STEP_ID",   "PBS_JOBID",  "LSB_JOBID",      "TORCHELASTIC_RUN_ID",
      "CUDA_*DEVICE*",    "CUDA_HOME",       "CUDA_PATH",  "CUDA_MODULE_LOADING",
      "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LD_PRELOAD", "MELLANOX_*", "MLX5_*", "EFA_*",
      "RDMAV_*",          "TORCH_NCCL_*",    "TORCH_CUDA_ARCH_LIST"};
  for (const char* secret : {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY"})
    if (name.find(secret) != std::string_view::npos)
      return false;
  for (const char* pattern : patterns)
    if (matches_pattern(name, pattern))
      return true;
  return false;
}

} // namespace shmemctl::gather
