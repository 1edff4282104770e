#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

std::function<void(Machine&)> logged(const std::string& text) {
  return [text](Machine& m) {
    m.node = healthy_node();
    m.files.write("/var/log/kern.log", text);
  };
}

std::string from_syslog(const std::string& message) {
  return "Nov  3 10:00:00 node1 kernel: [  123.456789] " + message + "\n";
}

/// Nothing, that message, and no log at all.
Scenarios three(const std::string& id, const std::string& message, CheckStatus status,
                const std::string& evidence, const std::string& fix, int times = 1) {
  std::string text;
  for (int i = 0; i < times; ++i)
    text += from_syslog(message);
  return {
      {id, "nothing", logged(from_syslog("Linux version 6.8.0-45-generic")), pass,
       "/var/log/kern.log: 1 line", ""},
      {id, message, logged(text), status, evidence, fix},
      {id, "no log in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/var/log/kern.log: not there", ""},
  };
}

} // namespace

Scenarios kernel_log_scenarios() {
  Scenarios all;
  for (const Scenarios& part : {
           three("kernel-log-xid", "NVRM: Xid (PCI:0000:13:00): 79, GPU has fallen off the bus.",
                 fail, "at Nov  3 10:00:00: NVRM: Xid (PCI:0000:13:00): 79", "reboot"),
           three("kernel-log-xid", "NVRM: Xid (PCI:0000:13:00): 43, pid=7, name=python, Ch 8",
                 warning, "): 43, pid=7", "compute-sanitizer"),
           three("kernel-log-sxid",
                 "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
                 fail, "20034, Fatal", "end all GPU jobs"),
           three("kernel-log-nvrm", "NVRM: API mismatch: the client has the version 545.29.06, but",
                 fail, "API mismatch", "rmmod nvidia_uvm"),
           three("kernel-log-nic",
                 "mlx5_core 0000:14:00.0: poll_health:825: device's health compromised - reached "
                 "miss count",
                 fail, "reached miss count", "devlink health show"),
           three("kernel-log-link", "mlx5_core 0000:14:00.0 eth0: Link down", warning,
                 "first at Nov  3 10:00:00, last at", "ethtool", 3),
           three("kernel-log-pcie",
                 "pcieport 0000:12:00.0: AER: Uncorrectable (Fatal) error message received from "
                 "0000:14:00.0",
                 fail, "Uncorrectable (Fatal)", "reseat"),
           three("kernel-log-iommu", "DMAR: [DMA Write] Request device [14:00.0] fault addr 7f32",
                 fail, "Request device [14:00.0]", "iommu=pt"),
           three("kernel-log-process",
                 "Memory cgroup out of memory: Killed process 4242 (python) total-vm:8kB, "
                 "anon-rss:4kB",
                 warning, "Killed process 4242 (python)", "memory limit"),
       })
    all.insert(all.end(), part.begin(), part.end());
  all.push_back({"kernel-log-link", "down once, as at a boot",
                 logged(from_syslog("mlx5_core 0000:14:00.0 eth0: Link down")), pass,
                 "/var/log/kern.log: 1 line", ""});
  all.push_back({"kernel-log-xid", "of another program",
                 logged("Nov  3 10:00:00 node1 logger: NVRM: Xid (PCI:0000:13:00): 79, x\n"), pass,
                 "/var/log/kern.log: 0 lines", ""});
  return all;
}

} // namespace shmemctl
