#include "src/doctor/support.h"

#include <algorithm>
#include <filesystem>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/doctor/proc_text.h"

namespace shmemctl::doctor {

namespace {

constexpr std::size_t names_shown = 8;
constexpr std::size_t comm_length = 15; // TASK_COMM_LEN without its terminator
constexpr std::size_t evidence_bytes = 300;

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return c >= '0' && c <= '9'; });
}

} // namespace

CheckResult passed(std::string reason, std::string evidence) {
  return {CheckStatus::pass, std::move(reason), std::move(evidence), ""};
}
CheckResult warned(std::string reason, std::string evidence, std::string fix) {
  return {CheckStatus::warning, std::move(reason), std::move(evidence), std::move(fix)};
}
CheckResult failed(std::string reason, std::string evidence, std::string fix) {
  return {CheckStatus::fail, std::move(reason), std::move(evidence), std::move(fix)};
}
CheckResult skipped(std::string reason, std::string evidence, std::string fix) {
  return {CheckStatus::skipped, std::move(reason), std::move(evidence), std::move(fix)};
}

std::string said(const std::string& path, const std::string& text) {
  return path + ": " + printable(std::string(trim(text)), evidence_bytes);
}

std::string absent(const std::string& path) {
  return path + ": not there";
}

std::string name_list(const std::vector<std::string>& names) {
  if (names.size() <= names_shown)
    return join(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + names_shown);
  return join(first, ", ") + " and " + std::to_string(names.size() - names_shown) + " more";
}

bool has_nvidia_gpu(const Node& node) {
  return std::any_of(node.gpus.begin(), node.gpus.end(),
                     [](const Gpu& gpu) { return gpu.vendor == "nvidia"; });
}

std::optional<std::string> no_nvidia_gpu(const Node& node) {
  if (has_nvidia_gpu(node))
    return std::nullopt;
  return node.gpus.empty() ? "no GPU on this node" : "no NVIDIA GPU on this node";
}

std::string gpu_name(const Node& node, const Gpu& gpu) {
  std::string name = "GPU" + std::to_string(gpu.index);
  if (gpu.pci < 0)
    return name;
  return name + " (" + to_string(node.pci[static_cast<std::size_t>(gpu.pci)].address) + ")";
}

int nvlink_count(const Gpu& gpu) {
  int count = 0;
  for (const GpuLink& link : gpu.links)
    if (link.kind == GpuLinkKind::nvlink)
      count += link.count;
  return count;
}

std::vector<const Nic*> rdma_nics(const Node& node) {
  std::vector<const Nic*> result;
  for (const Nic& nic : node.nics)
    if (nic.rdma.value.value_or(false))
      result.push_back(&nic);
  return result;
}

std::optional<std::string> no_rdma_device(const Node& node) {
  if (!rdma_nics(node).empty())
    return std::nullopt;
  return "no RDMA device on this node";
}

std::optional<std::string> no_gpu_or_rdma(const Node& node) {
  if (std::optional<std::string> reason = no_nvidia_gpu(node))
    return reason;
  return no_rdma_device(node);
}

std::vector<RdmaPort> rdma_ports(const Node& node) {
  std::vector<RdmaPort> result;
  for (const Nic* nic : rdma_nics(node))
    for (const NicPort& port : nic->ports)
      result.push_back({nic, &port});
  return result;
}

std::vector<RdmaPort> active_rdma_ports(const Node& node) {
  std::vector<RdmaPort> result = rdma_ports(node);
  std::erase_if(result,
                [](const RdmaPort& at) { return at.port->state.value != PortState::active; });
  return result;
}

std::vector<PciAddress> gpu_addresses(const Node& node) {
  std::vector<PciAddress> result;
  for (const Gpu& gpu : node.gpus)
    if (gpu.pci >= 0)
      result.push_back(node.pci[static_cast<std::size_t>(gpu.pci)].address);
  return result;
}

std::vector<PciAddress> rdma_addresses(const Node& node) {
  std::vector<PciAddress> result;
  for (const Nic* nic : rdma_nics(node))
    if (nic->pci >= 0)
      result.push_back(node.pci[static_cast<std::size_t>(nic->pci)].address);
  return result;
}

std::string sysfs_path(const PciAddress& address) {
  return "/sys/bus/pci/devices/" + to_string(address);
}

