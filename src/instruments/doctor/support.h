// Helpers that the checks share: results, parsers of texts from /proc, work in a child process.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/instruments/doctor/doctor.h"

namespace shmemctl::doctor {

CheckResult passed(std::string reason, std::string evidence);
CheckResult warned(std::string reason, std::string evidence, std::string fix);
CheckResult failed(std::string reason, std::string evidence, std::string fix);
CheckResult skipped(std::string reason, std::string evidence = "", std::string fix = "");

/// The fix for a check that needs files which only root may read. On the live machine: run the
/// check again as root. For a copied tree: record the machine again as root.
/// @param only the argument of --only
std::string as_root(const Sysroot& sysroot, const std::string& only);

/// Adapts the fix of a check that ran on the machine itself for a user who reads the record of it
/// on another machine: the same text, except that a fix of as_root() becomes the request for a new
/// record.
std::string fix_from_record(const std::string& fix);

/// "PATH: CONTENT" in one printable line.
std::string file_evidence(const std::string& path, const std::string& text);
/// "path: not there".
std::string absent(const std::string& path);
/// At most eight names, then the number of the remaining ones: "a, b and 3 more".
std::string name_list(const std::vector<std::string>& names);

bool has_nvidia_gpu(const Node& node);
/// Why a check that needs an NVIDIA GPU does not apply; empty if there is a GPU.
std::optional<std::string> no_nvidia_gpu(const Node& node);
/// "GPU3 (0000:5d:00.0)".
std::string gpu_name(const Node& node, const Gpu& gpu);
/// Number of active NVLinks of one GPU.
int nvlink_count(const Gpu& gpu);
std::vector<const Nic*> rdma_nics(const Node& node);
/// Why a check that needs an RDMA device does not apply; empty if there is one.
std::optional<std::string> no_rdma_device(const Node& node);
/// Why a check that needs an NVIDIA GPU and an RDMA device is skipped; empty if there are both.
std::optional<std::string> no_gpu_or_rdma(const Node& node);

/// One port of an RDMA device.
struct RdmaPort {
  const Nic* nic = nullptr;
  const NicPort* port = nullptr;
  std::string name() const { return nic->name + ":" + std::to_string(port->number); }
};
std::vector<RdmaPort> rdma_ports(const Node& node);
/// RDMA ports whose state is known to be active.
std::vector<RdmaPort> active_rdma_ports(const Node& node);
/// The active RDMA ports in the compute fabric, without those that NVSHMEM_HCA_LIST excludes,
/// selected by the same rule as in topo, sim and hotspots (wanted_ports()). These ports must be
/// alike and able to reach other hosts.
std::vector<RdmaPort> fabric_rdma_ports(const CheckContext& context);

/// PCI addresses of the GPUs or of the RDMA devices.
std::vector<PciAddress> gpu_addresses(const Node& node);
std::vector<PciAddress> rdma_addresses(const Node& node);
std::string sysfs_path(const PciAddress& address);

/// Evidence that a kernel module is loaded or built in: a file, with the module's version or line
/// if known; empty if it is neither.
std::optional<std::string> module_evidence(const Sysroot& sysroot, const std::string& module);

/// Release of the running kernel as "major.minor": /proc/sys/kernel/osrelease.
struct KernelVersion {
  int major = 0;
  int minor = 0;
  std::string release;
  auto number() const { return std::array<int, 2>{major, minor}; }
};
inline constexpr const char* osrelease_path = "/proc/sys/kernel/osrelease";
std::optional<KernelVersion> kernel_version(const Sysroot& sysroot);

/// Evidence that this process runs in a container; empty if there is none.
std::optional<std::string> container_evidence(const Sysroot& sysroot,
                                              const Environment& environment);

/// The file /proc/<pid>/comm of a process with this name, and its content; empty if there is no
/// such process. The kernel keeps only 15 characters of the name.
std::optional<std::string> process_evidence(const Sysroot& sysroot, const std::string& name);

/// The target of a symbolic link, unresolved: "pid:[4026531836]" for /proc/self/ns/pid.
std::optional<std::string> link_target(const Sysroot& sysroot, const std::string& path);

/// Whether the tree contains device nodes; a copy of /sys and /proc does not.
bool has_device_nodes(const Sysroot& sysroot);

/// The command that installs a package on this machine: apt-get or dnf, chosen by /etc/os-release;
/// both if the distribution is unknown.
std::string install_command(const Sysroot& sysroot, const std::string& debian,
                            const std::string& redhat);

/// The command that installs the distribution's current kernel.
std::string install_newer_kernel(const Sysroot& sysroot);

/// Bits of CapEff in /proc/self/status (linux/capability.h).
inline constexpr int cap_ipc_lock = 14, cap_sys_ptrace = 19, cap_sys_nice = 23;
inline constexpr const char* status_path = "/proc/self/status";
std::optional<unsigned long long> effective_capabilities(const Sysroot& sysroot);
bool has_capability(unsigned long long capabilities, int bit);

/// The numbers of a dotted version at the start of `text`: "6.8.0-45-generic" -> 6, 8, 0. At most
/// four numbers; empty if `text` does not start with a number.
std::vector<int> version_numbers(std::string_view text);

/// The trimmed rest of the first line that starts with `key`: field_of(status, "CapEff:").
std::optional<std::string> field_of(std::string_view text, std::string_view key);

/// One row of /proc/<pid>/limits. An empty number means "unlimited".
struct Limit {
  std::optional<std::uint64_t> soft, hard;
  std::string text; ///< "8388608 8388608 bytes"
};
/// The row of /proc/<pid>/limits with this name ("Max locked memory"). Empty if the row is missing
/// or malformed.
std::optional<Limit> find_limit(std::string_view limits, std::string_view name);

/// The last row of a mount point in /proc/mounts, which is the one in effect.
struct Mount {
  std::string type;
  std::string options;
};
std::optional<Mount> find_mount(std::string_view mounts, std::string_view mount_point);
/// The value of the option "size=65536k" in bytes; empty for a percentage.
std::optional<std::uint64_t> mount_size_bytes(std::string_view options);

/// The version of the NVIDIA kernel module, from /proc/driver/nvidia/version.
struct NvidiaVersion {
  std::string version; ///< "550.54.15"
  bool open_modules = false;
};
std::optional<NvidiaVersion> parse_nvidia_version(std::string_view text);

/// The value of a registry key of the NVIDIA driver, from RegistryDwords in
/// /proc/driver/nvidia/params, a list "Name=value;Name=value". If a key is repeated, the last value
/// counts.
std::optional<long long> registry_dword(std::string_view params, std::string_view key);

/// The word in brackets: "always [madvise] never" -> "madvise".
std::optional<std::string> selected_word(std::string_view text);

struct ChildOutput {
  std::string text;    ///< the child's output, at most 1 MiB
  std::string problem; ///< why the output is missing or incomplete; "" if it is complete
};

/// Forks, runs `answer` in the child and returns its output. A child that does not end by the
/// deadline, or whose output is too long, is killed. A child that a signal kills is reported as a
/// problem that names `call`. Never throws.
ChildOutput call_in_child(const std::function<std::string()>& answer, const std::string& call,
                          std::chrono::milliseconds deadline);

} // namespace shmemctl::doctor
