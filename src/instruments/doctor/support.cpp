// Helpers that the checks share: results, parsers of texts from /proc, work in a child process.
#include "src/instruments/doctor/support.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/text.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl::doctor {

namespace {

constexpr std::size_t names_shown = 8;
constexpr std::size_t comm_length = 15; // TASK_COMM_LEN without its terminator
constexpr std::size_t evidence_bytes = 300;
constexpr const char* record_as_root =
    "record that node again as root: sudo shmemctl gather -o node.tar.zst";
constexpr const char* check_as_root = "sudo shmemctl doctor --only ";

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

std::string fix_from_record(const std::string& fix) {
  return starts_with(fix, check_as_root) ? record_as_root : fix;
}

std::string as_root(const Sysroot& sysroot, const std::string& only) {
  return sysroot.live() ? check_as_root + only : std::string(record_as_root);
}

std::string file_evidence(const std::string& path, const std::string& text) {
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

std::vector<RdmaPort> fabric_rdma_ports(const CheckContext& context) {
  const Node& node = context.node;
  MappingRequest request;
  const Options options(context.environment);
  if (const OptionValue& list = options.value("HCA_LIST"); list.set())
    request.nvshmem.hca_list = list.text;
  const std::vector<NicUse> wanted = wanted_ports(node, request);
  std::vector<RdmaPort> result = active_rdma_ports(node);
  std::erase_if(result, [&](const RdmaPort& at) {
    const NicUse use{static_cast<int>(at.nic - node.nics.data()), at.port->number, {}};
    return std::find(wanted.begin(), wanted.end(), use) == wanted.end();
  });
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
    return version ? file_evidence(folder + "/version", *version) : folder + ": there";
  }
  const std::optional<std::string> modules = sysroot.read("/proc/modules");
  if (!modules)
    return std::nullopt;
  for (const std::string& line : split(*modules, '\n'))
    if (starts_with(line, module + " "))
      return file_evidence("/proc/modules", line);
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
          return file_evidence(path, line);
  return std::nullopt;
}

std::optional<std::string> process_evidence(const Sysroot& sysroot, const std::string& name) {
  const std::string comm = name.substr(0, comm_length);
  for (const std::string& entry : sysroot.list("/proc")) {
    if (!is_number(entry))
      continue;
    const std::string path = "/proc/" + entry + "/comm";
    if (sysroot.read_line(path) == comm)
      return file_evidence(path, comm);
  }
  return std::nullopt;
}

std::optional<std::string> link_target(const Sysroot& sysroot, const std::string& path) {
  return sysroot.read_link(path);
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

namespace {

constexpr std::size_t max_version_parts = 4;

/// "unlimited" gives an empty inner optional; other text that is not a number gives none.
std::optional<std::optional<std::uint64_t>> limit_value(const std::string& word) {
  if (word == "unlimited")
    return std::optional<std::uint64_t>{};
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    return std::nullopt;
  return std::optional<std::uint64_t>{value};
}

} // namespace

std::vector<int> version_numbers(std::string_view text) {
  std::vector<int> numbers;
  while (numbers.size() < max_version_parts) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0)
      break;
    numbers.push_back(value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!starts_with(text, "."))
      break;
    text.remove_prefix(1);
  }
  return numbers;
}

std::optional<std::string> field_of(std::string_view text, std::string_view key) {
  while (!text.empty())
    if (const std::string_view line = take_line(text); starts_with(line, key))
      return std::string(trim(line.substr(key.size())));
  return std::nullopt;
}

std::optional<Limit> find_limit(std::string_view limits, std::string_view name) {
  const std::optional<std::string> row = field_of(limits, name);
  const std::vector<std::string> words = split_blanks(row.value_or(""));
  if (words.size() < 2)
    return std::nullopt;
  const auto soft = limit_value(words[0]);
  const auto hard = limit_value(words[1]);
  if (!soft || !hard)
    return std::nullopt;
  return Limit{*soft, *hard, join(words, " ")};
}

std::optional<Mount> find_mount(std::string_view mounts, std::string_view mount_point) {
  std::optional<Mount> found;
  each_line(mounts, [&](std::string_view line) {
    const std::vector<std::string> words = split_blanks(line);
    if (words.size() >= 4 && words[1] == mount_point)
      found = Mount{words[2], words[3]};
  });
  return found;
}

