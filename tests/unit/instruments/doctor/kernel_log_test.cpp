// Lines of a kernel log, the catalogue of messages, and what is found.
#include "src/instruments/doctor/kernel_log.h"

#include <gtest/gtest.h>
#include <set>

#include "src/base/error.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl::doctor {

namespace {

const KernelMessage* first_match(const std::string& check, std::string_view message) {
  for (const KernelMessage& entry : kernel_messages())
    if (entry.check == check && entry.pattern.matches(message))
      return &entry;
  return nullptr;
}

std::string time_of(std::string_view line) {
  const auto parsed = parse_kernel_line(line);
  return parsed ? std::string(parsed->time) : "none";
}
std::string text_of(std::string_view line) {
  const auto parsed = parse_kernel_line(line);
  return parsed ? std::string(parsed->message) : "none";
}

std::string address_text(std::string_view message, std::size_t begin = 0) {
  const auto address = address_in(message, begin);
  return address ? to_string(*address) : "none";
}

/// A boot of a healthy GPU node: invented, in the drivers' wording.
constexpr const char* healthy_boot =
    R"([    0.000000] Linux version 6.8.0-45-generic (buildd@lcy02) (x86_64-linux-gnu-gcc-13)
[    0.000000] Command line: BOOT_IMAGE=/boot/vmlinuz-6.8.0-45-generic root=UUID=0000 ro iommu=pt
[    0.412345] DMAR: Host address width 52
[    0.412400] DMAR: DRHD base: 0x000000fed90000 flags: 0x0
[    1.001234] iommu: Default domain type: Passthrough (set via kernel command line)
[    1.101234] pci 0000:13:00.0: [10de:2330] type 00 class 0x030200
[    1.131234] pcieport 0000:12:00.0: AER: enabled with IRQ 34
[    1.141234] pcieport 0000:12:00.0: DPC: enabled with IRQ 34
[    1.151234] pcieport 0000:12:00.0: pciehp: Slot #5 AttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- HotPlug+ Surprise+ Interlock- NoCompl+
[    2.201234] mlx5_core 0000:14:00.0: firmware version: 28.39.3004
[    2.201301] mlx5_core 0000:14:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)
[    2.561234] mlx5_core 0000:14:00.0: Port module event: module 0, Cable plugged
[    2.601234] mlx5_core 0000:24:00.0: Port module event: module 1, Cable unplugged
[    3.001234] mlx5_core 0000:14:00.0: MLX5E: StrdRq(1) RqSz(8) StrdSz(2048) RxCqeCmprss(0 enhanced)
[    3.501234] mlx5_core 0000:14:00.0 eth0: Link down
[    4.501234] mlx5_core 0000:14:00.0 eth0: Link up
[    5.101234] nvidia: loading out-of-tree module taints kernel.
[    5.201234] nvidia-nvlink: Nvlink Core is being initialized, major device number 234
[    5.211234] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build
[    5.311234] nvidia-nvswitch0: using MSI
[    5.411234] nvidia_uvm: module uses symbols nvUvmInterfaceDisableAccessCntr from proprietary module nvidia, inheriting taint.
[    6.001234] infiniband mlx5_0: added to the RDMA subsystem
[    9.001234] systemd[1]: Starting systemd-oomd.service - Userspace Out-Of-Memory (OOM) Killer...
[   12.001234] audit: type=1400 audit(1764204125.123:2): apparmor="STATUS" operation="profile_load"
[   44.001234] pcieport 0000:12:00.0: AER: Corrected error received: 0000:14:00.0
)";

} // namespace

TEST(KernelLog, EachEntryMatchesItsExampleFirst) {
  const std::set<std::string> checks = {"xid",  "sxid", "nvrm",  "nic",
                                        "link", "pcie", "iommu", "process"};
  EXPECT_GE(kernel_messages().size(), 60U);
  for (const KernelMessage& entry : kernel_messages()) {
    EXPECT_TRUE(checks.count(entry.check)) << entry.id;
    const KernelMessage* first = first_match(entry.check, entry.example);
    ASSERT_NE(first, nullptr) << entry.id << ": " << entry.example;
    EXPECT_EQ(first->id, entry.id) << entry.example;
    EXPECT_FALSE(entry.source.empty()) << entry.id;
    EXPECT_NE(entry.source.find("https://"), std::string::npos) << entry.id;
  }
}

