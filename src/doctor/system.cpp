// The kernel and the CPUs.
#include <fmt/format.h>
#include <map>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/proc_text.h"
#include "src/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr std::array<int, 2> good_kernel = {5, 12};  // RDMA takes dma-buf
constexpr std::array<int, 2> least_kernel = {4, 18}; // RHEL 8
constexpr std::uint64_t least_open_files = 16384;
constexpr const char* limits_path = "/proc/self/limits";
constexpr const char* clocksource_folder = "/sys/devices/system/clocksource/clocksource0";

/// Clocks that are read without a system call.
bool is_fast_clock(const std::string& name) {
  for (const char* fast : {"tsc", "tsc-early", "kvm-clock", "hyperv_clocksource_tsc_page",
                           "arch_sys_counter", "timebase", "riscv_clocksource"})
    if (name == fast)
      return true;
  return false;
}

/// The governors' files, one per CPU or one per group of CPUs.
std::vector<std::string> governor_files(const Sysroot& sysroot) {
  std::vector<std::string> files;
  for (const std::string& name : sysroot.list("/sys/devices/system/cpu/cpufreq"))
    if (starts_with(name, "policy"))
      files.push_back("/sys/devices/system/cpu/cpufreq/" + name + "/scaling_governor");
  if (!files.empty())
    return files;
  for (const std::string& name : sysroot.list("/sys/devices/system/cpu"))
    if (starts_with(name, "cpu") && parse_integer(name.substr(3)))
      files.push_back("/sys/devices/system/cpu/" + name + "/cpufreq/scaling_governor");
  return files;
}

} // namespace

CheckResult kernel(const CheckContext& context) {
  const auto version = kernel_version(context.sysroot);
  if (!version)
    return skipped("the kernel's version is not told", absent(osrelease_path));
  const std::string evidence = said(osrelease_path, version->release);
  const std::string fix = install_newer_kernel(context.sysroot);
  if (version->number() < least_kernel)
    return failed("Linux " + version->release + " is older than 4.18", evidence, fix);
  if (version->number() < good_kernel)
    return warned("Linux " + version->release +
                      " is older than 5.12: no GPU memory over RDMA through dma-buf",
                  evidence, fix);
  return passed("Linux " + version->release, evidence);
}

CheckResult cpu_governor(const CheckContext& context) {
  std::map<std::string, std::vector<std::string>> files_by_governor;
  for (const std::string& path : governor_files(context.sysroot))
    if (const auto governor = context.sysroot.read_line(path))
      files_by_governor[*governor].push_back(path);
  if (files_by_governor.empty())
    return skipped("the CPUs' clock is not governed here (a virtual machine, or set by firmware)",
                   absent("/sys/devices/system/cpu/cpufreq"));
  const auto performance = files_by_governor.extract("performance");
  if (files_by_governor.empty())
    return passed("all CPUs have the governor performance",
                  said(performance.mapped().front(), "performance"));
  std::vector<std::string> others;
  others.reserve(files_by_governor.size());
  for (const auto& [governor, files] : files_by_governor)
    others.push_back(fmt::format("{} on {}", printable(governor, 40), files.size()));
  return warned("CPUs are not governed by performance: " + name_list(others),
                said(files_by_governor.begin()->second.front(), files_by_governor.begin()->first),
                "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
}

CheckResult clocksource(const CheckContext& context) {
  const std::string path = std::string(clocksource_folder) + "/current_clocksource";
  const auto name = context.sysroot.read_line(path);
  if (!name)
    return skipped("the clock source is not told", absent(path));
  if (is_fast_clock(*name))
    return passed("the clock is read without a system call", said(path, *name));
  const std::string available_path = std::string(clocksource_folder) + "/available_clocksource";
  const auto available = context.sysroot.read_line(available_path);
  for (const std::string& candidate : split_blanks(available.value_or("")))
    if (is_fast_clock(candidate))
      return warned("the clock " + printable(*name, 40) + " is slow to read: timings are coarse",
                    said(path, *name) + "; " + said(available_path, *available),
                    fmt::format("echo {} > {}", candidate, path));
  return warned("the clock " + printable(*name, 40) +
                    " is slow to read, and the kernel has rejected the CPU's own",
                said(path, *name), "dmesg | grep -i -E 'tsc|clocksource'");
}

CheckResult open_files(const CheckContext& context) {
  const auto text = context.sysroot.read(limits_path);
  const auto limit = text ? find_limit(*text, "Max open files") : std::nullopt;
  if (!limit)
    return skipped("the limit of open files is not told", absent(limits_path));
  const std::string evidence = said(limits_path, "Max open files " + limit->text);
  if (!limit->soft || *limit->soft >= least_open_files)
    return passed("enough files may be open", evidence);
  const bool may_raise = !limit->hard || *limit->hard >= least_open_files;
  const std::string fix = may_raise ? "ulimit -n 65536 || ulimit -n $(ulimit -Hn)"
                          : container_evidence(context.sysroot, context.environment)
                              ? "docker run --ulimit nofile=65536"
                              : "printf '* soft nofile 65536\\n* hard nofile 65536\\n' > "
                                "/etc/security/limits.d/nofile.conf  # log in anew";
  return warned(
      fmt::format("only {} files may be open: a large job needs a few per peer", *limit->soft),
      evidence, fix);
}

} // namespace shmemctl::doctor
