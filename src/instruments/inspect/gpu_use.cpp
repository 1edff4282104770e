#include "src/instruments/inspect/gpu_use.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <utility>

#include "src/base/text.h"

namespace shmemctl::inspect {

namespace {

constexpr int max_gpus = 4096;

template <class T>
std::optional<T> number_from(const std::string& text, long long most) {
  const auto value = parse_integer(text);
  return value && *value >= 0 && *value <= most ? std::optional<T>(static_cast<T>(*value))
                                                : std::nullopt;
}

/// The word behind `name`, or "".
std::string word_after(const std::vector<std::string>& words, std::string_view name) {
  const auto found = std::find(words.begin(), words.end(), name);
  return found == words.end() || found + 1 == words.end() ? std::string() : *(found + 1);
}

/// PCI address of the GPU of /dev/nvidiaMINOR.
std::optional<PciAddress> address_of_minor(const Sysroot& sysroot, int minor) {
  const std::string folder = "/proc/driver/nvidia/gpus";
  for (const std::string& name : sysroot.list(folder)) {
    const std::string text = sysroot.read(folder + "/" + name + "/information").value_or("");
    for (const std::string& line : split(text, '\n')) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos || trim(line.substr(0, colon)) != "Device Minor")
        continue;
      if (parse_integer(trim(std::string_view(line).substr(colon + 1))) == minor)
        return parse_pci_address(name);
    }
  }
  return std::nullopt;
}

/// PCI addresses of NVIDIA's GPUs in order; the positions are NVML's indices.
std::vector<PciAddress> addresses_of_driver(const Sysroot& sysroot) {
  std::vector<PciAddress> addresses;
  for (const std::string& name : sysroot.list("/proc/driver/nvidia/gpus"))
    if (const auto address = parse_pci_address(name))
      addresses.push_back(*address);
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

const std::string* variable_of(const Process& process, const char* name) {
  if (!process.environment)
    return nullptr;
  const auto found = process.environment->find(name);
  return found == process.environment->end() ? nullptr : &found->second;
}

/// The GPU by the device files that a process has open, for a process that NVML does not list. CUDA
/// opens the files of all GPUs that it may use, so they identify the GPU only if there is one.
std::vector<GpuUse> gpus_of_descriptors(const Sysroot& sysroot, const Process& process) {
  constexpr std::string_view prefix = "/dev/nvidia";
  std::optional<int> minor;
  for (const OpenFile& file : process.devices) {
    if (!starts_with(file.target, prefix))
      continue;
    const auto number = number_from<int>(file.target.substr(prefix.size()), max_gpus);
    if (!number || minor == number)
      continue;
    if (minor)
      return {};
    minor = number;
  }
  const auto address = minor ? address_of_minor(sysroot, *minor) : std::nullopt;
  if (!address)
    return {};
  const std::vector<PciAddress> all = addresses_of_driver(sysroot);
  DrivenGpu gpu;
  gpu.address = *address;
  gpu.index = static_cast<int>(std::find(all.begin(), all.end(), *address) - all.begin());
  GpuUse use;
  use.index = gpu.index;
  use.address = gpu.address;
  use.visible_index = visible_index(variable_of(process, "CUDA_VISIBLE_DEVICES"), gpu);
  use.source = std::string(prefix) + std::to_string(*minor);
  return {use};
}

} // namespace

GpuProcesses read_gpu_processes(const Nvml& nvml) {
  GpuProcesses found;
  const Fact<int> count = nvml.device_count();
  if (!count) {
    found.skipped.push_back({"processes of GPUs", count.origin});
    return found;
  }
  found.known = true;
  for (int index = 0; index < *count; ++index) {
    const NvmlGpu facts = nvml.gpu_identity(index);
    const auto processes = nvml.processes(index);
    if (!facts.address || !processes) {
      found.skipped.push_back({"processes of GPU " + std::to_string(index),
                               facts.address ? processes.origin : facts.address.origin});
      found.known = found.known && facts.address.known();
      continue;
    }
    DrivenGpu gpu;
    gpu.index = index;
    gpu.address = *facts.address;
    gpu.uuid = facts.uuid.value.value_or("");
    for (const NvmlProcess& process : *processes)
      gpu.processes.push_back({process.pid, process.used_bytes.value, process.busy_percent.value});
    found.gpus.push_back(std::move(gpu));
  }
  return found;
}

GpuProcesses parse_gpu_processes(std::string_view text) {
  GpuProcesses found;
  found.known = true;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = split_blanks(line);
    if (words.size() < 4 || words[0] != "gpu")
      continue;
    const auto index = number_from<int>(words[1], max_gpus);
    if (!index)
      continue;
    const auto known = std::find_if(found.gpus.begin(), found.gpus.end(),
                                    [&](const DrivenGpu& gpu) { return gpu.index == *index; });
    if (const auto address = parse_pci_address(word_after(words, "pci"))) {
      if (known != found.gpus.end())
        continue;
      DrivenGpu gpu;
      gpu.index = *index;
      gpu.address = *address;
      gpu.uuid = word_after(words, "uuid");
      found.gpus.push_back(std::move(gpu));
      continue;
    }
    const auto pid = number_from<int>(word_after(words, "pid"), 1 << 30);
    if (!pid || *pid == 0 || known == found.gpus.end())
      continue;
    GpuProcess process;
    process.pid = *pid;
    process.used_bytes = number_from<std::uint64_t>(word_after(words, "used-bytes"), 1LL << 60);
    process.busy_percent = number_from<unsigned>(word_after(words, "busy-percent"), 100);
    known->processes.push_back(process);
  }
  std::sort(found.gpus.begin(), found.gpus.end(),
            [](const DrivenGpu& left, const DrivenGpu& right) { return left.index < right.index; });
  return found;
}