TEST(KernelLog, AnExampleIsFoundInEveryFormatOfTheLog) {
  for (const KernelMessage& entry : kernel_messages())
    for (const std::string before :
         {"", "[  123.456789] ", "[Tue Nov  3 10:00:00 2026] ", "3,339,5140900,-;", "<3>[ 1.5] ",
          "kern  :err   : [ 1.5] ",
          "Nov  3 10:00:00 node1 kernel: ", "Nov 13 10:00:00 node1 kernel: [  123.456789] ",
          "2026-11-03T10:00:00.123456+00:00 node1 kernel: ", "2026-11-03T10:00:00,123456+00:00 "}) {
      const KernelEvents found =
          find_kernel_events(before + entry.example + "\n", kernel_messages(), entry.check);
      ASSERT_EQ(found.events.size(), 1U) << entry.id << " after " << before;
      EXPECT_EQ(found.events[0].message->id, entry.id) << before;
      EXPECT_EQ(found.events[0].count, 1U);
    }
}

TEST(KernelLog, TimesAreThoseOfTheLog) {
  EXPECT_EQ(time_of("[  123.456789] x"), "123.456789");
  EXPECT_EQ(time_of("6,339,5140900,-,caller=T1;x"), "5140900");
  EXPECT_EQ(time_of("Nov  3 10:00:00 node1 kernel: [ 1.5] x"), "Nov  3 10:00:00");
  EXPECT_EQ(time_of("[Tue Nov  3 10:00:00 2026] x"), "Tue Nov  3 10:00:00 2026");
  EXPECT_EQ(time_of("2026-11-03T10:00:00,1+00:00 x"), "2026-11-03T10:00:00,1+00:00");
  EXPECT_EQ(time_of("x"), "");
  EXPECT_EQ(text_of("Nov  3 10:00:00 node1 kernel: [ 1.5] x y"), "x y");
  EXPECT_EQ(text_of("[Hardware Error]: x"), "[Hardware Error]: x");
  EXPECT_EQ(text_of("Nov  3 10:00:00 node1 python[42]: NVRM: Xid"), "none"); // not the kernel's
}

TEST(KernelLog, AHealthyBootHasNoFinding) {
  std::set<std::string> checks;
  for (const KernelMessage& entry : kernel_messages())
    checks.insert(entry.check);
  for (const std::string& check : checks) {
    const CheckResult result = judge_kernel_events(
        find_kernel_events(healthy_boot, kernel_messages(), check), "dmesg", healthy_node());
    EXPECT_STREQ(to_string(result.status), "pass") << check << ": " << result.reason;
    EXPECT_EQ(result.evidence, "dmesg: 25 lines");
  }
}

TEST(KernelLog, RepeatedMessagesAreCountedByDevice) {
  const std::string log =
      "[   10.0] NVRM: Xid (PCI:0000:13:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal\n"
      "[   11.0] NVRM: Xid (PCI:0000:23:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal\n"
      "[   12.0] NVRM: Xid (PCI:0000:13:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal\n"
      "[   13.0] NVRM: Xid (PCI:0000:13:00): 45, pid=7, name=python, Ch 00000008\n";
  const KernelEvents found = find_kernel_events(log, kernel_messages(), "xid");
  ASSERT_EQ(found.events.size(), 3U);
  EXPECT_EQ(found.events[0].count, 2U);
  EXPECT_EQ(found.events[0].first, "10.0");
  EXPECT_EQ(found.events[0].last, "12.0");
  const CheckResult result = judge_kernel_events(found, "dmesg", healthy_node());
  EXPECT_EQ(result.status, CheckStatus::fail);
  EXPECT_NE(result.reason.find("xid-74 on GPU0 (0000:13:00.0), 2 times"), std::string::npos)
      << result.reason;
  EXPECT_NE(result.reason.find("also xid-74 on GPU1 (0000:23:00.0)"), std::string::npos)
      << result.reason;
  EXPECT_EQ(result.reason.find("xid-45"), std::string::npos) << result.reason;
  EXPECT_NE(result.evidence.find("first at 10.0, last at 12.0"), std::string::npos)
      << result.evidence;
}

