// Limits and settings of host memory.
#include <algorithm>
#include <fmt/format.h>
#include <sys/statvfs.h>

#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/settings.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr const char* limits_path = "/proc/self/limits";
constexpr const char* shm_path = "/dev/shm";
constexpr const char* transparent_path = "/sys/kernel/mm/transparent_hugepage/enabled";
constexpr std::uint64_t min_shm_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t min_free_shm_bytes = std::uint64_t{256} << 20;

struct ShmSize {
  std::uint64_t total_bytes = 0;
  std::optional<std::uint64_t> free_bytes;
  std::string evidence;
};

std::optional<ShmSize> live_shm_size() {
  struct statvfs status {};
  if (::statvfs(shm_path, &status) != 0)
    return std::nullopt;
  const std::uint64_t total = std::uint64_t{status.f_blocks} * status.f_frsize;
  const std::uint64_t free = std::uint64_t{status.f_bavail} * status.f_frsize;
  return ShmSize{total, free,
                 fmt::format("statvfs(\"{}\"): {} bytes, {} free", shm_path, total, free)};
}

/// The size of /dev/shm in a copied tree. A tmpfs without a size option is limited to half of the
/// memory.
std::optional<ShmSize> copied_shm_size(const Sysroot& sysroot, const Mount& mount) {
  const std::string evidence =
      file_evidence("/proc/mounts", std::string(shm_path) + " " + mount.options);
  if (const auto size = mount_size_bytes(mount.options))
    return ShmSize{*size, std::nullopt, evidence};
  if (mount.options.find("size=") != std::string::npos)
    return std::nullopt;
  const std::optional<std::uint64_t> total_bytes = memory_bytes(sysroot);
  if (!total_bytes)
    return std::nullopt;
  return ShmSize{
      *total_bytes / 2, std::nullopt,
      evidence + "; " +
          file_evidence("/proc/meminfo", fmt::format("MemTotal {} kB", *total_bytes / 1024))};
}

std::string megabytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

} // namespace

std::optional<std::uint64_t> memory_bytes(const Sysroot& sysroot) {
  const auto meminfo = sysroot.read("/proc/meminfo");
  const auto total = meminfo ? field_of(*meminfo, "MemTotal:") : std::nullopt;
  const auto words = split_blanks(total.value_or(""));
  const auto total_kB = words.empty() ? std::nullopt : parse_integer(words.front());
  if (!total_kB || *total_kB <= 0 || *total_kB > (1LL << 50))
    return std::nullopt;
  return static_cast<std::uint64_t>(*total_kB) * 1024;
}

std::optional<std::uint64_t> shm_bytes(const Sysroot& sysroot) {
  const auto mounts = sysroot.read("/proc/mounts");
  const std::optional<Mount> mount = find_mount(mounts.value_or(""), shm_path);
  if (!mount)
    return std::nullopt;
  const auto size = sysroot.live() ? live_shm_size() : copied_shm_size(sysroot, *mount);
  return size ? std::optional(size->total_bytes) : std::nullopt;
}

std::map<std::string, long long> huge_page_pools(const Sysroot& sysroot) {
  std::map<std::string, long long> pools;
  for (const std::string& pool : sysroot.list("/sys/kernel/mm/hugepages"))
    if (const auto count =
            sysroot.read_integer("/sys/kernel/mm/hugepages/" + pool + "/nr_hugepages"))
      pools[pool] = *count;
  return pools;
}

std::optional<std::string> transparent_huge_pages(const Sysroot& sysroot) {
  return selected_word(sysroot.read_line(transparent_path).value_or(""));
}