std::string gpu_processes_text(const GpuProcesses& gpus) {
  std::string text;
  for (const DrivenGpu& gpu : gpus.gpus) {
    text += fmt::format("gpu {} pci {}{}\n", gpu.index, to_string(gpu.address),
                        gpu.uuid.empty() ? "" : " uuid " + gpu.uuid);
    for (const GpuProcess& process : gpu.processes) {
      text += fmt::format("gpu {} pid {}", gpu.index, process.pid);
      if (process.used_bytes)
        text += fmt::format(" used-bytes {}", *process.used_bytes);
      if (process.busy_percent)
        text += fmt::format(" busy-percent {}", *process.busy_percent);
      text += '\n';
    }
  }
  return text;
}

std::optional<int> visible_index(const std::string* visible, const DrivenGpu& gpu) {
  if (visible == nullptr)
    return gpu.index;
  int place = 0;
  for (const std::string& part : split(*visible, ',')) {
    const std::string word(trim(part));
    if (starts_with(word, "MIG-"))
      return std::nullopt;
    if (starts_with(word, "GPU-")) { // a unique prefix of a UUID is enough
      if (!gpu.uuid.empty() && starts_with(gpu.uuid, word))
        return place;
    } else {
      const auto number = number_from<int>(word, max_gpus);
      if (!number) // CUDA ignores the rest of the list
        return std::nullopt;
      if (*number == gpu.index)
        return place;
    }
    ++place;
  }
  return std::nullopt;
}

std::vector<GpuUse> gpus_of(const Sysroot& sysroot, const Process& process,
                            const GpuProcesses& gpus) {
  std::vector<GpuUse> uses;
  for (const DrivenGpu& gpu : gpus.gpus)
    for (const GpuProcess& user : gpu.processes)
      if (user.pid == process.pid) {
        GpuUse use;
        use.index = gpu.index;
        use.address = gpu.address;
        use.visible_index = visible_index(variable_of(process, "CUDA_VISIBLE_DEVICES"), gpu);
        use.used_bytes = user.used_bytes;
        use.busy_percent = user.busy_percent;
        use.source = "NVML";
        uses.push_back(std::move(use));
      }
  std::stable_sort(uses.begin(), uses.end(), [](const GpuUse& left, const GpuUse& right) {
    return left.used_bytes.value_or(0) > right.used_bytes.value_or(0);
  });
  // The driver may report other PIDs for processes in containers.
  return uses.empty() ? gpus_of_descriptors(sysroot, process) : uses;
}

const Nvml* GpuDriver::open(const Sysroot& sysroot) {
  // If the driver is not loaded, starting NVML may try to load it.
  if (!tried_ && sysroot.live() && sysroot.exists("/proc/driver/nvidia/version")) {
    tried_ = true;
    nvml_ = Nvml::open(library_, why_);
  }
  return nvml_ ? &*nvml_ : nullptr;
}

GpuProcesses GpuDriver::processes(const Sysroot& sysroot) {
  if (!sysroot.live()) {
    constexpr std::size_t max_bytes = 16U << 20;
    const auto text = sysroot.read(gpu_record_path, max_bytes);
    return text ? parse_gpu_processes(*text) : GpuProcesses{};
  }
  if (const Nvml* nvml = open(sysroot))
    return read_gpu_processes(*nvml);
  GpuProcesses none;
  if (tried_)
    none.skipped.push_back({"processes of GPUs (NVML)", why_});
  return none;
}

std::map<int, NvlinkCounters> GpuDriver::nvlinks(const Sysroot& sysroot, const GpuProcesses& gpus) {
  std::map<int, NvlinkCounters> counters;
  const Nvml* nvml = open(sysroot);
  for (const DrivenGpu& gpu : gpus.gpus)
    if (nvml != nullptr)
      counters.emplace(gpu.index, nvml->nvlink_counters(to_string(gpu.address)));
  return counters;
}

std::vector<NvlinkLoad> nvlink_loads(const std::map<int, NvlinkCounters>& before,
                                     const std::map<int, NvlinkCounters>& after) {
  std::vector<NvlinkLoad> loads;
  for (const auto& gpu : after) {
    const auto then = before.find(gpu.first);
    if (then == before.end() || (then->second.links.empty() && gpu.second.links.empty()))
      continue;
    const NvlinkTraffic traffic = nvlink_traffic(then->second, gpu.second);
    NvlinkLoad load;
    load.gpu = gpu.first;
    load.sent_bytes = traffic.out_bytes.value;
    load.received_bytes = traffic.in_bytes.value;
    if (!traffic.out_bytes || !traffic.in_bytes)
      load.reason = traffic.out_bytes ? traffic.in_bytes.origin : traffic.out_bytes.origin;
    loads.push_back(std::move(load));
  }
  return loads;
}

} // namespace shmemctl::inspect
