// Findings about a node as it is: its topology and settings, its counters, processes and logs.
#include "reports/finding_reference.h"

namespace shmemctl {

std::vector<FindingReference> topology_findings() {
  constexpr const char* group = "Topology and mapping";
  return {
      {"gpu-without-nic", group, "warning, info",
       "A GPU has no usable NIC on its own NUMA node, so all of its traffic to other nodes crosses "
       "the CPU sockets; or the node has no NIC at all. The info form: this GPU has no NIC below "
       "its PCIe switch while other GPUs have one, or the output of `nvidia-smi topo -m` that was "
       "read lists no NIC.",
       "The PCI distance between every GPU and every NIC of the compute fabric, from sysfs or the "
       "recorded topology.",
       "Move a NIC to a slot of that socket, or run PEs on the other GPUs only (`--gpus`). If "
       "there is no NIC, install one or load its driver."},
      {"gpu-without-nvlink", group, "error, warning",
       "A GPU has no active NVLink (or xGMI) link, although the other GPUs of its model are all "
       "joined by such links. Its traffic to them goes over PCIe. It is a warning where the source "
       "does not name models.",
       "NVML's link states, or the links in the recorded topology, compared between GPUs of one "
       "model.",
       "Look at the link state: `nvidia-smi nvlink --status`, `nvidia-smi nvlink --errorcounters`, "
       "or `rocm-smi --showtopo`."},
      {"hca-unknown", group, "error, warning",
       "`NVSHMEM_HCA_LIST` or `NVSHMEM_HCA_PE_MAPPING` names a device that NVSHMEM does not have "
       "here, so the entry selects nothing. It is a warning in a list of devices to exclude.",
       "Each entry is compared with the devices that NVSHMEM would enumerate here.",
       "Correct the name; the message gives the nearest spelling. `shmemctl topo` lists the "
       "names."},
      {"mapping-collapse", group, "error",
       "Several PEs share one NIC because each PE is an NVSHMEM world of its own (DeepEP's "
       "high-throughput mode) and none sees what the others chose.",
       "NVSHMEM's own choice is simulated for the selected release and world, then compared with "
       "the best assignment.",
       "Set what the finding prints: one variable for all ranks where NVSHMEM has one for this "
       "(`NVSHMEM_NETDEVS_POLICY`, since 3.7), else a list that each rank picks by its local rank; "
       "that line must run in each rank's own process, and fails anywhere else."},
      {"mapping-count", group, "error, warning",
       "PEs are pinned (`NVSHMEM_ENABLE_NIC_PE_MAPPING`), and the counts in "
       "`NVSHMEM_HCA_PE_MAPPING` do not add up to the number of PEs on the node: PEs begin again "
       "at the first device, or the end of the list is not used. It is an error if any list has "
       "more than 32 rows, pinned or not, because NVSHMEM writes past the end of its arrays.",
       "The list is expanded as NVSHMEM expands it and compared with the PEs per node.",
       "Let the counts add up to the PEs of a node, and name at most 32 ports."},
      {"mapping-duplicate", group, "warning, info",
       "A device list names a port twice, or one PE is given the same port more than once. In "
       "`NVSHMEM_HCA_PE_MAPPING` the count of the last entry wins, and counts are not added up. "
       "The info form: in `NVSHMEM_HCA_LIST` the second entry has no effect.",
       "The list is read by NVSHMEM's rules.", "Name each port once, with the total count."},
      {"mapping-empty", group, "error, info",
       "No PE gets a NIC although the node has NICs that could carry traffic: the lists or the "
       "transport exclude all of them. The info form: no transport is set, and NVSHMEM's default, "
       "ibrc, has no device on this node (EFA), so the mapping that is shown is that of libfabric.",
       "NVSHMEM's choice is simulated with the settings that are in force.",
       "Unset the list, or set the one that the finding prints."},
      {"mapping-ignored", group, "warning",
       "A setting has no effect: `NVSHMEM_HCA_LIST` and `NVSHMEM_HCA_PE_MAPPING` are both set and "
       "NVSHMEM reads only the first, or this release never reads the second.",
       "The rules of the selected NVSHMEM release.", "Keep one of the two lists."},
      {"mapping-malformed", group, "error, warning, info",
       "An entry of a device list cannot mean what it seems to: a count that is not a number, an "
       "empty name, a stray character. It is an error if the entry therefore selects no device.",
       "The list is parsed as NVSHMEM parses it; the message gives the column.",
       "Write entries as `name:port` (HCA_LIST) or `name:port:count` (HCA_PE_MAPPING), separated "
       "by commas."},
      {"mapping-not-pinned", group, "warning",
       "`NVSHMEM_HCA_PE_MAPPING` is set but `NVSHMEM_ENABLE_NIC_PE_MAPPING` is off, so the list "
       "only filters and replicates devices; PEs still choose among them by distance.",
       "The rules of the selected NVSHMEM release.",
       "Set `NVSHMEM_ENABLE_NIC_PE_MAPPING=1`, or remove the list."},
      {"mapping-order", group, "warning",
       "The list names devices in an order that has no effect: NVSHMEM takes them in enumeration "
       "order.",
       "The order that was written is compared with the order of use.",
       "Write the devices in the order in which `topo` lists them, or pin them for each rank with "
       "the line that the finding prints."},
      {"mapping-unknown", group, "warning",
       "Which NIC a PE uses is unknown, because the source lacks a fact that NVSHMEM's rules "
       "need (a distance or a name).",
       "The mapping policy reports what it could not decide.",
       "Run `shmemctl topo` with the same settings on the host itself."},
      {"nic-far", group, "warning, info",
       "A PE uses a NIC although it could have a nearer one. It is info if the path does not leave "
       "the PCIe switches (in `inspect`, if the ports carried nearly nothing in the window).",
       "The distance of the chosen NIC is compared with that of the NIC which the best assignment "
       "gives to the PE; in `explain`, which reads the choice in a log, with all NICs of the "
       "fabric. `inspect` compares the NICs of a process's connected queue pairs (RDMA netlink) "
       "with those near its GPU (NVML), and names a process only if fewer processes use a nearer "
       "NIC than its own, or if an exchange with one of them would shorten both paths in sum.",
       "Set the mapping that the finding prints."},
      {"nic-hotspot", group, "error, warning, info",
       "A NIC carries the traffic of more PEs than the best assignment would give to any NIC, "
       "while others are idle or less loaded. It is an error if others are idle and it has at "
       "least twice as many PEs as necessary. The info form: no assignment does better, because "
       "there are fewer ports than PEs.",
       "PEs per port in the simulated mapping, compared with an optimal assignment (min-cost flow "
       "over the distance matrix).",
       "Set the mapping that the finding prints. For the info form, run one PE per port or add "
       "NICs."},
      {"nic-idle", group, "warning, info",
       "A NIC of the compute fabric carries nothing although there are enough PEs to use it. The "
       "info form: a PE drives one port unless IBGDA may use several.",
       "Ports without a PE in the simulated mapping.",
       "Set the mapping that the finding prints; for the info form, "
       "`NVSHMEM_IBGDA_ENABLE_MULTI_PORT=1` where the transport is IBGDA."},
      {"nic-names-unknown", group, "warning, info",
       "The source does not name its NICs (for example a text of `nvidia-smi topo -m` without its "
       "legend), so device lists cannot be checked and no export line is printed.",
       "The reader found labels such as NIC0 only.",
       "Record the machine with its names: `shmemctl topo --json FILE` on the host, or keep the "
       "legend of `nvidia-smi topo -m`."},
      {"nic-not-rdma", group, "error, warning, info",
       "A list names an interface that is not an RDMA device (an error, unless it excludes), or "
       "the node has only interfaces that carry TCP (info if it has no GPU).",
       "`/sys/class/infiniband` compared with `/sys/class/net`.",
       "In a list, write the names of RDMA devices, which `shmemctl topo` shows. Otherwise install "
       "an RDMA NIC or load its driver (`modprobe mlx5_ib`). For tests, Soft-RoCE is enough: "
       "`modprobe rdma_rxe && rdma link add rxe0 type rxe netdev IF`."},
      {"nic-off-fabric", group, "error, warning",
       "A PE uses a NIC that is not part of the compute fabric: another link layer, another rate, "
       "or EFA beside InfiniBand. It cannot reach the NICs that the other PEs use, or is much "
       "slower. It is a warning if its link layer and rate are unknown. `sim` reports the same.",
       "The fabric is the kind of ports (link layer, rate, EFA or not) with most NICs near GPUs.",
       "Set the mapping that the finding prints."},
      {"nic-without-gpu", group, "info",
       "No GPU is near this NIC. It is probably meant for storage or management, not for GPU "
       "traffic.",
       "The PCI distance of the NIC to every GPU.",
       "Nothing, if the best mapping gives it no PE; otherwise exclude it with "
       "`NVSHMEM_HCA_LIST=^NAME`."},
      {"numa-unknown", group, "warning, info",
       "The NUMA node of a device is unknown (`numa_node` reads -1). It is a warning where the "
       "distance to a NIC depends on it.",
       "`/sys/bus/pci/devices/*/numa_node`.",
       "Ask the firmware or the hypervisor to expose NUMA affinity, or write it: `echo N > "
       "/sys/bus/pci/devices/ADDRESS/numa_node`."},
      {"nvshmem-version-unknown", group, "warning",
       "`--nvshmem-version` is newer than any release whose rules are known, so the newest known "
       "rules are used.",
       "The table of NVSHMEM releases in this program.",
       "Give a known release, such as the one that the fix names."},
      {"pcie-degraded", group, "warning, info",
       "A PCIe link to a GPU or NIC runs with fewer lanes or at a lower speed than the device can. "
       "It is also a warning if slots limit fewer than half of the devices of a model. The info "
       "forms: an idle GPU lowers its link speed, or slots limit half of the devices of the model "
       "or more.",
       "`current_link_width`, `current_link_speed` and their maxima at both ends of the link.",
       "Reseat the device or its riser and check the slot's settings in the firmware."},
      {"port-down", group, "error, warning, info",
       "A port is not active, so nothing uses it. It is an error if no RDMA port of the node is "
       "active, a warning if no port of this NIC is, and info if another port of the NIC is "
       "active.",
       "`/sys/class/infiniband/*/ports/*/state`.",
       "Look at cable, switch port and subnet manager: `ibstat`, `ip link`, `ethtool`."},
      {"port-slow", group, "warning",
       "A port runs at a lower rate than its peers of the same model and purpose (fabric, storage, "
       "management).",
       "`/sys/class/infiniband/*/ports/*/rate`, compared within a model.",
       "Compare cable, transceiver and switch port with those of a peer."},
      {"port-unknown", group, "error, warning",
       "A list names a port that the device does not have; if it excludes devices, a warning.",
       "Each entry is compared with the ports of the device.",
       "Use a port that `shmemctl topo` lists, usually `:1`."},
      {"remote-transport-unknown", group, "error, warning",
       "`NVSHMEM_REMOTE_TRANSPORT` has a value that NVSHMEM does not know. NVSHMEM starts no "
       "transport to other nodes and does not say so; with IBGDA enabled, IBGDA runs alone without "
       "a transport for its proxy.",
       "`topo`, `doctor`, `env` and every job compare the value with the names that NVSHMEM reads. "
       "`doctor` also checks `SHMEMCTL_REMOTE_TRANSPORT`, with which a job does not start if its "
       "value is unknown.",
       "Use ibrc, ucx, ibdevx, libfabric or none. IBGDA is enabled by "
       "`NVSHMEM_IB_ENABLE_IBGDA=1`."},
      {"topology-incomplete", group, "warning, info",
       "Facts of the topology could not be read, were left out, or were taken from another place "
       "in the source; or the file contains no device that is recognised. What is shown then is "
       "not the whole node.",
       "The code that reads a topology notes what it skips, with line and column.",
       "Run `shmemctl topo` on the host itself, or record the machine again, with `shmemctl "
       "gather`."},
  };
}

std::vector<FindingReference> option_findings() {
  constexpr const char* group = "Options and environment";
  return {
      {"env-invalid", group, "error", "An option has a value that is not legal.",
       "Every option is checked against the option table.",
       "Unset it, or give it a legal value; the message names the legal ones."},
      {"env-no-such-nvshmem-variable", group, "warning",
       "A variable with the prefix `NVSHMEM_` is set that some guides mention, but that no release "
       "of NVSHMEM reads: `NVSHMEM_DISABLE_IB`, `NVSHMEM_NUM_PROXY_THREADS` or "
       "`NVSHMEM_PROXY_CHANNEL_BUF_SIZE`.",
       "The environment is compared with a list of such names; other unknown names are not "
       "reported.",
       "Unset it."},
      {"env-shadowed", group, "info",
       "An `NVSHMEM_` variable is set, but the `SHMEMCTL_` variable or flag of the same option "
       "wins here.",
       "The order of precedence: command line, `SHMEMCTL_NAME`, `NVSHMEM_NAME`, configuration "
       "file.",
       "Unset one of the two."},
      {"env-surprising-boolean", group, "warning",
       "A boolean such as `off` means true: NVSHMEM takes only values that begin with 0, n or f as "
       "false.",
       "NVSHMEM's rule for booleans.", "`export NAME=0`."},
      {"env-unknown", group, "warning",
       "A variable with the prefix `SHMEMCTL_` is set but is not an option, so it has no effect.",
       "The environment is compared with the option table.",
       "Correct the name; the fix gives the nearest spelling."},
  };
}

std::vector<FindingReference> nic_counter_findings() {
  constexpr const char* group = "NIC counters";
  return {
      {"command-failed", group, "error", "The command that `hotspots --during` watched failed.",
       "The exit code or signal of the command.", "Run it without `hotspots` and read its output."},
      {"counters-unavailable", group, "warning, info",
       "Counters of a port are missing, cannot be read, were reset, are stuck or contradict each "
       "other, or a host of a job has no RDMA port. It is a warning if the load of an RDMA port is "
       "therefore not known in full.",
       "Each counter is checked against its width, the link rate and the other counters.",
       "Look at the files under `/sys/class/infiniband/DEVICE`; update a driver or firmware that "
       "does not count, and measure again if the counters were reset meanwhile."},
      {"link-flapping", group, "error, warning",
       "A link went down, had to recover from errors, or has many: link_downed, "
       "link_error_recovery, symbol_error, carrier_changes and others above their thresholds.",
       "Rules in `nic_thresholds.conf`, each with its severity and source.",
       "Reseat or replace cable and transceiver, look at the switch port, then at the kernel log."},
      {"nic-congested", group, "error, warning",
       "Counters show congestion: ECN marks, CNPs, pause frames, PCIe back-pressure above their "
       "thresholds.",
       "Rules in `nic_thresholds.conf`.",
       "Look at ECN and PFC of the switches, at how many senders share a receiver (`shmemctl "
       "moe`), and at the host's PCIe link (`shmemctl topo`)."},
      {"nic-hotspot-measured", group, "warning",
       "A port carried much more than its siblings, by its own counters.",
       "The rate of each port, in each direction, is compared with those of its node or rail: it "
       "exceeds their median by more than 3.5 times 1.4826 MAD and a tenth of the link's rate (if "
       "that is unknown, the median itself; while `bench`, `moe` or `fabric` measures, a hundredth "
       "of it, and the median), and it is not negligible.",
       "Compare with `shmemctl topo`: the PEs of that port are named; change the mapping or spread "
       "the load."},
      {"nic-lossy", group, "error, warning",
       "Counters show loss: discards, corrupted packets, retransmissions, packets out of order "
       "above their thresholds.",
       "Rules in `nic_thresholds.conf`.",
       "Look at PFC and buffers of host and switch port, at the host's PCIe link, and at the "
       "port's link errors."},
      {"slow-nic", group, "warning",
       "Long transfers went through a NIC port at less than 0.6 times the median of other ports.",
       "Bytes and time of long transfers, by port; others of its host or, if none, of the job.",
       "Look at its link, cable and switch port, at its PCIe link (`shmemctl topo`), and at the "
       "port at the other end (`shmemctl bringup`). `SHMEMCTL_HCA_LIST=^DEVICE` excludes it."},
  };
}

std::vector<FindingReference> log_findings() {
  constexpr const char* group = "Logs";
  return {
      {"log-ends-early", group, "warning",
       "The log of a rank lacks a line that at least half of the ranks wrote: the rank hangs, "
       "died, or its output was lost. Others often time out because of it.",
       "`explain` knows lines that every rank writes when it comes to some point (`step` in "
       "`log_messages.conf`), and compares the ranks.",
       "Look at what that rank does on its node: `shmemctl inspect`, the kernel log, whether its "
       "process still exists."},
      {"log-known-error", group, "error, warning, info",
       "A log has a message of the catalogue. The finding names the first line, the ranks that "
       "wrote it, and the cause.",
       "Patterns in `log_messages.conf`, each with its source.",
       "Do what the finding says; it differs by message."},
      {"log-nic-unknown", group, "info",
       "A rank chose a NIC that the topology with which the log is compared does not have.",
       "The NIC's name in the log, and the names of `--from` or of this machine.",
       "Pass the topology of the node that the log is of: `--from FILE`."},
      {"log-rank-missing", group, "warning",
       "A rank exists, as the logs of other ranks show, but no line of the logs is from it.",
       "The ranks of the largest communicator whose size a log shows; nothing is said unless more "
       "than half of them have lines.",
       "Pass the logs of all nodes; if these are all, the rank never started."},
      {"log-unknown-error", group, "error, warning, info",
       "A line is an error by its form (`NCCL WARN`, `UCX  ERROR`, the end of a traceback, ...) "
       "and the catalogue does not have it.",
       "Marks of libraries' error lines. Lines that differ in numbers only are one finding.",
       "Look at the lines before it; add what you find out with `--catalogue FILE`."},
      {"nic-hotspot-logged", group, "warning",
       "By their logs, several ranks of a host use one NIC, and none uses some of its other NICs.",
       "The NIC of each rank's connections, and the NICs that the library lists.",
       "Run `shmemctl topo` on that node with the job's settings, and set the mapping that it "
       "prints."},
  };
}

std::vector<FindingReference> process_findings() {
  constexpr const char* group = "Running processes";
  return {
      {"env-contradiction", group, "warning",
       "A process has two variables set, one of which removes the other's effect or a part of it.",
       "`inspect` compares `/proc/PID/environ` with a table of such pairs.",
       "Unset the one that is not meant."},
      {"env-ignored", group, "warning",
       "A variable has no effect: no library that the process has loaded contains its name.",
       "The names are texts in the library's file. Open MPI's parameters and names of "
       "installations (`NCCL_HOME`) are not looked for, and nothing is said if no library of that "
       "prefix is loaded.",
       "Correct the name; the fix gives the nearest one. Or load a release that knows it."},
      {"env-out-of-range", group, "warning",
       "A variable has a value that its library does not accept.",
       "`inspect` compares `/proc/PID/environ` with a table of ranges and words.",
       "Set one of the values that the finding gives."},
      {"gpu-index-confused", group, "warning",
       "A process communicates over the NIC of the wrong GPU: it took the number that its GPU has "
       "under `CUDA_VISIBLE_DEVICES` for a physical number, and uses the NIC next to the GPU of "
       "that number.",
       "NVML's processes and `CUDA_VISIBLE_DEVICES` in `/proc/PID/environ`, against the ports of "
       "its connected queue pairs and the distances of the node; in `explain`, the number and the "
       "PCI address of the GPU in NCCL's log.",
       "Look NICs up by the GPU's PCI address; until then name the NIC of each rank."},
      {"library-twice", group, "error, warning",
       "A process has loaded one library from two files. Each has a state of its own, and which "
       "one a call reaches depends on the order of loading. Two NVSHMEM host libraries are an "
       "error.",
       "`/proc/PID/maps`: different files with the same name, apart from version and hash.",
       "Keep one: uninstall a package, or clean `LD_LIBRARY_PATH` and `LD_PRELOAD`."},
      {"mapping-differs", group, "warning, info",
       "The ports over which a rank communicates are not those that `topo` computes for the "
       "version and the settings of its library. The info form: a log says so, or NCCL may have "
       "made the connections, whose rings may leave the node by the NIC of another GPU.",
       "The ports of connected queue pairs (`inspect`), or those that the log of a rank names "
       "(`explain`), against NVSHMEM's and NCCL's rules on the topology of the node.",
       "Compare with `shmemctl topo` under the same variables; look for a variable that the "
       "process set itself, a topology file, or a port that was down when it started."},
      {"nic-one-of-many", group, "warning",
       "One RDMA port carries nearly all traffic of a node that has several, or several processes "
       "have queue pairs only on one and the same RDMA device.",
       "With `--window`, the byte counters of all ports: 90% or more on one. Without, the devices "
       "on which the processes have connected queue pairs or, where the kernel does not list "
       "these, that they have open.",
       "Let each rank use the NIC next to its GPU: `shmemctl topo` prints the setting."},
      {"nvshmem-qp-layout", group, "error, warning",
       "An extension reads the queue pairs of NVSHMEM's IBGDA in the order that they had before "
       "3.5.19, and a later host library is loaded. Transfers between nodes then time out or "
       "access memory illegally. It is a warning if the release of NVSHMEM that the extension was "
       "built with is unknown.",
       "The version that is a text in the extension, and that of the host library; the extension "
       "names IBGDA's device state.",
       "Rebuild the extension from a revision that knows the new order, or load an NVSHMEM before "
       "3.5.19."},
      {"nvshmem-version-split", group, "error, warning",
       "Parts of NVSHMEM in one process are of different releases: the device library that is "
       "linked into an extension, a plugin, the host library. It is a warning for an extension if "
       "NVSHMEM allows it: same major release, newer host library, no private state.",
       "The versions that are texts in the files of `/proc/PID/maps`.",
       "Rebuild the extension against the host library that is loaded, or load the one that it was "
       "built with."},
      {"rank-awaited", group, "warning, info",
       "A rank of a job holds the others up: it still compiles, is stopped, is blocked in the "
       "kernel or has ended, or a local rank is missing. The info form is a guess: one rank sleeps "
       "while all others run, or runs while all others sleep, or its GPU is idle while those of "
       "the others are busy.",
       "`inspect` reads states, CPU times and descendants of all processes of the job on this node "
       "(under a launcher, on all its nodes), and how busy each keeps its GPU (NVML).",
       "Look at that process; compile before the job starts, or raise the timeout of the others."},
      {"receive-side-narrow", group, "warning",
       "A node sends by several RDMA ports and receives nearly everything by one, which limits "
       "what it can receive.",
       "With `--window`, the byte counters of all ports: 90% or more of what is received on one "
       "port, at most 60% of what is sent, both more than 10 MB/s. `hotspots` finds the same of a "
       "port that is hot in receiving, in place of `nic-hotspot-measured`.",
       "Compare the NICs that the ranks of both nodes have open: `shmemctl inspect --all`."},
      {"symbol-missing", group, "error, info",
       "A library needs symbols of a version that another loaded library lacks. It is info if the "
       "library only looks for the symbols at run time (`dlvsym()`) and works without them, as "
       "NCCL does without GPU-initiated networking.",
       "Tables of symbol versions in both files; for libibverbs, libmlx5 and libefa also the "
       "versions that are texts in NCCL and NVSHMEM.",
       "Install a newer rdma-core, or an older release of the library that needs it."},
      {"tcp-fallback", group, "warning, info",
       "A process is connected to other hosts by TCP only although the node has active RDMA ports. "
       "It is a warning if these connections carried more than 10 MB/s in the window; where the "
       "kernel does not count their bytes, if the interfaces carried more than 10 MB/s and the "
       "RDMA ports less than a tenth of that. Without `--window` the traffic is not known, and it "
       "is info. Connections to ports below 1024 are not counted. In `explain`: all lanes of UCX "
       "that a rank lists are TCP.",
       "RDMA netlink or `/proc/PID/fd`, `/proc/PID/net/tcp`, NETLINK_SOCK_DIAG, "
       "`/sys/class/infiniband`, `/proc/net/dev`; `explain`: the log and a topology.",
       "Mount `/dev/infiniband` into the container; look at `NCCL_NET`, `NCCL_IB_DISABLE`, "
       "`UCX_TLS`, `FI_PROVIDER`."},
  };
}

} // namespace shmemctl