TEST(KernelLog, AnErrorStandsBeforeWarnings) {
  const std::string log = "NVRM: Xid (PCI:0000:13:00): 31, pid=7, name=python, MMU Fault\n"
                          "NVRM: Xid (PCI:0000:13:00): 79, GPU has fallen off the bus.\n";
  const CheckResult result =
      judge_kernel_events(find_kernel_events(log, kernel_messages(), "xid"), "f", Node{});
  EXPECT_EQ(result.status, CheckStatus::fail);
  EXPECT_NE(result.reason.find("xid-79 on 0000:13:00.0: "), std::string::npos) << result.reason;
  EXPECT_NE(result.reason.find("(reboot the node); also xid-31"), std::string::npos)
      << result.reason;
}

namespace {

CheckResult result_of_log(const std::string& check, const std::string& log) {
  return judge_kernel_events(find_kernel_events(log, kernel_messages(), check), "log",
                             healthy_node());
}

} // namespace

TEST(KernelLog, AStartCuresWhatStandsBeforeIt) {
  const std::string load = "nvidia-nvlink: Nvlink Core is being initialized, major device number "
                           "236\nNVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  x\n";
  const std::string boot = "Linux version 6.8.0-45-generic (x)\n";
  const std::string reset = "NVRM: Xid (PCI:0000:13:00): 119, pid=7, name=python, Timeout\n";
  const std::string fallen = "NVRM: Xid (PCI:0000:13:00): 79, pid=7, GPU has fallen off the bus.\n";
  EXPECT_NE(result_of_log("xid", reset).status, CheckStatus::pass);
  const CheckResult cured = result_of_log("xid", boot + load + reset + load);
  EXPECT_EQ(cured.status, CheckStatus::pass) << cured.reason;
  EXPECT_NE(cured.reason.find("xid-119"), std::string::npos) << cured.reason;
  EXPECT_NE(cured.reason.find("before the driver was loaded again"), std::string::npos)
      << cured.reason;
  EXPECT_EQ(result_of_log("xid", reset + load + reset).status, result_of_log("xid", reset).status);
  // the fallen GPU needs a reboot
  EXPECT_EQ(result_of_log("xid", fallen + load).status, CheckStatus::fail);
  const CheckResult booted = result_of_log("xid", fallen + boot + load);
  EXPECT_EQ(booted.status, CheckStatus::pass) << booted.reason;
  EXPECT_NE(booted.reason.find("before the last boot"), std::string::npos) << booted.reason;
}

TEST(KernelLog, AResetCuresTheXidsOfThatGpu) {
  const std::string reset = "NVRM: Xid (PCI:0000:13:00): 119, pid=7, name=python, Timeout\n";
  const std::string other = "NVRM: Xid (PCI:0000:23:00): 119, pid=7, name=python, Timeout\n";
  const std::string fallen = "NVRM: Xid (PCI:0000:13:00): 79, pid=7, GPU has fallen off the bus.\n";
  for (const std::string done :
       {"nvidia 0000:13:00.0: resetting\nnvidia 0000:13:00.0: reset done\n",
        "vfio-pci 0000:13:00.0: reset done\n",
        "NVRM: Xid (PCI:0000:13:00): 154, GPU recovery action changed from 0x1 (GPU Reset "
        "Required) to 0x0 (None)\n"}) {
    const CheckResult cured = result_of_log("xid", reset + done);
    EXPECT_EQ(cured.status, CheckStatus::pass) << done << cured.reason;
    EXPECT_NE(cured.reason.find("xid-119 on GPU0 (0000:13:00.0), before the GPU was reset"),
              std::string::npos)
        << cured.reason;
    EXPECT_EQ(result_of_log("xid", done + reset).status, result_of_log("xid", reset).status)
        << "it came after it";
    const CheckResult left = result_of_log("xid", reset + other + done);
    EXPECT_NE(left.status, CheckStatus::pass);
    EXPECT_EQ(left.reason.find("xid-119 on GPU1 (0000:23:00.0): "), 0U) << left.reason;
    EXPECT_EQ(result_of_log("xid", fallen + done).status, CheckStatus::fail) << "needs a reboot";
    const std::string failure = "NVRM: GPU 0000:13:00.0: RmInitAdapter failed! (0x62:0x40:2393)\n";
    EXPECT_EQ(result_of_log("nvrm", failure + done).status, result_of_log("nvrm", failure).status);
  }
  for (const char* none :
       {"nvidia 0000:13:00.0: resetting\n", "mlx5_core 0000:13:00.0: reset done\n",
        "NVRM: Xid (PCI:0000:13:00): 154, GPU recovery action changed from 0x0 "
        "(None) to 0x1 (GPU Reset Required)\n"})
    EXPECT_NE(result_of_log("xid", reset + none).status, CheckStatus::pass) << none;
}