std::optional<std::uint64_t> mount_size_bytes(std::string_view options) {
  for (const std::string& option : split(options, ',')) {
    if (!starts_with(option, "size="))
      continue;
    std::uint64_t value = 0;
    const char* const from = option.data() + 5;
    const char* const to = option.data() + option.size();
    const auto [end, error] = std::from_chars(from, to, value);
    if (error != std::errc())
      return std::nullopt;
    const std::string unit = lower(std::string_view(end, static_cast<std::size_t>(to - end)));
    const int shift = unit.empty()  ? 0
                      : unit == "k" ? 10
                      : unit == "m" ? 20
                      : unit == "g" ? 30
                                    : -1;
    if (shift < 0 || value > std::numeric_limits<std::uint64_t>::max() >> shift)
      return std::nullopt;
    return value << shift;
  }
  return std::nullopt;
}

std::optional<NvidiaVersion> parse_nvidia_version(std::string_view text) {
  const std::optional<std::string> line = field_of(text, "NVRM version:");
  if (!line)
    return std::nullopt;
  for (const std::string& word : split_blanks(*line)) {
    const std::vector<int> numbers = version_numbers(word);
    if (numbers.size() >= 2)
      return NvidiaVersion{word, line->find("Open Kernel Module") != std::string::npos};
  }
  return std::nullopt;
}

std::optional<long long> registry_dword(std::string_view params, std::string_view key) {
  std::optional<std::string> list = field_of(params, "RegistryDwords:");
  if (!list)
    return std::nullopt;
  std::erase(*list, '"');
  std::optional<long long> value;
  for (const std::string& entry : split(*list, ';')) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || lower(trim(entry.substr(0, equals))) != lower(key))
      continue;
    const std::string word(trim(std::string_view(entry).substr(equals + 1)));
    value = parse_integer(word, starts_with(lower(word), "0x") ? 16 : 10);
  }
  return value;
}

std::optional<std::string> selected_word(std::string_view text) {
  const std::size_t from = text.find('[');
  const std::size_t to = text.find(']', from == std::string_view::npos ? 0 : from);
  if (from == std::string_view::npos || to == std::string_view::npos)
    return std::nullopt;
  return std::string(text.substr(from + 1, to - from - 1));
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_output_bytes = 1 << 20;

[[noreturn]] void run_in_child(const std::function<std::string()>& answer, int descriptor) {
  std::string text;
  try {
    text = answer();
  } catch (const std::exception&) {
    ::_exit(1);
  }
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count <= 0)
      break;
    done += static_cast<std::size_t>(count);
  }
  ::_exit(0); // not exit(): the child must not run the parent's destructors or flush its buffers
}

enum class Ending { in_time, late, too_long };

/// Everything the child writes until it closes the pipe, at most max_output_bytes.
Ending read_output(int descriptor, Clock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0)
      return Ending::late;
    pollfd entry{descriptor, POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0)
      continue;
    char buffer[4096];
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return Ending::in_time;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > max_output_bytes) {
      text.resize(max_output_bytes);
      return Ending::too_long;
    }
  }
}

/// Waits for the end of the child. A child stuck in the kernel does not end, even if it is killed.
Ending reap(pid_t child, Clock::time_point deadline, int& status) {
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR))
      return Ending::in_time;
    if (Clock::now() >= deadline)
      return Ending::late;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace

ChildOutput call_in_child(const std::function<std::string()>& answer, const std::string& call,
                          std::chrono::milliseconds deadline) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return {"", std::string("pipe2: ") + std::strerror(errno)};
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0)
    return {"", std::string("fork: ") + std::strerror(errno)};
  if (child == 0)
    run_in_child(answer, write_end.get());
  write_end.reset();
  ChildOutput result;
  const Clock::time_point until = Clock::now() + deadline;
  int status = 0;
  Ending ending = read_output(read_end.get(), until, result.text);
  if (ending == Ending::in_time) // it has closed the pipe, but may not have ended
    ending = reap(child, until, status);
  if (ending != Ending::in_time) {
    ::kill(child, SIGKILL);
    reap(child, Clock::now(), status);
  }
  if (ending == Ending::too_long)
    result.problem = call + " returned more than 1 MiB";
  else if (ending == Ending::late)
    result.problem = call + " did not return within " + std::to_string(deadline.count()) + " ms";
  else if (WIFSIGNALED(status))
    result.problem = call + " died of signal " + std::to_string(WTERMSIG(status));
  else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    result.problem = call + " failed";
  return result;
}

} // namespace shmemctl::doctor