CheckResult memlock(const CheckContext& context) {
  const Sysroot& sysroot = context.sysroot;
  const auto text = sysroot.read(limits_path);
  const auto limit = text ? find_limit(*text, "Max locked memory") : std::nullopt;
  if (!limit)
    return skipped("the locked-memory limit is unknown", absent(limits_path));
  const std::string evidence = file_evidence(limits_path, "Max locked memory " + limit->text);
  // The launcher of a job may set another limit than a login shell does.
  const std::string owner =
      sysroot.live() ? "shmemctl's own process" : "the process that recorded this node";
  const std::string of_ranks = "; shmemctl inspect --verbose shows the limits of ranks";
  if (!limit->soft)
    return passed("locked memory of " + owner + " is unlimited" + of_ranks, evidence);
  const std::string amount = format_size_bytes(*limit->soft);
  const auto capabilities = effective_capabilities(sysroot);
  if (capabilities && has_capability(*capabilities, cap_ipc_lock))
    return passed("CAP_IPC_LOCK lifts the locked-memory limit of " + owner + of_ranks,
                  evidence + "; " +
                      file_evidence(status_path, fmt::format("CapEff {:x}", *capabilities)));
  const std::string reason = "locked memory of " + owner + " is limited to " + amount;
  if (no_rdma_device(context.node))
    return skipped(reason + ", which affects RDMA only, and there is no RDMA device", evidence);
  const std::string fix =
      container_evidence(sysroot, context.environment)
          ? "docker run --ulimit memlock=-1"
          : "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' > "
            "/etc/security/limits.d/rdma.conf  # then log in again; Slurm: LimitMEMLOCK=infinity";
  return failed(reason + ": registering more memory than that for RDMA fails", evidence, fix);
}

CheckResult dev_shm(const CheckContext& context) {
  const Sysroot& sysroot = context.sysroot;
  const bool container = container_evidence(sysroot, context.environment).has_value();
  const std::string fix =
      container ? "docker run --shm-size=16g" : "mount -o remount,size=50% /dev/shm";
  const auto mounts = sysroot.read("/proc/mounts");
  if (!mounts)
    return skipped("the mounts are unknown", absent("/proc/mounts"));
  const std::optional<Mount> mount = find_mount(*mounts, shm_path);
  if (!mount)
    return failed("/dev/shm is not mounted: processes cannot share a heap",
                  "/proc/mounts: no /dev/shm",
                  container ? fix : "mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm");
  const auto size = sysroot.live() ? live_shm_size() : copied_shm_size(sysroot, *mount);
  if (!size)
    return skipped("the size of /dev/shm is unknown",
                   file_evidence("/proc/mounts", std::string(shm_path) + " " + mount->options));
  if (size->total_bytes < min_shm_bytes)
    return warned("the size of /dev/shm is only " + megabytes(size->total_bytes) +
                      ": too small for a symmetric heap",
                  size->evidence, fix);
  if (size->free_bytes && *size->free_bytes < min_free_shm_bytes)
    return warned("/dev/shm is nearly full: " + megabytes(*size->free_bytes) + " are free",
                  size->evidence, "ls -lS /dev/shm | head  # remove what dead jobs left behind");
  return passed("the size of /dev/shm is " + megabytes(size->total_bytes), size->evidence);
}

CheckResult hugepages(const CheckContext& context) {
  const Sysroot& sysroot = context.sysroot;
  const auto transparent = sysroot.read_line(transparent_path);
  long long reserved = 0;
  std::vector<std::string> pools;
  for (const auto& [pool, count] : huge_page_pools(sysroot)) {
    reserved = std::max(reserved, count);
    pools.push_back(pool + " " + std::to_string(count));
  }
  const auto mode = transparent_huge_pages(sysroot);
  if (!mode && pools.empty())
    return skipped("the kernel does not report huge pages", absent(transparent_path));
  std::string evidence =
      mode ? file_evidence(transparent_path, *transparent) : absent(transparent_path);
  if (!pools.empty())
    evidence += "; /sys/kernel/mm/hugepages/*/nr_hugepages: " + name_list(pools);
  if (mode && *mode != "never")
    return passed("transparent huge pages: " + *mode, evidence);
  if (reserved > 0)
    return passed("huge pages are reserved", evidence);
  return warned("no huge pages: registering large buffers takes longer and uses more of the NIC's "
                "translation cache",
                evidence, std::string("echo madvise > ") + transparent_path);
}

CheckResult numa_balancing(const CheckContext& context) {
  const std::string path = "/proc/sys/kernel/numa_balancing";
  const auto value = context.sysroot.read_line(path);
  if (!value)
    return skipped("this kernel has no automatic NUMA balancing", absent(path));
  const std::string evidence = file_evidence(path, *value);
  if (*value == "0")
    return passed("automatic NUMA balancing is off", evidence);
  if (context.node.numa_nodes.size() == 1)
    return passed("automatic NUMA balancing has nothing to do: one NUMA node", evidence);
  return warned(
      "automatic NUMA balancing unmaps pages to sample accesses, which causes latency spikes",
      evidence, "sysctl -w kernel.numa_balancing=0");
}

} // namespace shmemctl::doctor