std::optional<std::string> module_evidence(const Sysroot& sysroot, const std::string& module) {
  const std::string folder = "/sys/module/" + module;
  if (sysroot.exists(folder)) {
    const std::optional<std::string> version = sysroot.read_line(folder + "/version");
    return version ? said(folder + "/version", *version) : folder + ": there";
  }
  const std::optional<std::string> modules = sysroot.read("/proc/modules");
  if (!modules)
    return std::nullopt;
  for (const std::string& line : split(*modules, '\n'))
    if (starts_with(line, module + " "))
      return said("/proc/modules", line);
  return std::nullopt;
}

std::optional<KernelVersion> kernel_version(const Sysroot& sysroot) {
  const std::optional<std::string> release = sysroot.read_line(osrelease_path);
  if (!release)
    return std::nullopt;
  const std::vector<int> numbers = version_numbers(*release);
  if (numbers.size() < 2)
    return std::nullopt;
  return KernelVersion{numbers[0], numbers[1], *release};
}

std::optional<std::string> container_evidence(const Sysroot& sysroot,
                                              const Environment& environment) {
  for (const char* path : {"/.dockerenv", "/run/.containerenv", "/.singularity.d"})
    if (sysroot.exists(path))
      return std::string(path) + ": there";
  if (environment.count("KUBERNETES_SERVICE_HOST") != 0)
    return "environment: KUBERNETES_SERVICE_HOST is set";
  const std::string path = "/proc/1/cgroup";
  const std::optional<std::string> groups = sysroot.read(path);
  if (groups)
    for (const std::string& line : split(*groups, '\n'))
      for (const char* word : {"docker", "kubepods", "containerd", "libpod", "/lxc"})
        if (line.find(word) != std::string::npos)
          return said(path, line);
  return std::nullopt;
}

std::optional<std::string> process_evidence(const Sysroot& sysroot, const std::string& name) {
  const std::string comm = name.substr(0, comm_length);
  for (const std::string& entry : sysroot.list("/proc")) {
    if (!is_number(entry))
      continue;
    const std::string path = "/proc/" + entry + "/comm";
    if (sysroot.read_line(path) == comm)
      return said(path, comm);
  }
  return std::nullopt;
}

std::optional<std::string> link_target(const Sysroot& sysroot, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::optional<std::string> folder = sysroot.realpath(path.substr(0, slash));
  if (!folder)
    return std::nullopt;
  std::error_code error;
  const std::filesystem::path target =
      std::filesystem::read_symlink(sysroot.host_path(*folder + path.substr(slash)), error);
  if (error)
    return std::nullopt;
  return target.string();
}

bool has_device_nodes(const Sysroot& sysroot) {
  return sysroot.is_directory("/dev");
}

std::string install_command(const Sysroot& sysroot, const std::string& debian,
                            const std::string& redhat) {
  std::string apt = "apt-get install -y " + debian;
  std::string dnf = "dnf install -y " + redhat;
  const std::optional<std::string> release = sysroot.read("/etc/os-release");
  for (const std::string& line : split(release.value_or(""), '\n')) {
    if (!starts_with(line, "ID=") && !starts_with(line, "ID_LIKE="))
      continue;
    for (const char* word : {"debian", "ubuntu"})
      if (line.find(word) != std::string::npos)
        return apt;
    for (const char* word : {"rhel", "fedora", "centos", "rocky", "almalinux", "amzn"})
      if (line.find(word) != std::string::npos)
        return dnf;
  }
  return apt + "  # on RHEL: " + dnf;
}

std::string install_newer_kernel(const Sysroot& sysroot) {
  return install_command(sysroot, "linux-image-generic || apt-get install -y linux-image-amd64",
                         "kernel");
}

std::optional<unsigned long long> effective_capabilities(const Sysroot& sysroot) {
  const std::optional<std::string> status = sysroot.read(status_path);
  if (!status)
    return std::nullopt;
  const std::optional<std::string> text = field_of(*status, "CapEff:");
  const std::optional<long long> value = text ? parse_integer(*text, 16) : std::nullopt;
  return value ? std::optional<unsigned long long>(*value) : std::nullopt;
}

bool has_capability(unsigned long long capabilities, int bit) {
  return (capabilities >> bit & 1U) != 0;
}

} // namespace shmemctl::doctor
