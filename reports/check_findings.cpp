// Ids of doctor's checks that did not pass.
#include "reports/finding_reference.h"

namespace shmemctl {

std::vector<FindingReference> check_findings() {
  constexpr const char* group = "Checks of doctor";
  constexpr const char *severities = "error, warning", *error = "error", *warning = "warning";
  return {
      {"nvidia-driver", group, error,
       "The NVIDIA kernel driver is not loaded, nouveau holds the GPUs, or kernel module and "
       "user-mode library are of different versions.",
       "`/proc/driver/nvidia/version`, and the version in the file name of libcuda.so.1.",
       "`modprobe nvidia`, install nvidia-open, or reload the modules after an update (or "
       "reboot)."},
      {"cuda-driver", group, severities,
       "CUDA does not start, or the driver is older than the CUDA release that this binary was "
       "built with. It is a warning if the binary still runs with that driver.",
       "`cuInit` and `cuDriverGetVersion` in a child process.",
       "It depends on the CUDA error that the message names: start the fabric manager (802), "
       "reload the modules (803), remove the compat folder (804), pass the GPUs to the container "
       "(100), install cuda-compat or a newer driver."},
      {"nvidia-devices", group, severities,
       "Device nodes of the driver are missing, or this user may not open them. It is a warning if "
       "only those of some GPUs are missing.",
       "`/dev/nvidiactl`, `/dev/nvidia-uvm`, `/dev/nvidia<N>`.",
       "`nvidia-modprobe -u -c 0`; in a container, `docker run --gpus all`."},
      {"fabric-manager", group, error,
       "The node has NVSwitches, but the fabric manager does not run or GPUs are not registered "
       "with the fabric. NVLink between GPUs is off.",
       "The process list, `nvmlDeviceGetGpuFabricInfo`, `cuInit`.",
       "`systemctl enable --now nvidia-fabricmanager`."},
      {"imex", group, severities,
       "The node is configured for NVLinks to other nodes (IMEX), but the service does not run or "
       "there is no channel: CUDA refuses to import memory of another node. It is a warning if the "
       "configuration names one node only.",
       "`/etc/nvidia-imex/nodes_config.cfg`, the process `nvidia-imex`, "
       "`/dev/nvidia-caps-imex-channels`.",
       "Start `nvidia-imex` on all nodes of the domain, and create a channel."},
      {"peer-mapping-override", group, severities,
       "The driver parameter PeerMappingOverride is not set, so a GPU cannot ring a NIC's "
       "doorbell, and NVSHMEM's IBGDA lets a CPU thread do it. It is an error if "
       "`NVSHMEM_IB_ENABLE_IBGDA` asks for IBGDA. Or it is set, but EnableStreamMemOPs, which "
       "NVSHMEM requires too, is off.",
       "`/proc/driver/nvidia/params`.",
       "Set `NVreg_RegistryDwords=\"PeerMappingOverride=1;\"` and `NVreg_EnableStreamMemOPs=1` in "
       "`/etc/modprobe.d`, and reboot."},
      {"nvidia-peermem", group, warning,
       "The peer memory client for RDMA of GPU memory is not loaded, and dma-buf is not available "
       "either.",
       "`/sys/module/nvidia_peermem`, `/sys/kernel/mm/memory_peers`.",
       "`modprobe nvidia-peermem`."},
      {"dma-buf", group, warning,
       "GPU memory cannot be registered by dma-buf (Linux before 5.12 or without it, proprietary "
       "kernel modules, or rdma-core before 34), and nvidia-peermem is not loaded either.",
       "Kernel version and configuration, the driver's flavour, the version of libibverbs, "
       "`CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED`.",
       "Install NVIDIA's open kernel modules, a newer kernel or a newer rdma-core."},
      {"gpudirect-rdma", group, error,
       "NICs cannot reach GPU memory: neither dma-buf nor nvidia-peermem is available.",
       "The results of `dma-buf` and `nvidia-peermem`.",
       "`modprobe nvidia-peermem`, or what `dma-buf` says."},
      {"gdrcopy", group, warning,
       "The module, the device file or the library of GDRCopy is missing, so staged atomics and "
       "small copies take slower paths.",
       "The module gdrdrv, `/dev/gdrdrv` and libgdrapi.so.2.",
       "`modprobe gdrdrv`, or install gdrdrv-dkms and libgdrapi."},
      {"gpus-visible", group, severities,
       "PCI shows a GPU that the driver does not. It is a warning if another driver holds the GPU, "
       "or if this is a container, which may hide it.",
       "`/proc/driver/nvidia/gpus`, compared with PCI.",
       "`dmesg | grep -i -E 'nvrm|xid'`; in a container, `docker run --gpus all`."},
      {"gpu-health", group, severities,
       "A GPU reports uncorrected memory errors, a row remapping that is pending or failed (which "
       "is an error), a page retirement that is pending, or clocks that heat or power hold back; "
       "or NVML reports nothing.",
       "NVML.",
       "Reset the GPU or reboot for pending remappings; replace a GPU whose remapping failed."},
      {"gpu-clocks", group, warning,
       "Application clocks of a GPU are below its default, or differ among GPUs of one model, or "
       "a setting such as locked clocks holds the clocks of running kernels down: the ranks on the "
       "other GPUs wait for it.",
       "NVML. Locked clocks cannot be asked for; they show only on a GPU that runs kernels while "
       "`doctor` looks.",
       "`nvidia-smi --reset-applications-clocks`, `nvidia-smi --reset-gpu-clocks`."},
      {"gpu-kernel", group, error,
       "A GPU does not run a kernel of this binary, or does not keep what the kernel wrote.",
       "A kernel on each GPU, in a child process.",
       "`dmesg` for Xid errors; use a build for this GPU's architecture."},
      {"gpu-abilities", group, severities,
       "The GPU cannot export memory to other processes, so PEs cannot share it, which is an "
       "error; or it can export memory only by CUDA IPC, or cannot launch cooperatively, which is "
       "a warning.",
       "Device attributes, and an export in a child process.",
       "Install driver branch 525 or newer; give a container the GPU's device nodes."},
      {"gpu-copies", group, severities,
       "Copies from or to the host return wrong data, which is an error, or are slower than half "
       "of the rate of the PCIe link.",
       "Timed copies with a pattern.",
       "`shmemctl doctor --only pcie`; run on the GPU's NUMA node; reset a GPU that returns wrong "
       "bytes."},
      {"gpu-p2p", group, severities,
       "Pairs of GPUs cannot access each other's memory, or their link has no native atomics. It "
       "is an error if access fails between GPUs that NVLinks join.",
       "`cuDeviceCanAccessPeer`, `cuDeviceGetP2PAttribute`.",
       "`nvidia-smi topo -p2p r`, then pcie-acs and iommu."},
      {"nvlink-state", group, severities, "NVLinks of a GPU are down (error: all of one GPU).",
       "`nvmlDeviceGetNvLinkState`, or the count compared with other GPUs of the model.",
       "`nvidia-smi nvlink --status`, `nvidia-smi nvlink --errorcounters`."},
      {"nvidia-persistence", group, warning,
       "Without persistence mode a job that finds the GPU unused initialises it anew, which takes "
       "seconds.",
       "NVML, or the daemon's socket.", "`systemctl enable --now nvidia-persistenced`."},
      {"pcie-link-width", group, severities,
       "A PCIe link to a GPU or NIC has fewer lanes than both ends support. It is a warning if the "
       "device supports more and its slot does not.",
       "`current_link_width` and `max_link_width` at both ends.",
       "Reseat card or riser, look at the slot's BIOS setting."},
      {"pcie-link-speed", group, severities,
       "A PCIe link to a GPU or NIC is slower than both ends support. It is a warning if the "
       "device supports more and its slot does not, and for a GPU, which lowers the speed while it "
       "is idle: look again under load.",
       "`current_link_speed` and `max_link_speed` at both ends.",
       "Reseat card or riser, look at the slot's BIOS setting."},
      {"pcie-acs", group, warning,
       "ACS redirects traffic of GPUs with NICs or other GPUs up to the CPU, so that GPUDirect "
       "RDMA and peer-to-peer copies are slow or fail. `topo`, too, says so of a node whose "
       "bridges it can read.",
       "ACS control of every bridge between them (needs root).",
       "Clear the redirect bits with `setpci`, as the fix does until the next boot. To keep it: "
       "switch ACS off in the BIOS, or boot with `pci=disable_acs_redir=` and the bridges, which "
       "the fix gives. Keep ACS where virtual machines need it."},
      {"iommu", group, warning,
       "The IOMMU translates the addresses of GPUs and NICs, so peer-to-peer traffic goes through "
       "the CPU.",
       "The type of the devices' IOMMU groups.", "Boot with `iommu=pt`."},
      {"relaxed-ordering", group, warning,
       "PCIe relaxed ordering is off on a NIC, which limits its bandwidth on some hosts.",
       "The Device Control register (needs root).",
       "Set it with `setpci`; the fix gives the command."},
      {"pcie-max-read-request", group, warning,
       "A NIC reads memory in PCIe requests of less than 512 bytes.",
       "The Device Control register (needs root).",
       "Set it with `setpci`; the fix gives the command."},
      {"rdma-devices", group, severities,
       "A NIC has no RDMA device though its driver offers one. It is an error if no NIC has one.",
       "`/sys/class/infiniband`, compared with the NICs on PCI.", "`modprobe mlx5_ib`."},
      {"rdma-port-state", group, severities, "A port is not active. It is an error if no port is.",
       "`/sys/class/infiniband/*/ports/*/state`.",
       "`ip link set up`, start a subnet manager, or look at cable and switch port."},
      {"rdma-link-layer", group, severities,
       "Active ports are of different link layers, and a PE would use one outside the compute "
       "fabric: it cannot talk to the others.",
       "`/sys/class/infiniband/*/ports/*/link_layer`, and the mapping as `topo` finds it "
       "(`nic-off-fabric`).",
       "The settings that `topo` prints for `nic-off-fabric`."},
      {"rdma-rate", group, severities,
       "A port runs at a lower rate than its peers of the same model and purpose, or a PE would "
       "use a port of a slower network.",
       "`/sys/class/infiniband/*/ports/*/rate`, and the fabric as `topo` finds it.",
       "Compare cable, transceiver and switch port with those of a peer; or the settings that "
       "`topo` prints for `nic-off-fabric`."},
      {"rdma-mtu", group, warning,
       "The active MTU of a port of the compute fabric is less than 4096 bytes.",
       "The netdev's MTU (RoCE), or the port's active MTU.",
       "`ip link set dev IF mtu 9000` (the switch must allow it); on InfiniBand, the partition's "
       "MTU in the subnet manager."},
      {"rdma-gid-table", group, severities,
       "A RoCE port of the compute fabric has no RoCE v2 address on IPv4 (warning: it has IPv6).",
       "`/sys/class/infiniband/*/ports/*/gids` and `gid_attrs/types`.",
       "Add an IP address to the interface, or tell the libraries which family and version to "
       "use."},
      {"rdma-gid-index", group, severities,
       "A variable fixes a GID index that is no routable RoCE v2 address on some port, which is an "
       "error; or that address has different GID indices on different devices.",
       "GID tables of all ports and `*_IB_GID_INDEX`.",
       "Leave the choice to the library: `NVSHMEM_IB_GID_INDEX=-1`, or export the common index."},
      {"rdma-uverbs", group, severities,
       "This user cannot open the RDMA devices. It is a warning if only the connection manager, "
       "`rdma_cm`, is missing.",
       "`/dev/infiniband/uverbs*`, `/dev/infiniband/rdma_cm`.",
       "`modprobe ib_uverbs`; in a container, `docker run --device=/dev/infiniband "
       "--cap-add=IPC_LOCK`."},
      {"rdma-address-handles", group, severities,
       "The driver cannot create an address handle to an address of a port: IBGDA, DEVX and UD "
       "queue pairs that use this GID cannot connect. It is a warning if it can create one to "
       "another address of the port.",
       "`ibv_create_ah` from each active port of the compute fabric to its own addresses: GIDs "
       "that reach other hosts and those that `*_IB_GID_INDEX` names, or the LID.",
       "Give the process the network namespace of the interface (`docker run --network=host`), "
       "bring the interface up, or choose another GID."},
      {"rdma-firmware", group, warning,
       "HCAs of the same board in the compute fabric have different firmware.",
       "`/sys/class/infiniband/*/fw_ver` and `board_id`.",
       "Install the same release on all of them (`mlxfwmanager`), and reboot."},
      {"rdma-pkeys", group, warning,
       "InfiniBand ports of the compute fabric are in different partitions, or only limited "
       "members of one: limited members cannot reach each other.",
       "`/sys/class/infiniband/*/ports/*/pkeys`; bit 15 is full membership.",
       "Correct the partitions of the subnet manager (`partitions.conf`)."},
      {"roce-priorities", group, warning,
       "RoCE ports of the compute fabric differ in priority flow control, bandwidth of traffic "
       "classes, ECN (DCQCN) or traffic class: the same traffic is lossless on one and dropped on "
       "the other.",
       "The kernel's DCB interface (`RTM_GETDCB`), `/sys/class/net/*/ecn`, "
       "`/sys/class/infiniband/*/tc`, `/sys/kernel/config/rdma_cm`.",
       "Give all of them the settings of the fabric: `mlnx_qos`, `dcb`, and the files in `ecn`."},
      {"link-flaps", group, warning,
       "A port has lost its link much more often than the other ports of this node: a cable, a "
       "transceiver or a switch port.",
       "`counters/link_downed` of RDMA ports, `carrier_down_count` of their netdevs, since the "
       "driver was loaded.",
       "Clean or change the cable or transceiver, then look at the switch port."},
      {"nccl-gin", group, error,
       "NCCL's GPU-initiated networking is asked for, and something that it needs is missing: "
       "NCCL reports `GIN_TYPE_NONE` or uses a CPU thread.",
       "`NCCL_GIN_TYPE`, `NCCL_GIN_ENABLE`; releases of NCCL and rdma-core, symbol versions of "
       "libmlx5, how NICs reach GPU memory, fused ports.",
       "Install what the message names first."},
      {"efa-gda", group, error,
       "GPU-initiated EFA (`NCCL_GIN_TYPE=5`) is asked for, and something that it needs is "
       "missing.",
       "`/sys/module/efa/version`, `/proc/driver/nvidia/params`, GDRCopy's module and library, "
       "symbols of libefa and of the NCCL plugin, libfabric's release.",
       "Install EFA installer 1.50 or newer, and set `PeerMappingOverride=1`."},
      {"libfabric-provider", group, severities,
       "libfabric lacks the provider that an option names or that EFA or Slingshot needs, which is "
       "an error; or it has none for the node's other RDMA devices, nor tcp where there are none.",
       "`fi_getinfo`.", "Install the provider's package; for EFA, AWS's installer."},
      {"libfabric-environment", group, severities,
       "An environment variable differs from what the node's libfabric provider needs. It is a "
       "warning if the provider also works with that value.",
       "The variables in the environment that the provider reads.",
       "Export the values that the fix prints."},
      {"libfabric-gdrcopy", group, error,
       "The libfabric provider needs GDRCopy for atomics on GPU memory, and the module, the device "
       "file or the library of GDRCopy is missing.",
       "As `gdrcopy`.", "As `gdrcopy`."},
      {"transport-ibrc", group, error,
       "The transport ibrc cannot move bytes through a port and back.",
       "A put, get, atomic and signal to itself in a child process.",
       "The reason names the call that failed. `shmemctl bringup --transport ibrc` tests the "
       "transport between PEs."},
      {"transport-ibdevx", group, error,
       "The transport ibdevx cannot move bytes through an mlx5 port.",
       "As `transport-ibrc`, with QPs created through DEVX.",
       "The reason names the call that failed. `shmemctl bringup --transport ibdevx` tests the "
       "transport between PEs."},
      {"transport-ibgda", group, error,
       "mlx5 queues as GPUs use them do not move bytes when the CPU posts to them.",
       "As `transport-ibrc`.",
       "The reason names the call that failed. `shmemctl bringup --transport ibgda` tests the "
       "transport between PEs."},
      {"transport-libfabric", group, error,
       "The transport libfabric cannot move bytes to this process itself.", "As `transport-ibrc`.",
       "The reason names the call that failed. `shmemctl bringup --transport libfabric` tests the "
       "transport between PEs."},
      {"transport-ucx", group, error, "The transport ucx cannot move bytes to this process itself.",
       "As `transport-ibrc`.",
       "The reason names the call that failed. `shmemctl bringup --transport ucx` tests the "
       "transport between PEs."},
      {"memlock", group, error,
       "The limit of locked memory is not `unlimited`: registering more than it for RDMA fails.",
       "`/proc/self/limits`; a limit that CAP_IPC_LOCK lifts is none.",
       "`ulimit -l unlimited` in `/etc/security/limits.d`; Slurm: `LimitMEMLOCK=infinity`; in a "
       "container, `docker run --ulimit memlock=-1`."},
      {"dev-shm", group, severities,
       "/dev/shm is not mounted, which is an error, or is below 1 GiB, or has no 256 MiB free.",
       "`/proc/mounts`, `statvfs`.",
       "`mount -o remount,size=50% /dev/shm`; in a container, `docker run --shm-size=16g`."},
      {"hugepages", group, warning,
       "There are no huge pages, so registering large buffers takes longer.", "`/sys/kernel/mm`.",
       "`echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`."},
      {"numa-balancing", group, warning,
       "Automatic NUMA balancing unmaps pages to watch them, which causes latency spikes.",
       "`/proc/sys/kernel/numa_balancing`.", "`sysctl -w kernel.numa_balancing=0`."},
      {"kernel-version", group, severities,
       "Linux is older than 4.18 (error), or older than 5.12, which is the first with dma-buf for "
       "RDMA (warning).",
       "`/proc/sys/kernel/osrelease`.", "Install a newer kernel."},
      {"cpu-governor", group, warning,
       "The frequency governor of some CPUs is not `performance`, so their clocks change with the "
       "load.",
       "`scaling_governor` of every CPU.",
       "`echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`."},
      {"clocksource", group, warning, "The system clock is slow to read, so timings are coarse.",
       "`current_clocksource`.", "Select tsc; `dmesg | grep tsc` says why the kernel rejected it."},
      {"open-files", group, warning, "The limit of open files is below 16384.",
       "`/proc/self/limits`.", "`ulimit -n 65536`."},
      {"pid-namespace", group, warning,
       "This process is in a PID namespace of its own, so PEs in other containers of the node "
       "cannot pass memory handles to it.",
       "`/proc/self/ns/pid`.", "`docker run --pid=host --ipc=host`; Kubernetes: hostPID, hostIPC."},
      {"ptrace-scope", group, warning,
       "Processes may not attach to their siblings: copies between processes (CMA) and memory "
       "handles by pidfd fail.",
       "`/proc/sys/kernel/yama/ptrace_scope`.",
       "`sysctl -w kernel.yama.ptrace_scope=0`, or CAP_SYS_PTRACE."},
      {"pidfd-getfd", group, warning,
       "A process may not take a descriptor of its sibling: PyTorch's symmetric memory, FlashInfer "
       "and UCX share GPU memory that way, and fail with `EPERM`. It is not needed for jobs of "
       "shmemctl.",
       "`pidfd_getfd` is tried between two children; Yama's `ptrace_scope`, the seccomp filter and "
       "the capabilities say what refuses it.",
       "Set `kernel.yama.ptrace_scope=0`, or give the container `--cap-add=SYS_PTRACE` and a "
       "seccomp profile that allows it."},
      {"descriptor-passing", group, error,
       "Processes cannot send each other descriptors: PEs of a node cannot share memory by them.",
       "A message with `SCM_RIGHTS` is sent from one child to another.",
       "Change the security profile of the container, or of the host's security module."},
      {"container-capabilities", group, warning,
       "The container lacks IPC_LOCK, SYS_PTRACE or SYS_NICE.", "`/proc/self/status`, CapEff.",
       "`docker run --cap-add=IPC_LOCK --cap-add=SYS_PTRACE --cap-add=SYS_NICE`."},
      {"kernel-log-xid", group, severities,
       "The NVIDIA driver wrote a Xid: an error of a GPU, with what NVIDIA's catalogue says is to "
       "be done first: restart the application, reset the GPU, reboot, or replace.",
       "The kernel log, or the file of `--kernel-log`, and the entries of `kernel_messages.conf`, "
       "each with its source.",
       "Do what the message says. Codes that are no problem (45, 63, 92, 121) are not reported."},
      {"kernel-log-sxid", group, severities,
       "The driver of the NVSwitches wrote an SXid. After a fatal one, NVLink traffic has stopped.",
       "As `kernel-log-xid`.",
       "End all GPU jobs and reset all GPUs and NVSwitches: `nvidia-smi --gpu-reset`; or reboot."},
      {"kernel-log-nvrm", group, error,
       "The NVIDIA driver did not accept or initialise a GPU, or a library of another version "
       "called it.",
       "As `kernel-log-xid`.", "Do what the message says; reload the driver after an update."},
      {"kernel-log-nic", group, severities,
       "A NIC, its firmware or its transceiver failed: mlx5, EFA, bnxt, or a transmit queue that "
       "does not progress.",
       "As `kernel-log-xid`.",
       "`devlink health show`; update the firmware; power the node off and on."},
      {"kernel-log-link", group, warning,
       "The link of a NIC went down three times or more since the log began.",
       "As `kernel-log-xid`; the limit is ours.",
       "Replace cable or transceiver; look at the switch's port."},
      {"kernel-log-pcie", group, severities,
       "PCIe errors: one that was not corrected, ten or more that were, or a link that was cut "
       "off.",
       "As `kernel-log-xid`: AER, DPC, the firmware's error records.",
       "Reseat the card or its riser; `lspci -vvv`; replace it if they return."},
      {"kernel-log-iommu", group, error, "The IOMMU refused an access of a device to memory.",
       "As `kernel-log-xid`: DMAR, AMD-Vi, SMMU.", "Boot with `iommu=pt`."},
      {"kernel-log-process", group, warning,
       "The kernel killed a process for lack of memory, or one waits in the kernel for minutes.",
       "As `kernel-log-xid`: OOM killer, hung tasks, soft lockups.",
       "Raise the memory limit; read the stack that follows the message."},
      {"software-loader", group, warning,
       "A communication library is installed in two releases, and the loader finds the older one "
       "first: programs without an RPATH run with it. Two releases of NVSHMEM are worth a warning "
       "in any order.",
       "`LD_LIBRARY_PATH`, then `/etc/ld.so.cache` or the loader's folders; versions are read from "
       "the files.",
       "Put the newer folder first in `LD_LIBRARY_PATH`, or remove the older package."},
      {"software-python", group, warning,
       "Packages of the Python environment do not fit: one needs another version than is "
       "installed, two have overwritten the same file, a library file is of another release than "
       "its package, or a wheel is for another CUDA than PyTorch.",
       "`METADATA` and `RECORD` of the packages, versions in the library files, "
       "`torch/version.py`.",
       "Install the version that the message names; of two wheels of one library keep one."},
      {"software-versions", group, severities,
       "Libraries that one program would load together do not fit: NVSHMEM's device library in an "
       "extension and its host library, IBGDA's queue pairs, symbol versions of rdma-core.",
       "Versions and symbol tables of the files in the Python environment and the first ones in "
       "the loader's search order, as in `nvshmem-version-split`, `nvshmem-qp-layout` and "
       "`symbol-missing`.",
       "Rebuild the extension, or install the version that the message names."},
      {"software-cuda", group, warning,
       "`CUDA_HOME`, or else `CUDA_PATH`, names no CUDA toolkit, one of another major release than "
       "PyTorch's, or one whose programs need a newer driver.",
       "`version.json`, `version.txt` or `include/cuda.h` in it, `torch/version.py`, "
       "`/proc/driver/nvidia/version`.",
       "Set `CUDA_HOME` to the toolkit that fits."},
      {"software-modules", group, warning,
       "Two loaded modules bring the same library, an MPI or CUDA, or a module is built for "
       "another CUDA than the one that is loaded.",
       "`LOADEDMODULES`.", "Unload one of them, or load the one that fits (`module swap`)."},
      {"libcuda", group, warning,
       "The CUDA driver library is not installed. It enables GPU memory and kernels.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libnvidia-ml", group, warning,
       "NVML is not installed. It enables NVLink state and GPU health.", "`dlopen` of its names.",
       "Install the package that the printed fix names."},
      {"libibverbs", group, warning,
       "libibverbs is not installed. The transports ibrc, ibdevx and ibgda need it.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libmlx5", group, warning,
       "libmlx5 is not installed. The transports ibdevx and ibgda need it for mlx5 HCAs.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"librdmacm", group, warning,
       "librdmacm is not installed. libfabric's verbs provider needs it.", "`dlopen` of its names.",
       "Install the package that the printed fix names."},
      {"libfabric", group, warning, "libfabric is not installed. The transport libfabric needs it.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libucp", group, warning, "UCX is not installed. The transport ucx needs it.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libmpi", group, "info",
       "MPI's library is not installed; the bootstrap mpi needs it. No finding results.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libpmix", group, "info",
       "PMIx's library is not installed; the bootstrap pmix needs it. No finding results.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"liboshmem", group, "info",
       "OpenSHMEM's library is not installed; the bootstrap openshmem needs it. No finding.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libgdrapi", group, warning,
       "GDRCopy's library is not installed. It enables atomics on GPU memory by the CPU.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
  };
}

} // namespace shmemctl
