// Findings about what was measured, computed or compared: jobs, hosts, copies, reports.
#include "reports/finding_reference.h"

namespace shmemctl {

std::vector<FindingReference> transport_findings() {
  constexpr const char* group = "Bring-up and transports";
  return {
      {"buffer-corrupt", group, "error",
       "Data that one PE put into a registered buffer of another did not arrive unchanged; the "
       "message has size, offset, and the expected and the found bytes.",
       "In `bringup` each PE puts into a registered buffer of the next PE of its node, which "
       "verifies it.",
       "Look at the memory of that host first: `shmemctl doctor` there."},
      {"buffer-unavailable", group, "warning",
       "A PE cannot register memory, or cannot put into a registered buffer of another PE of its "
       "node. Programs that only use the symmetric heap are not affected.",
       "In `bringup` each PE registers a small buffer and puts into that of the next PE of its "
       "node.",
       "Run the PEs of a node as one user, in one PID namespace, and free memory if none can be "
       "registered."},
      {"emulated-hca", group, "info",
       "A transport went over the emulated HCA, so its figures are those of CPUs, not of an mlx5 "
       "device.",
       "The device that the transport opened.",
       "Run on a node with an mlx5 device, with `SHMEMCTL_MLX5_DEVICE=real`."},
      {"gpu-kernels-unavailable", group, "error",
       "Kernels cannot be launched in this job, so pairs were not checked by kernels.",
       "`bringup` loads and launches a kernel on the GPU of every PE.",
       "Run `shmemctl doctor --only driver,gpu`; if the job should not use GPUs, start it with "
       "`--heap none`."},
      {"gpu-memory-staged", group, "warning",
       "NICs cannot read and write GPU memory themselves, so every transfer over a network is "
       "copied through host memory.",
       "No transport that reaches all other PEs can register GPU memory, neither by dma-buf nor "
       "through nvidia-peermem; the message has the reason.",
       "Run `shmemctl doctor --only dma-buf,nvidia-peermem,gpudirect-rdma` to see what is missing. "
       "If staging is intended, set `SHMEMCTL_GPUDIRECT=off`."},
      {"gpu-pair-unreachable", group, "warning",
       "Kernels can reach the memory of some PE neither by loads and stores nor by a network.",
       "`bringup` computes the path of every pair from peer access and the transports' reach.",
       "Set `SHMEMCTL_DEVICE_PATH=auto`, and use a transport that reaches these PEs; `shmemctl "
       "doctor --only gpu` says what prevents peer access."},
      {"pair-corrupt", group, "error",
       "Data that one PE sent did not arrive unchanged at another; the message has the operation, "
       "size, offset, and the expected and the found bytes.",
       "`bringup` verifies put, get, atomics and put-with-signal on every pair.",
       "Look at the hosts and devices of these PEs first: `shmemctl doctor` there."},
      {"pair-unreachable", group, "error", "No transport reaches one PE from another.",
       "Every transport reports for every pair whether it reaches it, and why not.",
       "Enable a transport between these hosts; the fix names one that reaches all pairs if there "
       "is one."},
      {"traffic-elsewhere", group, "error",
       "A transport claims to have moved more bytes through a NIC port than the port's own counter "
       "saw: the traffic took another port.",
       "The transports' byte counts, compared with the port counters before and after.",
       "`shmemctl bringup --verbose` shows the path of each pair; look at the counters of the "
       "other ports in the report."},
      {"transport-fallback", group, "info",
       "No transport to other nodes was named, and the preferred ones do not reach all PEs, so a "
       "slower one carries the traffic.",
       "With `REMOTE_TRANSPORT=auto`, ibrc, libfabric and ucx are tried in this order.",
       "`shmemctl doctor --only rdma` says what RDMA lacks; `--remote-transport NAME` chooses."},
  };
}

std::vector<FindingReference> bench_findings() {
  constexpr const char* group = "Benchmarks";
  return {
      {"bench-above-limit", group, "warning, info",
       "Results exceed the limit of which they are reported as a share. It is a warning if the "
       "limit is a link's rate, which cannot be exceeded: the traffic took another path or the "
       "rate is wrong. It is info if the limit was itself measured, or is the bandwidth of a GPU's "
       "memory, which data in the GPU's cache can exceed.",
       "`link_fraction` is more than 1.02 for a rate, more than 1.05 for a measured limit.",
       "Compare with the NIC's own counters: `shmemctl hotspots --during CMD`, or with the links "
       "that `nvidia-smi` reports; for a measured limit, measure longer on an idle machine "
       "(`-D 5`); for GPU memory, pass sizes larger than the L2 cache."},
      {"bench-corrupt", group, "error",
       "A case left wrong data in memory; the message has the PE, the offset, and the expected and "
       "the found value.",
       "Every point is verified after its timed loop, with data that depends on the iteration.",
       "Run `shmemctl bringup`; if every pair passes there, report it as a bug."},
      {"bench-drift", group, "warning",
       "Samples changed while they were measured: the medians of the first and second half differ "
       "by more than twice the spread within the halves and by more than 2 %.",
       "Comparison of the two halves of each PE's samples.",
       "Measure longer (`-D 5`) on an idle machine."},
      {"bench-interference", group, "warning",
       "A PE's CPU was disturbed while a case, or MoE on the host, was measured: run-queue wait or "
       "steal time above 1 %, the other hardware thread busy above 10 %, a frequency change above "
       "5 %, or throttling.",
       "`/proc/thread-self/schedstat`, `/proc/stat`, cpufreq, thermal counters before and after.",
       "Measure on an idle machine; trust min and p50, not p99 and max."},
      {"bench-ladder", group, "info",
       "`bench --ladder`: the bandwidth of each step of one path (memcpy, limit of the link, `st`, "
       "RDMA writes, the transport alone, put, MoE dispatch), and the step that loses the most.",
       "The rows of the steps at one size; for MoE, by the bytes that leave a PE.",
       "Measure the step that loses the most by itself; `bench --list` says what each case "
       "measures."},
      {"bench-noisy", group, "warning",
       "With `--max-noise`: the median is less certain than requested, although the point was "
       "measured for up to 15 s more.",
       "The 95 % confidence interval of the median by the ranks of the samples, on the PE where it "
       "is widest.",
       "Measure longer (`-D 60`) on an idle machine, or pass a larger `--max-noise`."},
      {"bench-oversubscribed", group, "warning",
       "More PEs than CPUs, or several PEs on one CPU: the PEs wait for each other's time slices, "
       "so the results measure the scheduler.",
       "The CPU affinity of every PE.", "Start at most one PE per CPU, and bind each to its own."},
      {"bench-proxy-cost", group, "info",
       "The extra time that an operation takes because it goes through the proxy thread instead of "
       "being called directly.",
       "The same call is timed with and without the proxy, sample by sample.",
       "See the page about the proxy; `SHMEMCTL_PROXY_THREADS` and `SHMEMCTL_PROXY_CPUS` change "
       "it."},
      {"bench-short-samples", group, "warning",
       "With this `-n`, samples are too short for the clock's resolution; the message gives the "
       "possible error.",
       "The resolution of the clock, divided by the length of a sample.",
       "Leave out `-n`, or give a larger one."},
      {"bench-slow-pair", group, "warning",
       "In `bench --traffic matrix`, pairs of PEs take more than a quarter longer than the median "
       "of the pairs over the same transports, and even their fastest samples are slower than it. "
       "If one PE is in all of them, it is named.",
       "The rows of one size over the same transports are compared, if there are at least six.",
       "Look at the NIC, the cable, the PCIe link and the cores of the PE that is named: "
       "`shmemctl doctor` on its host; or measure the pair alone with `--pair A,B`."},
      {"bench-stall", group, "warning",
       "One sample took far longer than all others: 20 times what 9 of 10 need, and half a second "
       "more. Something stood still: a link went down, a PE was stopped, packets were lost "
       "repeatedly.",
       "The distribution of the samples of a point.",
       "Look for a link that went down (`dmesg`, `shmemctl hotspots`) and for a stopped PE, and "
       "measure again."},
      {"bench-tcp-retransmits", group, "warning",
       "The host retransmitted TCP segments while a transport over TCP was measured.",
       "`/proc/net/snmp`: at least 10 segments and more than 1 in 1000.",
       "Look for drops with `shmemctl hotspots` and `ethtool -S`, and compare the MTU of all "
       "hosts."},
      {"bench-unpinned", group, "warning, info",
       "A PE is bound to no CPU, so a migration to another core shows as an outlier. It is info "
       "with `--pin none`.",
       "The CPU affinity of every PE.",
       "Let the launcher bind PEs to cores, or give `--pin auto`."},
  };
}

std::vector<FindingReference> moe_findings() {
  constexpr const char* group = "MoE";
  return {
      {"moe-corrupt", group, "error",
       "The result of a dispatch or combine is not what the routing and the order of the sums "
       "prescribe; the message has the rank, the row or token, and the expected and the found "
       "value.",
       "The first call, the last and every `--verify-every`-th are compared with the reference "
       "result, bit for bit.",
       "Run again with `--verify-every 1`; if it still fails, the transport or the memory is "
       "broken."},
      {"moe-lost", group, "error",
       "A PE was stopped, its process ended, or it no longer responds, and the others finished "
       "without it (`--patience-us`).",
       "Connections of the failure detector, and the wait for the PE's flag.",
       "Look at the output of that PE, its exit status and the kernel log of its host."},
      {"moe-masked", group, "warning, info",
       "A rank did not arrive at a low-latency call within `--patience-us`, so another rank masked "
       "it and went on. It is info if the absence was requested (`--absent`).",
       "The time that the kernel or the host waited for the rank's flag.",
       "Look at what delays that PE, or raise `--patience-us`."},
      {"moe-slow-link", group, "warning",
       "One cell of the wait matrix stands out: one rank waits for one other rank more than 5 "
       "times as long as ranks wait for each other elsewhere, and the difference is more than a "
       "tenth of a call (with two ranks, half of it).",
       "The wait matrix: how long each rank waited for each other rank.",
       "Look at the NICs, ports and links between the two PEs: `shmemctl hotspots`, `shmemctl "
       "topo`."},
      {"moe-slow-rank", group, "warning",
       "One column of the wait matrix stands out: most ranks, and all on average, wait more than 3 "
       "times as long for this rank as ranks wait for each other elsewhere, and the difference is "
       "more than a tenth of a call. With two ranks: as `moe-slow-link`, where it begins late.",
       "The wait matrix.", "Look at what else runs on that PE's cores and GPU, and at its clocks."},
      {"moe-slow-receiver", group, "warning",
       "One row of the wait matrix stands out: this rank waits for most ranks, and on average for "
       "all, more than 3 times as long as these wait for each other, and the difference is more "
       "than a tenth of a call.",
       "The wait matrix.",
       "Look at that PE's NIC and PCIe link, and at what else runs on its GPU."},
  };
}

std::vector<FindingReference> fabric_findings() {
  constexpr const char* group = "Pairs of hosts";
  return {
      {"fabric-corrupt", group, "error",
       "What one PE put did not arrive unchanged at a PE of another host.",
       "`fabric` stamps the first and the last word of each 64 KiB with the sender, the round and "
       "the place, and the receiver looks at them.",
       "Verify these pairs byte by byte: `shmemctl bringup`."},
      {"fabric-lossy", group, "error, warning",
       "More than 0.2% of the TCP segments that a host sends or receives are sent again, and over "
       "four times as many as elsewhere (a warning if PEs share a CPU). TCP hides that, RDMA not.",
       "`fabric` reads the TCP counters of each host with each measurement. At least half of the "
       "host's pairs lose packets, and so does the host when it is measured four more times.",
       "Look for drops and errors on that host and at its switch port: `ethtool -S`, `shmemctl "
       "hotspots`; cable, optics, MTU, full queues."},
      {"fabric-one-way", group, "error, warning",
       "A host, or one NIC of a host, is slow in one direction only: in sending or in receiving.",
       "As `fabric-slow-host`, by direction.",
       "Look at the cable and the switch port (errors are counted on the receiving end), at pause "
       "frames that it gets, and at the settings of its PCIe slot."},
      {"fabric-slow-group", group, "error, warning",
       "Several hosts are fast among themselves and slow to all others.",
       "As `fabric-slow-host`; at least three quarters of the pairs among them are not slow.",
       "Look at what they share: the uplinks of their leaf switch, its routes."},
      {"fabric-slow-host", group, "error, warning",
       "At least three quarters of the NICs of a host are slower than those of the other hosts. It "
       "is an error if the bandwidth is at least 1.2 times worse, a warning if only the latency is "
       "(at least 1.5 times, and 2 us), or if several PEs share a CPU.",
       "`fabric` measures every pair of hosts. Medians over its partners give what each NIC adds; "
       "what is beyond the noise is measured up to four more times with few others at work, and "
       "has to be slow each time.",
       "On that host, look at the port's rate, the PCIe link, the cable and what else runs there: "
       "`shmemctl doctor`, `shmemctl topo`. Where counters say that packets are lost or that the "
       "network is congested, the finding says so."},
      {"fabric-slow-nic", group, "error, warning",
       "One NIC of a host is slower than those of the other hosts, its other NICs are not.",
       "As `fabric-slow-host`, for one local rank.",
       "Look at the rate of the NIC's port, its PCIe link, its cable and its switch port."},
      {"fabric-slow-pair", group, "error, warning",
       "Two hosts are slow with each other, in one or both directions, but not with others: the "
       "bandwidth is at least 1.33 times, or the latency at least twice as bad as both have with "
       "others.",
       "What neither the hosts nor the rail explain; as `fabric-slow-host`.",
       "Look at the path between them: links between their switches, routes."},
      {"fabric-slow-rail", group, "error, warning",
       "All pairs of a rail (PEs with one local rank) are slower than those of the other rails.",
       "The medians of all pairs of each rail; as `fabric-slow-host`.",
       "Look at the leaf switches of that rail, and at what else they carry."},
      {"fabric-slow-under-load", group, "warning",
       "A PE receives under incast, or sends in all-to-all, at less than two thirds of the median "
       "of its peers, although its pairs may be sound.",
       "`fabric --patterns`: twice, beyond six standard deviations of the peers.",
       "Look at the buffers, ECN and PFC of its switch port; `shmemctl hotspots` shows pauses and "
       "drops."},
      {"fabric-transient", group, "info",
       "Something was slow when all pairs were measured, and not when it was measured again.",
       "As `fabric-slow-host`.",
       "Other traffic or another process was in the way. `--soak DURATION` shows how often."},
      {"fabric-unconfirmed", group, "warning",
       "Something was slow when all pairs were measured, and was not measured again: no host was "
       "left that is not slow, or too many parts were slow.",
       "As `fabric-slow-host`, without a second measurement.",
       "Run `fabric` again with more hosts that are not slow, or only with the slow hosts."},
  };
}

std::vector<FindingReference> simulation_findings() {
  constexpr const char* group = "Simulation";
  return {
      {"nic-hotspot-predicted", group, "warning",
       "`sim`: a NIC carries 1.2 times the even share or more, or the mapping makes a step at "
       "least 5 % longer than the best mapping.",
       "Bytes per NIC, computed from topology, mapping and routing; nothing is measured.",
       "`shmemctl topo --policy optimal` prints the lines for the best mapping. If the mapping is "
       "not the cause, spread the popular experts over nodes."},
      {"uplink-predicted", group, "info",
       "`sim`: the links between leaf switches and the layer above them take longer than any NIC, "
       "so they limit a step.",
       "Bytes that each leaf switch sends and receives over its uplinks, whose rate is that of its "
       "ports divided by `--oversubscription`.",
       "Use a fabric with less oversubscription, or expert-parallel groups whose nodes share leaf "
       "switches."},
      {"what-if-slower", group, "info",
       "`sim`: the changes that were asked for make a step at least 5 % longer.",
       "The step time of the variant, compared with the one without changes.",
       "The table shows, for each variant, which NICs carry more: look for those that limit the "
       "step."},
  };
}

std::vector<FindingReference> gpu_copy_findings() {
  constexpr const char* group = "Copies between GPUs";
  return {
      {"gpu-link-below-declared", group, "warning",
       "Pairs of GPUs copy at less than half of the rate that their NVLinks should have, and are "
       "as slow as others at this distance: the copies probably take PCIe.",
       "Timed copies between every pair of GPUs.",
       "See that nobody else uses the GPUs, then look at `nvidia-smi nvlink --status`, `nvidia-smi "
       "topo -m` and `systemctl status nvidia-fabricmanager`."},
      {"gpu-link-corrupt", group, "error", "Bytes that one GPU copied to another arrived wrong.",
       "After the timed copies of a pair, what arrived is compared with a pattern.",
       "`nvidia-smi nvlink --errorcounters` and `dmesg` for Xid errors; see pcie-acs and iommu of "
       "`shmemctl doctor`."},
      {"gpu-link-slow", group, "warning",
       "A pair of GPUs copies at less than 0.7 times the median of the pairs at the same distance.",
       "Timed copies between every pair of GPUs.",
       "See that nobody else uses the GPUs and measure again, then `nvidia-smi nvlink --status "
       "--errorcounters`."},
      {"gpu-link-unmeasured", group, "warning", "Copies between GPUs could not be measured.",
       "The message of the driver.",
       "See with `nvidia-smi` who uses the GPUs; `shmemctl doctor --only driver,gpu`."},
      {"gpu-p2p-unavailable", group, "error",
       "The driver refuses peer access between GPUs that NVLink joins.",
       "`cuDeviceCanAccessPeer` for every pair with an NVLink.",
       "`nvidia-smi topo -p2p r`, `systemctl status nvidia-fabricmanager`; in a container, pass "
       "all GPUs."},
  };
}

std::vector<FindingReference> acceptance_findings() {
  constexpr const char* group = "The acceptance test";
  return {
      {"check-bench", group, "error",
       "`check`: the short sweeps between 2 PEs failed or did not finish.",
       "Exit code and report of `shmemctl run -n 2 bench ... --quick`.",
       "Do what the printed fix says, or run that part alone."},
      {"check-bench-gpu", group, "error",
       "`check`: the short sweeps between kernels of 2 PEs failed or did not finish.",
       "Exit code and report of `shmemctl run -n 2 bench ... --initiator gpu --quick`.",
       "Do what the printed fix says, or run that part alone."},
      {"check-bringup", group, "error",
       "`check`: a job of 4 PEs did not come up or did not finish (a bad pair: `pair-corrupt`).",
       "Exit code and report of `shmemctl run -n 4 bringup`.",
       "Do what the printed fix says, or run that part alone."},
      {"check-moe", group, "error",
       "`check`: dispatch and combine between 2 PEs failed or did not finish.",
       "Exit code and report of `shmemctl run -n 2 moe`.",
       "Do what the printed fix says, or run that part alone."},
      {"expected-differs", group, "error",
       "`check --expect`: a device, the number of NVSwitches or a version differs from the file, "
       "or cannot be read here. All differences of one device are in one finding.",
       "The devices and versions that `topo` and `doctor` read, compared with the file.",
       "The printed fix is for the first difference: reseat the device, replace the cable, install "
       "that firmware or driver; or, if the node is right, write the file again with `shmemctl "
       "check --record-expect FILE`."},
      {"expected-extra", group, "warning",
       "`check --expect`: this node has a GPU or an RDMA NIC that the file does not name.",
       "The devices of the node, compared with the file.",
       "Remove the device, or write the file again on a good node with `shmemctl check "
       "--record-expect FILE`."},
      {"expected-missing", group, "error",
       "`check --expect`: this node lacks a GPU or an RDMA NIC that the file names.",
       "The devices of the node, compared with the file.",
       "Run `lspci -s ADDRESS`: a device that it does not list has fallen off the bus; one that it "
       "lists lacks its driver."},
      {"hosts-differ", group, "warning",
       "Hosts that should be alike differ in versions, firmware, limits, settings, GPUs, NICs or "
       "their links. One finding for each set of hosts that differ from all others, with the "
       "facts, their values and those of most hosts; where no value is that of more than half of "
       "the hosts, it names none as the outlier. With `--against`, the golden host's values are "
       "right.",
       "`doctor` and `check` under a launcher, `doctor --against`, `report diff --nodes`: the "
       "facts of each host (`hosts[].facts`) are compared; see the page about hosts that should be "
       "alike.",
       "Bring the host to what the others have; the printed fix belongs to the first fact. If it "
       "is meant to differ, compare it with hosts of its own type."},
      {"nothing-to-check", group, "warning",
       "`check`: there is neither a GPU nor an RDMA device. The exit code is 3: the parts that ran "
       "show that shmemctl works on this machine, and nothing else.",
       "The node model: PCI devices, NVML, `/sys/class/infiniband`.",
       "On a node that has devices: load their drivers; compare `lspci` with what was installed."},
  };
}

std::vector<FindingReference> report_findings() {
  constexpr const char* group = "Reports";
  return {
      {"comparison-differs", group, "warning",
       "`report diff`: machines, drivers, topologies, options or tool versions differ between BASE "
       "and NEW.",
       "Hosts, distances, mapping, options, variables and job in the reports of both sides.",
       "Read the changes with that in mind, or measure both on the same machine with the same "
       "options."},
      {"comparison-disturbed", group, "warning",
       "`report diff` finds changed rows, and other processes disturbed some of the runs: the "
       "changes may be their doing.",
       "Findings `bench-interference` in the reports of both sides.",
       "Measure both on a machine that does nothing else, several runs on each side."},
      {"comparison-unclear", group, "error, warning",
       "`report diff`: more than half of the rows are unclear, so nothing is decided about most of "
       "what was measured; or more than `--max-unclear` allows, which is an error.",
       "A row is unclear if its confidence interval contains both no change and a relevant change.",
       "Measure longer (`-D 5`), and several times on each side, and pass the folders with the "
       "reports."},
      {"merge-left-out", group, "info",
       "`report merge`: the reports differ in topology, mapping, simulation, logs or hot spots, so "
       "the merged one has none. Topology and mapping are with each run (`runs[].topology`), and "
       "`report html` draws them.",
       "The parts are compared; hot spots of different hosts are joined if measured alike.",
       "Read that part with the run, or in the single reports."},
      {"regression", group, "error",
       "`report diff`: rows of a case are worse in NEW than in BASE, by more than the noise and "
       "`--min-effect`.",
       "A rank test or a test on means, corrected for the number of rows; see the page about "
       "comparing reports.",
       "Look for what changed between the runs; to be surer, measure several times on each side."},
      {"row-failed", group, "error",
       "`report annotate`: a row failed and no finding says why. It appears in annotations only.",
       "The row's `status`.", "See the row's `reason`."},
      {"row-missing", group, "error, info",
       "`report diff`: rows of BASE are not in NEW. It is info with `--allow-missing`.",
       "Rows are matched by case and parameters.",
       "Measure them in NEW too, or pass `--allow-missing`."},
      {"run-aborted", group, "error",
       "The run failed on the way or a signal ended it. The report is `incomplete` and holds what "
       "was measured before.",
       "The error or signal that ended the run.",
       "Remove the cause that the message names, and run it again."},
      {"run-incomplete", group, "error",
       "`report annotate`: the report is not `complete`. It appears in annotations only.",
       "The report's `status`.", "Look at the log of the run."},
      {"threshold-missed", group, "error",
       "`report check`, `report diff`: a row, the load of a NIC, or the number of findings or "
       "checks does not meet a threshold of `--require` or `--require-file`.",
       "The threshold is evaluated for every row, port or count that it matches.",
       "Look at the rows that the message names: find what made them worse, or correct the "
       "threshold."},
  };
}

} // namespace shmemctl
