#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

constexpr const char* clock_folder = "/sys/devices/system/clocksource/clocksource0/";

void empty(Machine& m) {
  m.node = healthy_node();
}

void with_kernel(Machine& m, const std::string& release) {
  m.files.write("/proc/sys/kernel/osrelease", release + "\n");
}

void with_governors(Machine& m, const std::string& first, const std::string& second) {
  m.files.write("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", first + "\n");
  m.files.write("/sys/devices/system/cpu/cpufreq/policy10/scaling_governor", second + "\n");
}

void with_clock(Machine& m, const std::string& current, const std::string& available) {
  m.files.write(std::string(clock_folder) + "current_clocksource", current + "\n");
  m.files.write(std::string(clock_folder) + "available_clocksource", available + " \n");
}

void with_open_files(Machine& m, const std::string& soft, const std::string& hard) {
  m.files.write("/proc/self/limits",
                "Max open files            " + soft + "       " + hard + "       files     \n");
}

void with_capabilities(Machine& m, const std::string& mask) {
  m.files.write("/proc/self/status", "Name:\tshmemctl\nCapInh:\t0\nCapEff:\t" + mask + "\n");
}

Scenarios machine() {
  return {
      {"kernel-version", "new", [](Machine& m) { with_kernel(m, "6.8.0-45-generic"); }, pass,
       "/proc/sys/kernel/osrelease: 6.8.0-45-generic", ""},
      {"kernel-version", "before dma-buf", [](Machine& m) { with_kernel(m, "5.4.0-150"); }, warning,
       "osrelease: 5.4.0-150", "linux-image"},
      {"kernel-version", "very old", [](Machine& m) { with_kernel(m, "3.10.0-1160.el7.x86_64"); },
       fail, "osrelease: 3.10.0", "linux-image"},
      {"kernel-version", "no version", [](Machine& m) { with_kernel(m, "linux"); }, skipped, "",
       ""},
      {"kernel-version", "not in the copy", empty, skipped, "osrelease: not there", ""},

      {"cpu-governor", "performance",
       [](Machine& m) { with_governors(m, "performance", "performance"); }, pass,
       "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor: performance", ""},
      {"cpu-governor", "one is not",
       [](Machine& m) { with_governors(m, "performance", "powersave"); }, warning,
       "policy10/scaling_governor: powersave", "echo performance | tee"},
      {"cpu-governor", "by CPU, as old kernels have it",
       [](Machine& m) {
         m.files.write("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "schedutil\n");
         m.files.directory("/sys/devices/system/cpu/cpuidle");
       },
       warning, "cpu3/cpufreq/scaling_governor: schedutil", "echo performance | tee"},
      {"cpu-governor", "a virtual machine", empty, skipped, "cpufreq: not there", ""},

      {"clocksource", "tsc", [](Machine& m) { with_clock(m, "tsc", "tsc hpet"); }, pass,
       "current_clocksource: tsc", ""},
      {"clocksource", "a slow one, though tsc is there",
       [](Machine& m) { with_clock(m, "hpet", "tsc hpet acpi_pm"); }, warning,
       "current_clocksource: hpet", "echo tsc > /sys/devices/system/clocksource"},
      {"clocksource", "only slow ones", [](Machine& m) { with_clock(m, "hpet", "hpet acpi_pm"); },
       warning, "current_clocksource: hpet", "dmesg"},
      {"clocksource", "not in the copy", empty, skipped, "current_clocksource: not there", ""},

      {"open-files", "many", [](Machine& m) { with_open_files(m, "1048576", "1048576"); }, pass,
       "/proc/self/limits: Max open files 1048576", ""},
      {"open-files", "unlimited", [](Machine& m) { with_open_files(m, "unlimited", "unlimited"); },
       pass, "unlimited", ""},
      {"open-files", "few, but more are allowed",
       [](Machine& m) { with_open_files(m, "1024", "524288"); }, warning, "1024 524288",
       "ulimit -n 65536"},
      {"open-files", "few", [](Machine& m) { with_open_files(m, "1024", "4096"); }, warning,
       "1024 4096", "/etc/security/limits.d/nofile.conf"},
      {"open-files", "few in a container",
       [](Machine& m) {
         with_open_files(m, "1024", "4096");
         m.files.write("/.dockerenv", "");
       },
       warning, "1024 4096", "docker run --ulimit nofile=65536"},
      {"open-files", "not in the copy", empty, skipped, "/proc/self/limits: not there", ""},
  };
}

Scenarios isolation() {
  const std::string scope = "/proc/sys/kernel/yama/ptrace_scope";
  return {
      {"pid-namespace", "the host's",
       [](Machine& m) { m.files.symlink("/proc/self/ns/pid", "pid:[4026531836]"); }, pass,
       "/proc/self/ns/pid: pid:[4026531836]", ""},
      {"pid-namespace", "its own",
       [](Machine& m) { m.files.symlink("/proc/self/ns/pid", "pid:[4026532801]"); }, warning,
       "/proc/self/ns/pid: pid:[4026532801]", "docker run --pid=host"},
      {"pid-namespace", "its own, by a process's number",
       [](Machine& m) {
         m.files.symlink("/proc/4711/ns/pid", "pid:[4026532801]");
         m.files.symlink("/proc/self", "4711");
       },
       warning, "pid:[4026532801]", "--pid=host"},
      {"pid-namespace", "not in the copy", empty, skipped, "/proc/self/ns/pid: not there", ""},

      {"ptrace-scope", "0", [scope](Machine& m) { m.files.write(scope, "0\n"); }, pass,
       scope + ": 0", ""},
      {"ptrace-scope", "no Yama", [](Machine& m) { m.files.directory("/proc/sys/kernel"); }, pass,
       scope + ": not there", ""},
      {"ptrace-scope", "1", [scope](Machine& m) { m.files.write(scope, "1\n"); }, warning,
       scope + ": 1", "sysctl -w kernel.yama.ptrace_scope=0"},
      {"ptrace-scope", "1, but CAP_SYS_PTRACE",
       [scope](Machine& m) {
         m.files.write(scope, "1\n");
         with_capabilities(m, "0000000000080000");
       },
       pass, "CapEff 80000", ""},
      {"ptrace-scope", "3, which no capability lifts",
       [scope](Machine& m) {
         m.files.write(scope, "3\n");
         with_capabilities(m, "000001ffffffffff");
       },
       warning, scope + ": 3", "reboot"},
      {"ptrace-scope", "not in the copy", empty, skipped, "/proc/sys/kernel: not there", ""},

      {"container-capabilities", "all of them",
       [](Machine& m) {
         m.files.write("/.dockerenv", "");
         with_capabilities(m, "000001ffffffffff");
       },
       pass, "/.dockerenv: there; /proc/self/status: CapEff 000001ffffffffff", ""},
      {"container-capabilities", "a container's default",
       [](Machine& m) {
         m.files.write("/proc/1/cgroup", "12:pids:/docker/0123abcd\n");
         with_capabilities(m, "00000000a80425fb");
       },
       warning, "/proc/1/cgroup: 12:pids:/docker/0123abcd",
       "docker run --cap-add=IPC_LOCK --cap-add=SYS_PTRACE --cap-add=SYS_NICE"},
      {"container-capabilities", "no status",
       [](Machine& m) { m.files.write("/run/.containerenv", ""); }, skipped,
       "/proc/self/status: not there", ""},
      {"container-capabilities", "no container", empty, skipped, "", ""},
  };
}

} // namespace

Scenarios system_scenarios() {
  Scenarios all;
  for (const Scenarios& part : {machine(), isolation()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