TEST(KernelLog, ALoadOfTheDriverDoesNotCureItsOwnFailure) {
  const std::string start =
      "nvidia-nvlink: Nvlink Core is being initialized, major device number 236\n";
  const std::string failure = "NVRM: GPU 0000:13:00.0: RmInitAdapter failed! (0x62:0x40:2393)\n";
  const std::string loaded = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  x\n";
  const CheckStatus bad = result_of_log("nvrm", failure).status;
  EXPECT_NE(bad, CheckStatus::pass);
  EXPECT_EQ(result_of_log("nvrm", start + failure + loaded).status, bad);
  EXPECT_EQ(result_of_log("nvrm", start + failure + start + loaded).status, CheckStatus::pass);
  // A load of the NVIDIA driver says nothing about NICs.
  const std::string nic = "mlx5_core 0000:14:00.0: poll_health:825: device's health compromised - "
                          "reached miss count\n";
  EXPECT_EQ(result_of_log("nic", nic + start + loaded).status, CheckStatus::fail);
}

TEST(KernelLog, RepeatedMessagesCountFromTheLastStart) {
  const std::string down = "mlx5_core 0000:14:00.0 eth0: Link down\n", boot = "Linux version 6\n";
  EXPECT_EQ(result_of_log("link", down + down + down).status, CheckStatus::warning);
  EXPECT_EQ(result_of_log("link", down + down + boot + down).status, CheckStatus::pass);
}

TEST(KernelLog, PciAddresses) {
  EXPECT_EQ(address_text("NVRM: Xid (PCI:0000:3b:00): 79, x"), "0000:3b:00.0");
  EXPECT_EQ(address_text("Request device [3b:00.1] fault addr 0x7f32"), "0000:3b:00.1");
  EXPECT_EQ(address_text("pcieport 0000:12:00.0: AER: error received: 0000:14:00.0", 23),
            "0000:14:00.0");
  EXPECT_EQ(address_text("mlx5_core 0000:14:00.0 eth0: Link down", 27), "0000:14:00.0");
  EXPECT_EQ(address_text("at 12:34:56 and 10:20, fe80::1"), "none");
  EXPECT_EQ(address_text(""), "none");
}

TEST(KernelLog, ACatalogueWithAMistakeNamesTheLine) {
  const std::string good = "source s https://example.org\nmessage m\ncheck xid\nseverity error\n"
                           "action reboot\npattern abcd\nmeaning m\nfix f\ncites s\nexample abcd\n";
  EXPECT_EQ(parse_kernel_messages(good, "c").size(), 1U);
  const auto with = [&good](const std::string& line, const std::string& other) {
    std::string text = good;
    return text.replace(text.find(line), line.size(), other);
  };
  const std::vector<std::string> mistakes = {
      "check xid\n",                            // before the first message
      good + "message m\n",                     // twice
      good + "message n\ncheck xid\n",          // not complete
      good + "severity error\n",                // twice in a message
      with("severity error", "severity bad"),   // not a severity
      with("action reboot", "action dance"),    // not an action
      with("check xid", "check xid\nleast 0"),  // not a count
      with("pattern abcd", "pattern *"),        // matches everything
      with("pattern abcd", "pattern {}abcd{}"), // two subjects
      with("cites s", "cites nobody"),          // no such source
      good + "message n\ncolour red\n",         // no such key
      "source s\n",                             // no reference
      "message\n",                              // no id
      "message \xff\n",                         // not UTF-8
  };
  for (const std::string& text : mistakes)
    try {
      parse_kernel_messages(text, "c");
      ADD_FAILURE() << "no error for " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(error.subject().find("c, line "), std::string::npos) << error.subject();
      EXPECT_FALSE(error.fix().empty());
    }
}

} // namespace shmemctl::doctor
