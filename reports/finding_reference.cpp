// Every finding id: what it means, how it is found, how to fix it. docs/reference/findings.md is
// generated from these rows.
#include "reports/finding_reference.h"

namespace shmemctl {

namespace {

// Grouped, sorted by id within a group.
std::vector<FindingReference> finding_rows() {
  return {
      {"gpu-without-nic", "Topology and mapping", "warning, info",
       "A GPU has no usable NIC on its own NUMA node, so all of its traffic to other nodes crosses "
       "the CPU sockets. The info form says that only this GPU has no NIC below its PCIe switch, "
       "or that the text that was read lists no NIC.",
       "The PCI distance between every GPU and every NIC of the compute fabric, from sysfs or the "
       "recorded topology.",
       "Move a NIC to a slot of that socket, or run PEs on the other GPUs only (`--gpus`)."},
      {"gpu-without-nvlink", "Topology and mapping", "error, warning",
       "A GPU has no active NVLink (or xGMI) link although other GPUs of the same model have some. "
       "Its traffic to them goes over PCIe. It is a warning where the source does not name models.",
       "NVML's link states, or the links in the recorded topology, compared between GPUs of one "
       "model.",
       "Look at the link state: `nvidia-smi nvlink --status`, `nvidia-smi nvlink --errorcounters`, "
       "or `rocm-smi --showtopo`."},
      {"hca-unknown", "Topology and mapping", "error, warning",
       "`NVSHMEM_HCA_LIST` or `NVSHMEM_HCA_PE_MAPPING` names a device that this node does not "
       "have, so the entry selects nothing.",
       "Each entry is compared with the devices that NVSHMEM would enumerate here.",
       "Correct the name; the message gives the nearest spelling. `shmemctl topo` lists the "
       "names."},
      {"mapping-collapse", "Topology and mapping", "error",
       "Several PEs share one NIC because each PE is an NVSHMEM world of its own (DeepEP's "
       "high-throughput mode) and none sees what the others chose.",
       "NVSHMEM's own choice is simulated for the selected release and world, then compared with "
       "the best assignment.",
       "Paste the `export NVSHMEM_HCA_LIST=...` line that the finding prints into the job script."},
      {"mapping-count", "Topology and mapping", "error, warning",
       "The counts in `NVSHMEM_HCA_PE_MAPPING` do not add up to the number of PEs on the node, or "
       "the list has more rows than NVSHMEM's arrays hold (32).",
       "The list is expanded as NVSHMEM expands it and compared with the PEs per node.",
       "Let the counts add up to the PEs of a node, and name at most 32 ports."},
      {"mapping-duplicate", "Topology and mapping", "warning, info",
       "A device list names a port twice, or one PE is given the same port more than once. In a PE "
       "mapping the count of the last entry wins; counts are not added up.",
       "The list is read by NVSHMEM's rules.", "Name each port once, with the total count."},
      {"mapping-empty", "Topology and mapping", "error, info",
       "No PE gets a NIC although the node has NICs that could carry traffic: the lists or the "
       "transport exclude all of them. The info form says that this is so of NVSHMEM's default "
       "transport on a node with EFA, and that no transport is set: libfabric was assumed.",
       "NVSHMEM's choice is simulated with the settings that are in force.",
       "Unset the list, or set the one that the finding prints."},
      {"mapping-ignored", "Topology and mapping", "warning",
       "A setting has no effect: `NVSHMEM_HCA_LIST` and `NVSHMEM_HCA_PE_MAPPING` are both set and "
       "NVSHMEM reads only the first, or this release never reads the second.",
       "The rules of the selected NVSHMEM release.", "Keep one of the two lists."},
      {"mapping-malformed", "Topology and mapping", "error, warning, info",
       "An entry of a device list cannot mean what it seems to: a count that is not a number, an "
       "empty name, a stray character.",
       "The list is parsed as NVSHMEM parses it; the message gives the column.",
       "Write entries as `name:port` (HCA_LIST) or `name:port:count` (HCA_PE_MAPPING), separated "
       "by commas."},
      {"mapping-not-pinned", "Topology and mapping", "warning",
       "`NVSHMEM_HCA_PE_MAPPING` is set but `NVSHMEM_ENABLE_NIC_PE_MAPPING` is off, so the list "
       "only filters and replicates devices; PEs still choose among them by distance.",
       "The rules of the selected NVSHMEM release.",
       "Set `NVSHMEM_ENABLE_NIC_PE_MAPPING=1`, or remove the list."},
      {"mapping-order", "Topology and mapping", "warning",
       "The list names devices in an order that has no effect: NVSHMEM takes them in enumeration "
       "order.",
       "The order that was written is compared with the order of use.",
       "Write the devices in the order in which `topo` lists them, or pin them for each rank with "
       "the line that the finding prints."},
      {"mapping-unknown", "Topology and mapping", "warning",
       "Which NIC a PE uses is unknown, because the source lacks a fact that NVSHMEM's rules "
       "need (a distance or a name).",
       "The mapping policy reports what it could not decide.",
       "Run `shmemctl topo` with the same settings on the host itself."},
      {"nic-far", "Topology and mapping", "warning, info",
       "A PE uses a NIC although a nearer one is free. It is a warning if the path leaves the PCIe "
       "switches (a host bridge or a socket is crossed).",
       "The distance of the chosen NIC is compared with the nearest NIC of the compute fabric that "
       "is not loaded more; in `explain`, which reads the choice in a log, with all of them. "
       "`inspect` compares the NICs of a process's connected queue pairs (RDMA netlink) with those "
       "near its GPU (NVML), and names a process only if a nearer NIC would be used by no more "
       "processes; info: these ports carried nearly nothing in the window.",
       "Set the mapping that the finding prints."},
      {"nic-hotspot", "Topology and mapping", "error, warning, info",
       "A NIC carries the traffic of more PEs than the best assignment would give to any NIC, "
       "while others are idle or less loaded. The info form says that no assignment does better: "
       "there are fewer ports than PEs.",
       "PEs per port in the simulated mapping, compared with an optimal assignment (min-cost flow "
       "over the distance matrix).",
       "Set the mapping that the finding prints. For the info form, run one PE per port or add "
       "NICs."},
      {"nic-idle", "Topology and mapping", "warning, info",
       "A NIC of the compute fabric carries nothing although there are enough PEs to use it. The "
       "info form: a PE drives one port unless IBGDA may use several.",
       "Ports without a PE in the simulated mapping.",
       "Set the mapping that the finding prints; for the info form, "
       "`NVSHMEM_IBGDA_ENABLE_MULTI_PORT=1` where the transport is IBGDA."},
      {"nic-names-unknown", "Topology and mapping", "warning, info",
       "The source does not name its NICs (for example a text of `nvidia-smi topo -m` without its "
       "legend), so device lists cannot be checked and no export line is printed.",
       "The reader found labels such as NIC0 only.",
       "Record the machine with its names: `shmemctl topo --json FILE` on the host, or keep the "
       "legend of `nvidia-smi topo -m`."},
      {"nic-not-rdma", "Topology and mapping", "error, warning, info",
       "A list names an interface that is not an RDMA device, or the node has only interfaces that "
       "carry TCP.",
       "`/sys/class/infiniband` compared with `/sys/class/net`.",
       "Install an RDMA NIC or load its driver (`modprobe mlx5_ib`). For tests, Soft-RoCE is "
       "enough: `modprobe rdma_rxe && rdma link add rxe0 type rxe netdev IF`."},
      {"nic-off-fabric", "Topology and mapping", "error, warning",
       "A PE uses a NIC that is not part of the compute fabric: another link layer, another rate, "
       "or EFA beside InfiniBand. It cannot reach the NICs that the other PEs use, or is much "
       "slower. `sim` reports the same.",
       "The compute fabric is the largest group of ports with the same link layer and rate.",
       "Set the mapping that the finding prints."},
      {"nic-without-gpu", "Topology and mapping", "info",
       "No GPU is near this NIC. It is probably meant for storage or management, not for GPU "
       "traffic.",
       "The PCI distance of the NIC to every GPU.",
       "Nothing, if the best mapping gives it no PE; otherwise exclude it with "
       "`NVSHMEM_HCA_LIST=^NAME`."},
      {"numa-unknown", "Topology and mapping", "warning, info",
       "The NUMA node of a device is unknown (`numa_node` reads -1). It is a warning where the "
       "distance to a NIC depends on it.",
       "`/sys/bus/pci/devices/*/numa_node`.",
       "Ask the firmware or the hypervisor to expose NUMA affinity, or write it: `echo N > "
       "/sys/bus/pci/devices/ADDRESS/numa_node`."},
      {"nvshmem-version-unknown", "Topology and mapping", "warning",
       "`--nvshmem-version` is newer than any release whose rules are known, so the newest known "
       "rules are used.",
       "The table of NVSHMEM releases in this program.",
       "Give a known release, such as the one that the fix names."},
      {"pcie-degraded", "Topology and mapping", "warning, info",
       "A PCIe link to a GPU or NIC runs with fewer lanes or at a lower speed than both ends can. "
       "A warning as well: the slot of one device can do less than those of its model have here. "
       "The info forms: an idle GPU lowers its link speed, or the slots can do no more.",
       "`current_link_width`, `current_link_speed` and their maxima at both ends of the link.",
       "Reseat the device or its riser and check the slot's settings in the firmware."},
      {"port-down", "Topology and mapping", "error, warning, info",
       "A port is not active, so nothing uses it.", "`/sys/class/infiniband/*/ports/*/state`.",
       "Look at cable, switch port and subnet manager: `ibstat`, `ip link`, `ethtool`."},
      {"port-slow", "Topology and mapping", "warning",
       "A port runs at a lower rate than its peers of the same model and purpose (fabric, storage, "
       "management).",
       "`/sys/class/infiniband/*/ports/*/rate`, compared within a model.",
       "Compare cable, transceiver and switch port with those of a peer."},
      {"port-unknown", "Topology and mapping", "error, warning",
       "A list names a port number that the device does not have.",
       "Each entry is compared with the ports of the device.",
       "Use a port that `shmemctl topo` lists, usually `:1`."},
      {"remote-transport-unknown", "Topology and mapping", "error, warning",
       "`NVSHMEM_REMOTE_TRANSPORT` has a value that NVSHMEM does not know. NVSHMEM starts no "
       "transport to other nodes and does not say so; with IBGDA enabled, IBGDA runs alone without "
       "a transport for its proxy.",
       "`topo`, `doctor`, `env` and every job compare the value with the names that NVSHMEM reads. "
       "`doctor` also checks `SHMEMCTL_REMOTE_TRANSPORT`, with which a job does not start if its "
       "value is unknown.",
       "Use ibrc, ucx, ibdevx, libfabric or none. IBGDA is enabled by "
       "`NVSHMEM_IB_ENABLE_IBGDA=1`."},
      {"topology-incomplete", "Topology and mapping", "warning, info",
       "What the reader of the topology could not read, left out or took from elsewhere; or the "
       "file contains no device that is recognised. What is printed about the node is then not the "
       "whole node.",
       "Each reader notes what it skips, with line and column.",
       "Record the machine again, or run `shmemctl topo` on the host itself."},
      {"env-invalid", "Options and environment", "error",
       "An option has a value that is not legal.",
       "Every option is checked against the option table.",
       "Unset it, or give it a legal value; the message names the legal ones."},
      {"env-no-such-nvshmem-variable", "Options and environment", "warning",
       "A variable with the prefix `NVSHMEM_` is set that no release of NVSHMEM has ever read.",
       "The environment is compared with the names in NVSHMEM's releases.", "Unset it."},
      {"env-shadowed", "Options and environment", "info",
       "An `NVSHMEM_` variable is set, but the `SHMEMCTL_` variable or flag of the same option "
       "wins here.",
       "The order of precedence: command line, `SHMEMCTL_NAME`, `NVSHMEM_NAME`, configuration "
       "file.",
       "Unset one of the two."},
      {"env-surprising-boolean", "Options and environment", "warning",
       "A boolean such as `off` means true: NVSHMEM takes only values that begin with 0, n or f as "
       "false.",
       "NVSHMEM's rule for booleans.", "`export NAME=0`."},
      {"env-unknown", "Options and environment", "warning",
       "A variable with the prefix `SHMEMCTL_` is set but is not an option, so it has no effect.",
       "The environment is compared with the option table.",
       "Correct the name; the fix gives the nearest spelling."},
      {"buffer-corrupt", "Bring-up and transports", "error",
       "What one PE put into the registered buffer of another did not arrive unchanged: size, "
       "offset, expected and found bytes are in the message.",
       "In `bringup` each PE puts into a registered buffer of the next PE of its node, which "
       "verifies it.",
       "Look at the memory of that host first: `shmemctl doctor` there."},
      {"buffer-unavailable", "Bring-up and transports", "warning",
       "A PE cannot register memory, or cannot put into a registered buffer of another PE of its "
       "node. Programs that only use the symmetric heap are not affected.",
       "In `bringup` each PE registers a small buffer and puts into that of the next PE of its "
       "node.",
       "Run the PEs of a node as one user, in one PID namespace, and free memory if none can be "
       "registered."},
      {"gpu-kernels-unavailable", "Bring-up and transports", "error",
       "Kernels cannot be launched in this job, so pairs were not checked by kernels.",
       "`bringup` loads and launches a kernel on the GPU of every PE.",
       "`shmemctl doctor --only driver,gpu`; a job without GPUs is started with `--heap none`."},
      {"gpu-memory-staged", "Bring-up and transports", "warning",
       "NICs cannot read and write GPU memory themselves, so every transfer over a network is "
       "copied through host memory.",
       "Registering GPU memory failed both by dma-buf and through nvidia-peermem.",
       "Run `shmemctl doctor --only dma-buf,nvidia-peermem,gpudirect-rdma` to see what is missing. "
       "If staging is intended, set `SHMEMCTL_GPUDIRECT=off`."},
      {"gpu-pair-unreachable", "Bring-up and transports", "warning",
       "Kernels cannot reach the memory of some PE, by loads and stores or by a network.",
       "`bringup` computes the path of every pair from peer access and the transports' reach.",
       "`SHMEMCTL_DEVICE_PATH=auto` with a transport that reaches these PEs; `shmemctl doctor "
       "--only gpu` says what prevents peer access."},
      {"pair-corrupt", "Bring-up and transports", "error",
       "What one PE sent did not arrive unchanged at another: operation, size, offset, expected "
       "and found bytes are in the message.",
       "`bringup` verifies put, get, atomics and put-with-signal on every pair.",
       "Look at the hosts and devices of these PEs first: `shmemctl doctor` there."},
      {"pair-unreachable", "Bring-up and transports", "error",
       "No transport reaches one PE from another.",
       "Every transport reports for every pair whether it reaches it, and why not.",
       "Enable a transport between these hosts; the fix names one that reaches all pairs if there "
       "is one."},
      {"emulated-hca", "Bring-up and transports", "info",
       "A transport went over the emulated HCA, so its figures are those of CPUs, not of an mlx5 "
       "device.",
       "The device that the transport opened.",
       "Run on a node with an mlx5 device, with `SHMEMCTL_MLX5_DEVICE=real`."},
      {"traffic-elsewhere", "Bring-up and transports", "error",
       "A transport claims to have moved more bytes through a NIC port than the port's own counter "
       "saw: the traffic took another port.",
       "The transports' byte counts, compared with the port counters before and after.",
       "`shmemctl bringup --verbose` shows the path of each pair; look at the counters of the "
       "other ports in the report."},
      {"transport-fallback", "Bring-up and transports", "info",
       "No transport to other nodes was named, and the preferred ones do not reach all PEs, so a "
       "slower one carries the traffic.",
       "With `REMOTE_TRANSPORT=auto`, ibrc, libfabric and ucx are tried in this order.",
       "`shmemctl doctor --only rdma` says what RDMA lacks; `--remote-transport NAME` chooses."},
      {"bench-above-limit", "Benchmarks", "warning, info",
       "Results exceed the limit of which they are reported as a share. It is a warning if the "
       "limit is a link's rate, which cannot be exceeded: the traffic took another path or the "
       "rate is wrong. It is info if the limit was itself measured.",
       "`link_fraction` above 1 by more than the spread.",
       "Compare with the NIC's own counters: `shmemctl hotspots --during CMD`; for a measured "
       "limit, measure longer on an idle machine (`-D 5`)."},
      {"bench-corrupt", "Benchmarks", "error",
       "A case left wrong data in memory: PE, offset, expected and found.",
       "Every point is verified after its timed loop, with data that depends on the iteration.",
       "Run `shmemctl bringup`; if every pair passes there, report it as a bug."},
      {"bench-drift", "Benchmarks", "warning",
       "Samples changed while they were measured: the medians of the first and second half differ "
       "by more than twice the spread within the halves and by more than 2 %.",
       "Comparison of the two halves of each PE's samples.",
       "Measure longer (`-D 5`) on an idle machine."},
      {"bench-interference", "Benchmarks", "warning",
       "Something else used the CPU while a case was measured: run-queue wait or steal time above "
       "1 %, a busy hardware thread beside it, a frequency change above 5 %, or throttling.",
       "`/proc/self/schedstat`, `/proc/stat`, cpufreq and thermal counters before and after.",
       "Measure on an idle machine; trust min and p50, not p99 and max."},
      {"bench-ladder", "Benchmarks", "info",
       "`bench --ladder`: the bandwidth of each step of one path (memcpy or the link, the "
       "transport alone, put, MoE dispatch), and the two steps between which the most is lost.",
       "The rows of one size; for MoE, the bytes that leave a PE.",
       "Measure the step that loses the most by itself; `bench --list` says what each case "
       "measures."},
      {"bench-noisy", "Benchmarks", "warning",
       "With `--max-noise`: the median is less certain than requested, although the point was "
       "measured for up to 15 s more.",
       "The 95 % confidence interval of the median by the ranks of the samples, on the PE where it "
       "is widest.",
       "Measure longer (`-D 60`) on an idle machine, or pass a larger `--max-noise`."},
      {"bench-oversubscribed", "Benchmarks", "warning",
       "More PEs than CPUs, or several PEs on one CPU: the PEs wait for each other's time slices, "
       "so the results measure the scheduler.",
       "The CPU affinity of every PE.", "Start at most one PE per CPU, and bind each to its own."},
      {"bench-proxy-cost", "Benchmarks", "info",
       "The extra time that an operation takes because it goes through the proxy thread instead of "
       "being called directly.",
       "The same call is timed with and without the proxy, sample by sample.",
       "See the page about the proxy; `SHMEMCTL_PROXY_THREADS` and `SHMEMCTL_PROXY_CPUS` change "
       "it."},
      {"bench-short-samples", "Benchmarks", "warning",
       "With this `-n`, samples are too short for the clock's resolution; the message gives the "
       "possible error.",
       "The resolution of the clock, divided by the length of a sample.",
       "Leave out `-n`, or give a larger one."},
      {"bench-slow-pair", "Benchmarks", "warning",
       "In `bench --traffic matrix`, pairs of PEs take more than a quarter longer than the median "
       "of the pairs over the same transports, and even their fastest samples are slower than it. "
       "If one PE is in all of them, it is named.",
       "The rows of one size, by transport; from six pairs on.",
       "Look at the NIC, the cable, the PCIe link and the cores of the PE that is named: "
       "`shmemctl doctor` on its host; or measure the pair alone with `--pair A,B`."},
      {"bench-stall", "Benchmarks", "warning",
       "One sample took far longer than all others: 20 times what 9 of 10 need, and half a second "
       "more. Something stood still: a link went down, a PE was stopped, packets were lost "
       "repeatedly.",
       "The distribution of the samples of a point.",
       "Look for a link that went down (`dmesg`, `shmemctl hotspots`) and for a stopped PE, and "
       "measure again."},
      {"bench-tcp-retransmits", "Benchmarks", "warning",
       "The host retransmitted TCP segments while a transport over TCP was measured.",
       "`/proc/net/snmp`: at least 10 segments and more than 1 in 1000.",
       "Look for drops with `shmemctl hotspots` and `ethtool -S`, and compare the MTU of all "
       "hosts."},
      {"bench-unpinned", "Benchmarks", "warning, info",
       "A PE is bound to no CPU: a migration to another core shows as an outlier.",
       "The CPU affinity of every PE.",
       "Let the launcher bind PEs to cores, or give `--pin auto`."},
      {"moe-corrupt", "MoE", "error",
       "The result of a dispatch or combine is not what routing and reduction order prescribe: "
       "rank, row or token, expected and found.",
       "The first call, the last and every `--verify-every`-th are compared with the reference "
       "result, bit for bit.",
       "Run again with `--verify-every 1`; if it still fails, the transport or the memory is "
       "broken."},
      {"moe-lost", "MoE", "error",
       "A PE was stopped, its process ended, or it no longer responds, and the others finished "
       "without it (`--patience-us`).",
       "Connections of the failure detector, and the wait for the PE's flag.",
       "Look at the output of that PE, its exit status and the kernel log of its host."},
      {"moe-masked", "MoE", "warning, info",
       "A rank did not arrive at a low-latency call within `--patience-us`, so another rank masked "
       "it and went on. It is info if the absence was requested (`--absent`).",
       "The time that the kernel or the host waited for the rank's flag.",
       "Look at what delays that PE, or raise `--patience-us`."},
      {"moe-slow-link", "MoE", "warning",
       "One cell of the wait matrix stands out: one rank waits for one other rank 5 times as long "
       "as ranks wait elsewhere, and it costs more than a tenth of a call.",
       "The wait matrix: how long each rank waited for each other rank.",
       "Look at the NICs, ports and links between the two PEs: `shmemctl hotspots`, `shmemctl "
       "topo`."},
      {"moe-slow-rank", "MoE", "warning",
       "One column of the wait matrix stands out: all ranks wait 3 times as long for this rank as "
       "for the others.",
       "The wait matrix.", "Look at what else runs on that PE's cores and GPU, and at its clocks."},
      {"moe-slow-receiver", "MoE", "warning",
       "One row of the wait matrix stands out: this rank waits longer for everybody than the "
       "others do.",
       "The wait matrix.",
       "Look at that PE's NIC and PCIe link, and at what else runs on its GPU."},
      {"command-failed", "NIC counters", "error",
       "The command that `hotspots --during` watched failed.", "Its exit code or signal.",
       "Run it without `hotspots` and read its output."},
      {"counters-unavailable", "NIC counters", "warning, info",
       "Counters of a port are missing, refuse to be read, were reset, are stuck or contradict "
       "each other. It is a warning if the load of the port is therefore not known in full.",
       "Each counter is checked against its width, the link rate and the other counters.",
       "Look at the files under `/sys/class/infiniband/DEVICE`; update a driver or firmware that "
       "does not count."},
      {"link-flapping", "NIC counters", "error, warning",
       "A link went down or had to recover from errors: link_downed, link_error_recovery, symbol "
       "errors, "
       "carrier changes above their thresholds.",
       "Rules in `nic_thresholds.conf`, each with its source.",
       "Reseat or replace cable and transceiver, look at the switch port, then at the kernel log."},
      {"nic-congested", "NIC counters", "error, warning",
       "Counters show congestion: ECN marks, CNPs, pause frames, PCIe back-pressure above their "
       "thresholds.",
       "Rules in `nic_thresholds.conf`.",
       "Look at ECN and PFC of the switches, at how many senders share a receiver (`shmemctl "
       "moe`), and at the host's PCIe link (`shmemctl topo`)."},
      {"nic-hotspot-measured", "NIC counters", "warning",
       "A port carried much more than its siblings, by its own counters.",
       "Each direction is compared within the node: above the median by 3.5 times 1.4826 MAD and "
       "by a tenth of the link, and above a floor.",
       "Compare with `shmemctl topo`: the PEs of that port are named; change the mapping or spread "
       "the load."},
      {"nic-lossy", "NIC counters", "error, warning",
       "Counters show loss: discards, retransmissions, packets out of order above their "
       "thresholds.",
       "Rules in `nic_thresholds.conf`.",
       "Look at PFC and buffers of host and switch port, at the host's PCIe link, and at the "
       "port's link errors."},
      {"slow-nic", "NIC counters", "warning",
       "Long transfers went through a NIC port at less than 0.6 times the rate of its siblings.",
       "Bytes and time of each long transfer, by port.",
       "Look at its link, cable and switch port, at its PCIe link (`shmemctl topo`), and at the "
       "port at the other end (`shmemctl bringup`). `SHMEMCTL_HCA_LIST=^DEVICE` excludes it."},
      {"log-ends-early", "Logs", "warning",
       "The log of a rank lacks a line that at least half of the ranks wrote: the rank hangs, "
       "died, "
       "or its output was lost. Others often time out because of it.",
       "`explain` knows lines that every rank writes when it comes to some point (`step` in "
       "`log_messages.conf`), and compares the ranks.",
       "Look at what that rank does on its node: `shmemctl inspect`, the kernel log, whether its "
       "process still exists."},
      {"log-known-error", "Logs", "error, warning, info",
       "A log has a message of the catalogue. The finding names the first line, the ranks that "
       "wrote it, and the cause.",
       "Patterns in `log_messages.conf`, each with its source.",
       "What the finding says; it differs by message."},
      {"log-nic-unknown", "Logs", "info",
       "A rank chose a NIC that the topology with which the log is compared does not have.",
       "The NIC's name in the log, and the names of `--from` or of this machine.",
       "Pass the topology of the node that the log is of: `--from FILE`."},
      {"log-rank-missing", "Logs", "warning",
       "No line is of a rank that exists by what the others say.",
       "The largest communicator of which a log tells the size, if more than half of its ranks "
       "have "
       "lines.",
       "Give the logs of all nodes; if these are all, the rank never started."},
      {"log-unknown-error", "Logs", "error, warning, info",
       "A line is an error by its form (`NCCL WARN`, `UCX  ERROR`, the end of a traceback, ...) "
       "and "
       "the catalogue does not have it.",
       "Marks by which libraries tell errors. Lines that differ in numbers only are one finding.",
       "Look at the lines before it; add what you find out with `--catalogue FILE`."},
      {"nic-hotspot-logged", "Logs", "warning",
       "By their logs, several ranks of a host use one NIC while others of the host carry nothing.",
       "The NIC of each rank's connections, and the NICs that the library lists.",
       "Run `shmemctl topo` on that node with the job's settings, and set the mapping that it "
       "prints."},
      {"fabric-corrupt", "Pairs of hosts", "error",
       "What one PE put did not arrive unchanged at a PE of another host.",
       "`fabric` stamps the first and the last word of each 64 KiB with the sender, the round and "
       "the place, and the receiver looks at them.",
       "Verify these pairs byte by byte: `shmemctl bringup`."},
      {"fabric-lossy", "Pairs of hosts", "error, warning",
       "More than 0.2% of the TCP segments that a host sends or receives are sent again, and four "
       "times as many as among other hosts. On a short path TCP hides that; RDMA would not.",
       "`fabric` reads the TCP counters of each host with each measurement. Half of the host's "
       "pairs lose packets, and do so when they are measured four more times.",
       "Look for drops and errors on that host and at its switch port: `ethtool -S`, `shmemctl "
       "hotspots`; cable, optics, MTU, full queues."},
      {"fabric-one-way", "Pairs of hosts", "error, warning",
       "A host, or one NIC of a host, is slow in one direction only: in sending or in receiving.",
       "As `fabric-slow-host`, by direction.",
       "Look at the cable and the switch port (errors are counted on the receiving end), at pause "
       "frames that it gets, and at the settings of its PCIe slot."},
      {"fabric-slow-group", "Pairs of hosts", "error, warning",
       "Several hosts are fast among themselves and slow to all others.",
       "As `fabric-slow-host`; three quarters of the pairs among them are not slow.",
       "Look at what they share: the uplinks of their leaf switch, its routes."},
      {"fabric-slow-host", "Pairs of hosts", "error, warning",
       "All NICs of a host (its only one, or three of four) are slower than those of the other "
       "hosts. Bandwidths that are 1.2 times worse are errors, latencies that are 1.5 times worse "
       "are warnings.",
       "`fabric` measures every pair of hosts. Medians over its partners give what each NIC adds; "
       "what is beyond the noise is measured up to four more times with few others at work, and "
       "has to be slow each time.",
       "On that host, look at the port's rate, the PCIe link, the cable and what else runs there: "
       "`shmemctl doctor`, `shmemctl topo`. Where counters say that packets are lost or that the "
       "network is congested, the finding says so."},
      {"fabric-slow-nic", "Pairs of hosts", "error, warning",
       "One NIC of a host is slower than those of the other hosts, its other NICs are not.",
       "As `fabric-slow-host`, for one local rank.",
       "Look at the rate of the NIC's port, its PCIe link, its cable and its switch port."},
      {"fabric-slow-pair", "Pairs of hosts", "error, warning",
       "Two hosts are slow with each other, in one or both directions, and not with others: "
       "bandwidths 1.33 times, latencies twice as bad as both have with others.",
       "What neither the hosts nor the rail explain; as `fabric-slow-host`.",
       "Look at the path between them: links between their switches, routes."},
      {"fabric-slow-rail", "Pairs of hosts", "error, warning",
       "All pairs of a rail (PEs with one local rank) are slower than those of the other rails.",
       "The medians of all pairs of each rail; as `fabric-slow-host`.",
       "Look at the leaf switches of that rail, and at what else they carry."},
      {"fabric-slow-under-load", "Pairs of hosts", "warning",
       "A PE receives under incast, or sends in all-to-all, at less than two thirds of the median "
       "of its peers, although its pairs may be sound.",
       "`fabric --patterns`: twice, beyond six standard deviations of the peers.",
       "Look at the buffers, ECN and PFC of its switch port; `shmemctl hotspots` shows pauses and "
       "drops."},
      {"fabric-transient", "Pairs of hosts", "info",
       "Something was slow when all pairs were measured, and not when it was measured again.",
       "As `fabric-slow-host`.",
       "Other traffic or another process was in the way. `--soak DURATION` tells how often."},
      {"env-contradiction", "Running processes", "warning",
       "Two variables of a process are set of which one takes the effect of the other.",
       "`inspect` compares `/proc/PID/environ` with a table of such pairs.",
       "Unset the one that is not meant."},
      {"env-ignored", "Running processes", "warning",
       "A variable has no effect: none of the libraries that the process has loaded has its name.",
       "The names are texts in the library's file. Open MPI's parameters and names of "
       "installations "
       "(`NCCL_HOME`) are not looked for, and nothing is said if no library of that prefix is "
       "loaded.",
       "Correct the name; the fix gives the nearest one. Or load a release that knows it."},
      {"env-out-of-range", "Running processes", "warning",
       "A variable has a value that its library does not accept.",
       "`inspect` compares `/proc/PID/environ` with a table of ranges and words.",
       "Set one of the values that the finding gives."},
      {"gpu-index-confused", "Running processes", "warning",
       "A process communicates over the NIC next to another GPU than its own: the one whose "
       "physical number is the number that its GPU has under `CUDA_VISIBLE_DEVICES`.",
       "NVML's processes and `CUDA_VISIBLE_DEVICES` in `/proc/PID/environ`, against the ports of "
       "its connected queue pairs and the distances of the node; in `explain`, the number and the "
       "PCI address of the GPU in NCCL's log.",
       "Look NICs up by the GPU's PCI address; until then name the NIC of each rank."},
      {"library-twice", "Running processes", "error, warning",
       "A process has loaded one library from two files. Each has a state of its own, and which "
       "one "
       "a call reaches depends on the order of loading. Two NVSHMEM host libraries are an error.",
       "`/proc/PID/maps`: files of one name, without version and hash, that are different files.",
       "Keep one: uninstall a package, or clean `LD_LIBRARY_PATH` and `LD_PRELOAD`."},
      {"mapping-differs", "Running processes", "warning, info",
       "The ports over which a rank communicates are not those that `topo` computes for the "
       "version and the settings of its library. The info form says that NCCL may have made the "
       "connections, whose rings may leave a node at another GPU than that of the NIC.",
       "The ports of connected queue pairs (`inspect`), or those that the log of a rank names "
       "(`explain`), against NVSHMEM's and NCCL's rules on the topology of the node.",
       "Compare with `shmemctl topo` under the same variables; look for a variable that the "
       "process set itself, a topology file, or a port that was down when it started."},
      {"nic-one-of-many", "Running processes", "warning",
       "One RDMA port carries nearly all traffic of a node that has several, or several processes "
       "have queue pairs only on one and the same RDMA device.",
       "With `--window`, the byte counters of all ports: 90% or more on one. Without, the devices "
       "on which the processes have connected queue pairs or, where the kernel does not list "
       "these, that they have open.",
       "Let each rank use the NIC next to its GPU: `shmemctl topo` prints the setting."},
      {"nvshmem-qp-layout", "Running processes", "error, warning",
       "An extension reads the queue pairs of NVSHMEM's IBGDA in the order that they had before "
       "3.5.19, and a later host library is loaded. Transfers between nodes time out or access "
       "memory illegally. It is a warning if the extension does not tell its release.",
       "The version that is a text in the extension, and that of the host library; the extension "
       "names IBGDA's device state.",
       "Rebuild the extension from a revision that knows the new order, or load an NVSHMEM before "
       "3.5.19."},
      {"nvshmem-version-split", "Running processes", "error, warning",
       "Parts of NVSHMEM in one process are of different releases: the device library that is "
       "linked into an extension, a plugin, the host library. It is a warning if the release's "
       "rules allow it: same major release, newer host library, no private state.",
       "The versions that are texts in the files of `/proc/PID/maps`.",
       "Rebuild the extension against the host library that is loaded, or load the one that it was "
       "built with."},
      {"rank-awaited", "Running processes", "warning, info",
       "A rank of a job holds the others up: it still compiles, is stopped, is blocked in the "
       "kernel or has ended, or a local rank is missing. The info form is a guess: one sleeps and "
       "all others run, or the reverse, or one has an idle GPU and the others busy ones.",
       "`inspect` reads states, CPU times and descendants of all processes of the job on this "
       "node, and how busy each keeps its GPU (NVML).",
       "Look at that process; compile before the job starts, or raise the timeout of the others."},
      {"receive-side-narrow", "Running processes", "warning",
       "A node sends by several RDMA ports and receives nearly everything by one, which limits "
       "what "
       "it can receive.",
       "With `--window`, the byte counters of all ports: 90% or more of what is received on one "
       "port, at most 60% of what is sent, both more than 10 MB/s. `hotspots` finds the same of a "
       "port that is hot in receiving, in place of `nic-hotspot-measured`.",
       "Compare the NICs that the ranks of both nodes have open: `shmemctl inspect --all`."},
      {"symbol-missing", "Running processes", "error, info",
       "A library needs symbols of a version that another loaded library lacks. It is a remark if "
       "it only asks for them at run time (`dlvsym()`): it goes on without the feature that needs "
       "them, as NCCL does without GPU-initiated networking.",
       "Tables of symbol versions in both files; for libibverbs, libmlx5 and libefa also the "
       "versions that are texts in NCCL and NVSHMEM.",
       "Install a newer rdma-core, or an older release of the library that needs it."},
      {"tcp-fallback", "Running processes", "warning, info",
       "A process is connected to other hosts by TCP only although the node has active RDMA ports. "
       "It is a warning if its connections carried more than 10 MB/s in the window (where the "
       "kernel does not say: interfaces more than 10 MB/s, and RDMA ports less than a tenth "
       "of it); without `--window`, only the connections are known. Those to ports below 1024 are "
       "left out. In `explain`, that a rank's lanes of UCX are TCP only.",
       "RDMA netlink or `/proc/PID/fd`, `/proc/PID/net/tcp`, NETLINK_SOCK_DIAG, "
       "`/sys/class/infiniband`, `/proc/net/dev`; `explain`: the log and a topology.",
       "Mount `/dev/infiniband` into the container; look at `NCCL_NET`, `NCCL_IB_DISABLE`, "
       "`UCX_TLS`, `FI_PROVIDER`."},
      {"nic-hotspot-predicted", "Simulation", "warning",
       "`sim`: a NIC carries 1.2 times the even share or more, or the mapping makes a step at "
       "least 5 % longer than the best mapping.",
       "Bytes per NIC from topology, mapping and routing.",
       "`shmemctl topo --policy optimal` prints the lines for the best mapping. If the mapping is "
       "not the cause, "
       "spread the popular experts over nodes."},
      {"uplink-predicted", "Simulation", "info",
       "`sim`: the uplinks of leaf switches need longer than any NIC.",
       "Bytes per leaf switch, divided by `--oversubscription`.",
       "Less oversubscription, or expert-parallel groups that stay below their leaf switches."},
      {"what-if-slower", "Simulation", "info",
       "`sim`: the changes that were asked for make a step at least 5 % longer.",
       "The step time of the variant, compared with the one without changes.",
       "Compare the NICs of the variants in the table."},
      {"gpu-link-below-declared", "Copies between GPUs", "warning",
       "All pairs at a distance copy at less than half of what the declared NVLink carries: the "
       "copies probably take PCIe.",
       "Timed copies between every pair of GPUs.",
       "See that nobody else uses the GPUs, then `nvidia-smi nvlink --status`, `nvidia-smi topo "
       "-m`, `systemctl status nvidia-fabricmanager`."},
      {"gpu-link-corrupt", "Copies between GPUs", "error",
       "Bytes that one GPU copied to another arrived wrong.",
       "Every copy is compared with a pattern.",
       "`nvidia-smi nvlink --errorcounters` and `dmesg` for Xid errors; see pcie-acs and iommu of "
       "`shmemctl doctor`."},
      {"gpu-link-slow", "Copies between GPUs", "warning",
       "A pair of GPUs copies at less than 0.7 times the median of the pairs at the same distance.",
       "Timed copies between every pair of GPUs.",
       "See that nobody else uses the GPUs and measure again, then `nvidia-smi nvlink --status "
       "--errorcounters`."},
      {"gpu-link-unmeasured", "Copies between GPUs", "warning",
       "Copies between GPUs could not be measured.", "The message of the driver.",
       "See with `nvidia-smi` who uses the GPUs; `shmemctl doctor --only driver,gpu`."},
      {"gpu-p2p-unavailable", "Copies between GPUs", "error",
       "The driver refuses peer access between GPUs that NVLink joins.",
       "`cuDeviceCanAccessPeer` for every pair with an NVLink.",
       "`nvidia-smi topo -p2p r`, `systemctl status nvidia-fabricmanager`; in a container, pass "
       "all GPUs."},
      {"check-bench", "The acceptance test", "error",
       "`check`: the short sweeps between 2 PEs failed or did not finish.",
       "Exit code and report of `shmemctl run -n 2 bench ... --quick`.",
       "Run that part alone; the printed fix gives the command."},
      {"check-bench-gpu", "The acceptance test", "error",
       "`check`: the short sweeps between kernels of 2 PEs failed or did not finish.",
       "Exit code and report of `shmemctl run -n 2 bench ... --initiator gpu --quick`.",
       "Run that part alone; the printed fix gives the command."},
      {"check-bringup", "The acceptance test", "error",
       "`check`: a job of 4 PEs did not come up, or a pair failed.",
       "Exit code and report of `shmemctl run -n 4 bringup`.",
       "Run that part alone; the printed fix gives the command."},
      {"check-moe", "The acceptance test", "error",
       "`check`: dispatch and combine between 2 PEs failed or did not finish.",
       "Exit code and report of `shmemctl run -n 2 moe`.",
       "Run that part alone; the printed fix gives the command."},
      {"expected-differs", "The acceptance test", "error",
       "`check --expect`: a device, the number of NVSwitches or a version differs from the file, "
       "or cannot be read here. All differences of one device are in one finding.",
       "The devices and versions that `topo` and `doctor` read, compared with the file.",
       "The fix belongs to the first difference: reseat, replace the cable, install that firmware "
       "or driver; or record the file anew on a good node."},
      {"expected-extra", "The acceptance test", "warning",
       "`check --expect`: this node has a GPU or an RDMA NIC that the file does not name.",
       "The devices of the node, compared with the file.",
       "Remove the device, or record the file anew on a good node."},
      {"expected-missing", "The acceptance test", "error",
       "`check --expect`: this node lacks a GPU or an RDMA NIC that the file names.",
       "The devices of the node, compared with the file.",
       "`lspci -s ADDRESS`: a device that is not listed has fallen off the bus; one that is lacks "
       "its driver."},
      {"hosts-differ", "The acceptance test", "warning",
       "Hosts that should be alike are not: versions, firmware, limits, settings, GPUs, NICs or "
       "their links. One finding for each set of hosts that differ from all others, with the "
       "facts, "
       "their values and those of most hosts; where no value is that of more than half of the "
       "hosts, it names none as the outlier. With `--against`, the golden host's values are right.",
       "`doctor` and `check` under a launcher, `doctor --against`, `report diff --nodes`: the "
       "facts "
       "of each host (`hosts[].facts`) are compared; see the page about hosts that should be "
       "alike.",
       "Bring the host to what the others have; the printed fix belongs to the first fact. If it "
       "is "
       "meant to differ, compare it with hosts of its own type."},
      {"nothing-to-check", "The acceptance test", "warning",
       "`check`: there is neither a GPU nor an RDMA device. The exit code is 3: the parts that ran "
       "show that shmemctl works on this machine, and nothing else.",
       "The node model: PCI devices, NVML, `/sys/class/infiniband`.",
       "On a node that has devices: load their drivers; compare `lspci` with what was installed."},
      {"comparison-differs", "Reports", "warning",
       "`report diff`: machines, drivers, topologies, options or tool versions differ between BASE "
       "and NEW.",
       "The header of each report.",
       "Read the changes with that in mind, or measure both on the same machine with the same "
       "options."},
      {"comparison-unclear", "Reports", "error, warning",
       "`report diff`: more than half of the rows are unclear, so nothing is decided about most of "
       "what was measured; or more than `--max-unclear` allows, which is an error.",
       "A row is unclear if its confidence interval contains both no change and a relevant change.",
       "Measure longer (`-D 5`), and more runs on each side, in folders."},
      {"comparison-disturbed", "Reports", "warning",
       "`report diff` of changed rows: other processes disturbed some of the runs, so the changes "
       "may be their doing.",
       "Findings `bench-interference` in the reports of both sides.",
       "Measure both on a machine that does nothing else, several runs on each side."},
      {"merge-left-out", "Reports", "info",
       "`report merge`: the reports differ in topology, mapping, simulation or hot spots, so the "
       "merged one has none. Topology and mapping stand with each run (`runs[].topology`), and the "
       "page draws them.",
       "The parts are compared for equality.",
       "Read that part with the run, or in the single reports."},
      {"regression", "Reports", "error",
       "`report diff`: rows of a case are worse in NEW than in BASE, beyond noise and the "
       "threshold.",
       "A rank test or a test on means, corrected for the number of rows; see the page about "
       "comparing reports.",
       "Look for what changed between the runs; to be surer, measure several times on each side."},
      {"row-failed", "Reports", "error",
       "`report annotate`: a row failed and no finding tells why. It appears in annotations only.",
       "The row's `status`.", "See the row's `reason`."},
      {"row-missing", "Reports", "error, info", "`report diff`: rows of BASE are not in NEW.",
       "Rows are matched by case and parameters.",
       "Measure them in NEW too, or give `--allow-missing`."},
      {"run-aborted", "Reports", "error",
       "The run failed on the way or a signal ended it. The report is `incomplete` and holds what "
       "was measured before.",
       "The error or signal that ended the run.", "See the message; run it again."},
      {"run-incomplete", "Reports", "error",
       "`report annotate`: the report is not `complete`. It appears in annotations only.",
       "The report's `status`.", "Look at the log of the run."},
      {"threshold-missed", "Reports", "error",
       "`report check`, `report diff`: a row, the load of a NIC, or the number of findings or "
       "checks "
       "does not meet a threshold of `--require` or `--require-file`.",
       "The expression, evaluated for everything that it matches.",
       "Find out why the requirement is not met, or change the threshold."},
  };
}

/// Ids of doctor's checks that did not pass, in doctor's order.
std::vector<FindingReference> check_rows() {
  constexpr const char* group = "Checks of doctor";
  constexpr const char* severities = "error, warning";
  return {
      {"nvidia-driver", group, severities,
       "The NVIDIA kernel driver is not loaded, nouveau holds the GPUs, or kernel module and "
       "user-mode library are of different versions.",
       "`/proc/driver/nvidia/version`, and the version in the file name of libcuda.so.1.",
       "`modprobe nvidia`, install nvidia-open, or reload the modules after an update (or "
       "reboot)."},
      {"cuda-driver", group, severities,
       "CUDA does not start, or the driver is older than the CUDA release that this binary was "
       "built with.",
       "`cuInit` and `cuDriverGetVersion` in a child process.",
       "Depends on the CUDA error, which the message names: start the fabric manager (802), reload "
       "the modules (803), remove the compat folder (804), pass the GPUs to the container (100), "
       "install cuda-compat or a newer driver."},
      {"nvidia-devices", group, severities,
       "Device nodes of the driver are missing or closed to this user.",
       "`/dev/nvidiactl`, `/dev/nvidia-uvm`, `/dev/nvidia<N>`.",
       "`nvidia-modprobe -u -c 0`; in a container, `docker run --gpus all`."},
      {"fabric-manager", group, severities,
       "The node has NVSwitches, but the fabric manager does not run or GPUs are not registered "
       "with the fabric. NVLink between GPUs is off.",
       "The process list, `nvmlDeviceGetGpuFabricInfo`, `cuInit`.",
       "`systemctl enable --now nvidia-fabricmanager`."},
      {"imex", group, severities,
       "The node is configured for NVLinks to other nodes (IMEX), but the service does not run or "
       "there is no channel: CUDA refuses to import memory of another node.",
       "`/etc/nvidia-imex/nodes_config.cfg`, the process `nvidia-imex`, "
       "`/dev/nvidia-caps-imex-channels`.",
       "Start `nvidia-imex` on all nodes of the domain, and create a channel."},
      {"peer-mapping-override", group, severities,
       "The driver parameter PeerMappingOverride is not set, so a GPU cannot ring a NIC's doorbell "
       "and IBGDA falls back to a CPU thread.",
       "`/proc/driver/nvidia/params`.",
       "Set `NVreg_RegistryDwords=\"PeerMappingOverride=1;\"` and `NVreg_EnableStreamMemOPs=1` in "
       "`/etc/modprobe.d`, and reboot."},
      {"nvidia-peermem", group, severities,
       "The peer memory client for RDMA of GPU memory is not loaded, and dma-buf is not available "
       "either.",
       "`/sys/module/nvidia_peermem`, `/sys/kernel/mm/memory_peers`.",
       "`modprobe nvidia-peermem`."},
      {"dma-buf", group, severities,
       "GPU memory cannot be registered by dma-buf: the kernel is older than 5.12 or lacks it, the "
       "kernel modules are the proprietary ones, or rdma-core is older than 34.",
       "Kernel version and configuration, the driver's flavour, the version of libibverbs, "
       "`CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED`.",
       "Install NVIDIA's open kernel modules, a newer kernel or a newer rdma-core."},
      {"gpudirect-rdma", group, severities,
       "NICs cannot reach GPU memory: neither dma-buf nor nvidia-peermem is available.",
       "The results of `dma-buf` and `nvidia-peermem`.",
       "`modprobe nvidia-peermem`, or what `dma-buf` says."},
      {"gdrcopy", group, severities,
       "GDRCopy is not complete, so staged atomics and small copies take slower paths.",
       "The module gdrdrv, `/dev/gdrdrv` and libgdrapi.so.2.",
       "`modprobe gdrdrv`, or install gdrdrv-dkms and libgdrapi."},
      {"gpus-visible", group, severities,
       "PCI shows a GPU that the driver does not, or another driver holds it.",
       "`/proc/driver/nvidia/gpus`, compared with PCI.",
       "`dmesg | grep -i -E 'nvrm|xid'`; in a container, `docker run --gpus all`."},
      {"gpu-health", group, severities,
       "A GPU reports uncorrected memory errors, row remappings or page retirements that are "
       "pending or failed, or clocks that heat or power hold back.",
       "NVML.",
       "Reset the GPU or reboot for pending remappings; replace a GPU whose remapping failed."},
      {"gpu-clocks", group, severities,
       "Application clocks of a GPU are below its default, or differ among GPUs of one model, or "
       "a setting such as locked clocks holds the clocks of running kernels down: the ranks on the "
       "other GPUs wait for it.",
       "NVML. Locked clocks cannot be asked for; they show only on a GPU that runs kernels while "
       "`doctor` looks.",
       "`nvidia-smi --reset-applications-clocks`, `nvidia-smi --reset-gpu-clocks`."},
      {"gpu-kernel", group, severities,
       "A GPU does not run a kernel of this binary, or does not keep what the kernel wrote.",
       "A kernel on each GPU, in a child process.",
       "`dmesg` for Xid errors; use a build for this GPU's architecture."},
      {"gpu-abilities", group, severities,
       "The GPU cannot export memory to other processes, or cannot launch cooperatively.",
       "Device attributes, and an export in a child process.",
       "Driver branch 525 or newer; containers with the GPU's device nodes."},
      {"gpu-copies", group, severities,
       "Copies from or to the host are wrong, or slower than half of the PCIe link.",
       "Timed copies with a pattern.",
       "`shmemctl doctor --only pcie`; run on the GPU's NUMA node; reset a GPU that returns wrong "
       "bytes."},
      {"gpu-p2p", group, severities,
       "Pairs of GPUs cannot access each other's memory, or their link has no native atomics.",
       "`cuDeviceCanAccessPeer`, `cuDeviceGetP2PAttribute`.",
       "`nvidia-smi topo -p2p r`, then pcie-acs and iommu."},
      {"nvlink-state", group, severities, "NVLinks of a GPU are down.",
       "`nvmlDeviceGetNvLinkState`, or the count compared with other GPUs of the model.",
       "`nvidia-smi nvlink --status`, `nvidia-smi nvlink --errorcounters`."},
      {"nvidia-persistence", group, severities,
       "Without persistence mode a job that finds the GPU unused initialises it anew, which takes "
       "seconds.",
       "NVML, or the daemon's socket.", "`systemctl enable --now nvidia-persistenced`."},
      {"pcie-link-width", group, severities,
       "A PCIe link to a GPU or NIC has fewer lanes than both ends can.",
       "`current_link_width` and `max_link_width` at both ends.",
       "Reseat card or riser, look at the slot's BIOS setting."},
      {"pcie-link-speed", group, severities,
       "A PCIe link to a GPU or NIC is slower than both ends can. An idle GPU lowers its speed; "
       "look again under load.",
       "`current_link_speed` and `max_link_speed` at both ends.",
       "Reseat card or riser, look at the slot's BIOS setting."},
      {"pcie-acs", group, severities, "ACS redirects traffic between GPUs and NICs up to the CPU.",
       "ACS control of every bridge between them (needs root).",
       "Clear the redirect bits with `setpci`; keep ACS where virtual machines need it."},
      {"iommu", group, severities,
       "The IOMMU translates the addresses of GPUs and NICs, so peer-to-peer traffic goes through "
       "the CPU.",
       "The type of the devices' IOMMU groups.", "Boot with `iommu=pt`."},
      {"relaxed-ordering", group, severities,
       "PCIe relaxed ordering is off on a NIC, which limits its bandwidth on some hosts.",
       "The Device Control register (needs root).",
       "Set it with `setpci`; the fix gives the command."},
      {"pcie-max-read-request", group, severities,
       "A NIC reads memory in PCIe requests of less than 512 bytes.",
       "The Device Control register (needs root).",
       "Set it with `setpci`; the fix gives the command."},
      {"rdma-devices", group, severities, "A NIC has no RDMA device though its driver offers one.",
       "`/sys/class/infiniband`, compared with the NICs on PCI.", "`modprobe mlx5_ib`."},
      {"rdma-port-state", group, severities, "A port is not active.",
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
      {"rdma-mtu", group, severities,
       "The active MTU of a port of the compute fabric is less than 4096 bytes.",
       "The netdev's MTU (RoCE), or the port's active MTU.",
       "`ip link set dev IF mtu 9000` (the switch must allow it); on InfiniBand, the partition's "
       "MTU in the subnet manager."},
      {"rdma-gid-table", group, severities,
       "A RoCE port of the compute fabric has no RoCE v2 address on IPv4.",
       "`/sys/class/infiniband/*/ports/*/gids` and `gid_attrs/types`.",
       "Add an IP address to the interface, or tell the libraries which family and version to "
       "use."},
      {"rdma-gid-index", group, severities,
       "The RoCE v2 address has different GID indices on different devices, or a variable fixes an "
       "index that some port does not have.",
       "GID tables of all ports and `*_IB_GID_INDEX`.",
       "Leave the choice to the library: `NVSHMEM_IB_GID_INDEX=-1`, or export the common index."},
      {"rdma-uverbs", group, severities, "The RDMA devices cannot be opened by this user.",
       "`/dev/infiniband/uverbs*`, `/dev/infiniband/rdma_cm`.",
       "`modprobe ib_uverbs`; in a container, `docker run --device=/dev/infiniband "
       "--cap-add=IPC_LOCK`."},
      {"rdma-address-handles", group, severities,
       "The driver makes no address handle to an address of a port: IBGDA, DEVX and UD queue pairs "
       "that use this GID cannot connect. It is a warning if it makes one to another address of "
       "the port.",
       "`ibv_create_ah` from each active port of the compute fabric to its own addresses: GIDs "
       "that "
       "reach other hosts and those that `*_IB_GID_INDEX` names, or the LID.",
       "Give the process the network namespace of the interface (`docker run --network=host`), "
       "bring the interface up, or choose another GID."},
      {"rdma-firmware", group, severities,
       "HCAs of the same board in the compute fabric have different firmware.",
       "`/sys/class/infiniband/*/fw_ver` and `board_id`.",
       "Install the same release on all of them (`mlxfwmanager`), and reboot."},
      {"rdma-pkeys", group, severities,
       "InfiniBand ports of the compute fabric are in different partitions, or only limited "
       "members "
       "of one: limited members cannot reach each other.",
       "`/sys/class/infiniband/*/ports/*/pkeys`; bit 15 is full membership.",
       "Correct the partitions of the subnet manager (`partitions.conf`)."},
      {"roce-priorities", group, severities,
       "RoCE ports of the compute fabric differ in priority flow control, bandwidth of traffic "
       "classes, ECN (DCQCN) or traffic class: the same traffic is lossless on one and dropped on "
       "the other.",
       "The kernel's DCB interface (`RTM_GETDCB`), `/sys/class/net/*/ecn`, "
       "`/sys/class/infiniband/*/tc`.",
       "Give all of them the settings of the fabric: `mlnx_qos`, `dcb`, and the files in `ecn`."},
      {"link-flaps", group, severities,
       "A port has lost its link much more often than the other ports of this node: a cable, a "
       "transceiver or a switch port.",
       "`counters/link_downed` of RDMA ports, `carrier_down_count` of their netdevs, since the "
       "driver was loaded.",
       "Clean or change the cable or transceiver, then look at the switch port."},
      {"nccl-gin", group, severities,
       "NCCL's GPU-initiated networking is asked for, and something that it needs is missing: "
       "NCCL reports `GIN_TYPE_NONE` or uses a CPU thread.",
       "`NCCL_GIN_TYPE`, `NCCL_GIN_ENABLE`; releases of NCCL and rdma-core, symbol versions of "
       "libmlx5, how NICs reach GPU memory, fused ports.",
       "Install what the message names first."},
      {"efa-gda", group, severities,
       "GPU-initiated EFA (`NCCL_GIN_TYPE=5`) is asked for, and something that it needs is "
       "missing.",
       "`/sys/module/efa/version`, `/proc/driver/nvidia/params`, GDRCopy's module and library, "
       "symbols of libefa and of the NCCL plugin, libfabric's release.",
       "Install EFA installer 1.50 or newer, and set `PeerMappingOverride=1`."},
      {"libfabric-provider", group, severities, "libfabric has no provider for the node's NICs.",
       "`fi_getinfo`.", "Install the provider's package; for EFA, AWS's installer."},
      {"libfabric-environment", group, severities,
       "A variable differs from what libfabric's provider needs.", "The environment.",
       "Export the values that the fix prints."},
      {"libfabric-gdrcopy", group, severities,
       "The provider needs GDRCopy for atomics on GPU memory, and it is not complete.",
       "As `gdrcopy`.", "As `gdrcopy`."},
      {"transport-ibrc", group, severities,
       "The transport ibrc cannot move bytes through a port and back.",
       "A put, get, atomic and signal to itself in a child process.",
       "The message of the failing call; `shmemctl bringup --transport ibrc`."},
      {"transport-ibdevx", group, severities,
       "The transport ibdevx cannot move bytes through an mlx5 port.",
       "As `transport-ibrc`, with QPs created through DEVX.",
       "`shmemctl bringup --transport ibdevx`."},
      {"transport-ibgda", group, severities,
       "mlx5 queues as GPUs use them do not move bytes when the CPU posts to them.",
       "As `transport-ibrc`.", "`shmemctl bringup --transport ibgda`."},
      {"transport-libfabric", group, severities,
       "The transport libfabric cannot move bytes to this process itself.", "As `transport-ibrc`.",
       "`shmemctl bringup --transport libfabric`."},
      {"transport-ucx", group, severities,
       "The transport ucx cannot move bytes to this process itself.", "As `transport-ibrc`.",
       "`shmemctl bringup --transport ucx`."},
      {"memlock", group, severities,
       "The limit of locked memory is too low: registering memory for RDMA will fail.",
       "`/proc/self/limits`.",
       "`ulimit -l unlimited` in `/etc/security/limits.d`; Slurm: `LimitMEMLOCK=infinity`; in a "
       "container, `docker run --ulimit memlock=-1`."},
      {"dev-shm", group, severities, "/dev/shm is not mounted, too small or nearly full.",
       "`/proc/mounts`, `statvfs`.",
       "`mount -o remount,size=50% /dev/shm`; in a container, `docker run --shm-size=16g`."},
      {"hugepages", group, severities,
       "There are no huge pages, so registering large buffers takes longer.", "`/sys/kernel/mm`.",
       "`echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`."},
      {"numa-balancing", group, severities,
       "Automatic NUMA balancing unmaps pages to watch them, which causes latency spikes.",
       "`/proc/sys/kernel/numa_balancing`.", "`sysctl -w kernel.numa_balancing=0`."},
      {"kernel-version", group, severities, "Linux is older than 4.18 (fail) or 5.12 (no dma-buf).",
       "`/proc/sys/kernel/osrelease`.", "Install a newer kernel."},
      {"cpu-governor", group, severities, "CPUs are not governed by `performance`.",
       "`scaling_governor` of every CPU.",
       "`echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`."},
      {"clocksource", group, severities, "The system clock is slow to read, so timings are coarse.",
       "`current_clocksource`.", "Select tsc; `dmesg | grep tsc` says why the kernel rejected it."},
      {"open-files", group, severities, "The limit of open files is too low for a large job.",
       "`/proc/self/limits`.", "`ulimit -n 65536`."},
      {"pid-namespace", group, severities,
       "This process is in a PID namespace of its own, so PEs in other containers of the node "
       "cannot pass memory handles to it.",
       "`/proc/self/ns/pid`.", "`docker run --pid=host --ipc=host`; Kubernetes: hostPID, hostIPC."},
      {"ptrace-scope", group, severities,
       "Processes may not attach to their siblings: copies between processes (CMA) and memory "
       "handles by pidfd fail.",
       "`/proc/sys/kernel/yama/ptrace_scope`.",
       "`sysctl -w kernel.yama.ptrace_scope=0`, or CAP_SYS_PTRACE."},
      {"pidfd-getfd", group, severities,
       "A process may not take a descriptor of its sibling: PyTorch's symmetric memory, FlashInfer "
       "and UCX share GPU memory that way, and fail with `EPERM`. It is not needed for jobs of "
       "shmemctl.",
       "`pidfd_getfd` is tried between two children; Yama's `ptrace_scope`, the seccomp filter and "
       "the capabilities say what refuses it.",
       "Set `kernel.yama.ptrace_scope=0`, or give the container `--cap-add=SYS_PTRACE` and a "
       "seccomp profile that allows it."},
      {"descriptor-passing", group, severities,
       "Processes cannot send each other descriptors: PEs of a node cannot share memory by them.",
       "A message with `SCM_RIGHTS` is sent from one child to another.",
       "Change the security profile of the container, or of the host's security module."},
      {"container-capabilities", group, severities,
       "The container lacks IPC_LOCK, SYS_PTRACE or SYS_NICE.", "`/proc/self/status`, CapEff.",
       "`docker run --cap-add=IPC_LOCK --cap-add=SYS_PTRACE --cap-add=SYS_NICE`."},
      {"kernel-log-xid", group, severities,
       "The NVIDIA driver wrote a Xid: an error of a GPU, with what NVIDIA's catalogue says is to "
       "be "
       "done first: restart the application, reset the GPU, reboot, or replace.",
       "The kernel log, or the file of `--kernel-log`, and the entries of `kernel_messages.conf`, "
       "each with its source.",
       "What the message says; its codes that are no problem (45, 63, 92, 121) are no finding."},
      {"kernel-log-sxid", group, severities,
       "The driver of the NVSwitches wrote an SXid. After a fatal one, NVLink traffic has stopped.",
       "As `kernel-log-xid`.",
       "End all GPU jobs and reset all GPUs and NVSwitches: `nvidia-smi --gpu-reset`; or reboot."},
      {"kernel-log-nvrm", group, severities,
       "The NVIDIA driver did not accept or initialise a GPU, or a library of another version "
       "called it.",
       "As `kernel-log-xid`.", "What the message says; reload the driver after an update."},
      {"kernel-log-nic", group, severities,
       "A NIC, its firmware or its transceiver failed: mlx5, EFA, bnxt, or a transmit queue that "
       "does not progress.",
       "As `kernel-log-xid`.",
       "`devlink health show`; update the firmware; power the node off and on."},
      {"kernel-log-link", group, severities,
       "The link of a NIC went down three times or more since the log began.",
       "As `kernel-log-xid`; the limit is ours.",
       "Replace cable or transceiver; look at the switch's port."},
      {"kernel-log-pcie", group, severities,
       "PCIe errors: one that was not corrected, ten or more that were, or a link that was cut "
       "off.",
       "As `kernel-log-xid`: AER, DPC, the firmware's error records.",
       "Reseat the card or its riser; `lspci -vvv`; replace it if they return."},
      {"kernel-log-iommu", group, severities, "The IOMMU refused an access of a device to memory.",
       "As `kernel-log-xid`: DMAR, AMD-Vi, SMMU.", "Boot with `iommu=pt`."},
      {"kernel-log-process", group, severities,
       "The kernel killed a process for lack of memory, or one waits in the kernel for minutes.",
       "As `kernel-log-xid`: OOM killer, hung tasks, soft lockups.",
       "Raise the memory limit; read the stack that follows the message."},
      {"software-loader", group, severities,
       "A communication library is installed in two releases, and the loader finds the older one "
       "first: programs without an RPATH run with it. Two releases of NVSHMEM are worth a warning "
       "in any order.",
       "`LD_LIBRARY_PATH`, then `/etc/ld.so.cache` or the loader's folders; versions are read from "
       "the files.",
       "Put the newer folder first in `LD_LIBRARY_PATH`, or remove the older package."},
      {"software-python", group, severities,
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
      {"software-cuda", group, severities,
       "`CUDA_HOME` names no CUDA toolkit, one of another major release than PyTorch's, or one "
       "whose programs need a newer driver.",
       "`version.json`, `version.txt` or `include/cuda.h` in it, `torch/version.py`, "
       "`/proc/driver/nvidia/version`.",
       "Set `CUDA_HOME` to the toolkit that fits."},
      {"software-modules", group, severities,
       "Two loaded modules bring the same library, an MPI or CUDA, or a module is built for "
       "another CUDA than the one that is loaded.",
       "`LOADEDMODULES`.", "Unload one of them, or load the one that fits (`module swap`)."},
      {"libcuda", group, severities,
       "The library (the CUDA driver library) is not installed. It enables GPU memory and kernels.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libnvidia-ml", group, severities,
       "The library (NVML) is not installed. It enables NVLink state and GPU health.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libibverbs", group, severities,
       "The library (libibverbs) is not installed. It enables the transport ibrc.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libmlx5", group, severities,
       "The library (libmlx5) is not installed. It enables the transports ibdevx and ibgda.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"librdmacm", group, severities,
       "The library (librdmacm) is not installed. It enables libfabric's verbs provider.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libfabric", group, severities,
       "The library (libfabric) is not installed. It enables the transport libfabric.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libucp", group, severities,
       "The library (UCX) is not installed. It enables the transport ucx.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libmpi", group, severities,
       "The library (MPI) is not installed. It enables the bootstrap mpi.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libpmix", group, severities,
       "The library (PMIx) is not installed. It enables the bootstrap pmix.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libpmi", group, severities,
       "The library (PMI-1) is not installed. It enables the bootstrap pmi.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libpmi2", group, severities,
       "The library (PMI-2) is not installed. It enables the bootstrap pmi2.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"liboshmem", group, severities,
       "The library (OpenSHMEM) is not installed. It enables the bootstrap openshmem.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
      {"libgdrapi", group, severities,
       "The library (GDRCopy) is not installed. It enables atomics on GPU memory by the CPU.",
       "`dlopen` of its names.", "Install the package that the printed fix names."},
  };
}

} // namespace

const std::vector<FindingReference>& finding_reference() {
  static const std::vector<FindingReference> rows = [] {
    std::vector<FindingReference> all = finding_rows();
    for (const FindingReference& row : check_rows())
      all.push_back(row);
    return all;
  }();
  return rows;
}

} // namespace shmemctl
