// What NVML knows of this machine's GPUs: attributes, links, NVLink counters.
#include "src/model/topo/readers/nvml.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "src/base/error.h"
#include "src/base/process.h"
#include "src/model/topo/cpus.h"

namespace shmemctl {

namespace {

using nvml_abi::Device;
constexpr const char* origin = "NVML: ";

/// A string that NVML wrote into our buffer, perhaps without a terminating zero.
template <std::size_t Size>
std::string text_of(const char (&buffer)[Size]) {
  return printable(std::string(buffer, ::strnlen(buffer, Size)));
}

/// Bits in words of unsigned long, as NVML fills them for CPUs and NUMA nodes.
template <std::size_t Size>
CpuSet set_of(const unsigned long (&words)[Size]) {
  constexpr int word_bits = static_cast<int>(sizeof(unsigned long) * CHAR_BIT);
  CpuSet bits;
  for (int bit = 0; bit < static_cast<int>(Size) * word_bits; ++bit)
    if ((words[bit / word_bits] >> (bit % word_bits) & 1UL) != 0)
      bits.add(bit);
  return bits;
}

constexpr unsigned affinity_words = 128; // 8192 CPUs

} // namespace

Nvml::Session::~Session() {
  if (initialised)
    call("nvmlShutdown");
}

NvmlOutcome Nvml::Session::outcome(const char* function, int code) const {
  if (code == nvml_abi::success)
    return {};
  auto* words = library.function<const char*(int)>("nvmlErrorString");
  const char* text = words != nullptr ? words(code) : nullptr;
  const std::string message =
      text != nullptr ? printable(text) : "NVML error " + std::to_string(code);
  return {code, std::string(function) + ": " + message};
}

std::pair<Device, std::string> Nvml::Session::device(int index) const {
  Device device = nullptr;
  const NvmlOutcome result =
      call("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(index), &device);
  return {result ? device : nullptr, result.reason};
}

Fact<std::uint64_t> Nvml::Session::field(Device device, unsigned field_id, unsigned scope) const {
  const std::string name = "nvmlDeviceGetFieldValues(" + std::to_string(field_id) + ")";
  nvml_abi::FieldValue field;
  field.field_id = field_id;
  field.scope_id = scope;
  if (const NvmlOutcome result = call("nvmlDeviceGetFieldValues", device, 1, &field); !result)
    return unknown<std::uint64_t>(result.reason);
  if (const NvmlOutcome result = outcome(name.c_str(), field.result); !result)
    return unknown<std::uint64_t>(result.reason);
  switch (field.value_type) {
  case nvml_abi::value_is_unsigned:
    return known<std::uint64_t>(field.value.unsigned_32, origin + name);
  case nvml_abi::value_is_unsigned_long:
  case nvml_abi::value_is_unsigned_long_long:
    return known<std::uint64_t>(field.value.unsigned_64, origin + name);
  default:
    return unknown<std::uint64_t>(name + ": not a count");
  }
}

Nvml::Nvml(std::unique_ptr<Session> session) : session_(std::move(session)) {}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

std::optional<Nvml> Nvml::open(const std::string& library, std::string& why) {
  std::optional<DynamicLibrary> opened = DynamicLibrary::open({library}, &why);
  if (!opened)
    return std::nullopt;
  auto session = std::make_unique<Session>(std::move(*opened));
  const NvmlOutcome result = [&] {
    const SignalsBlocked blocked(SignalsBlocked::But::faults); // the driver may start threads
    return session->call("nvmlInit_v2");
  }();
  if (!result) {
    why = result.reason;
    return std::nullopt;
  }
  session->initialised = true;
  return Nvml(std::move(session));
}

std::string Nvml::file() const {
  return session_->library.file();
}

Fact<std::string> Nvml::driver_version() const {
  char text[80] = {};
  const NvmlOutcome result =
      session_->call("nvmlSystemGetDriverVersion", static_cast<char*>(text), 80U);
  return result ? known(text_of(text), "NVML: nvmlSystemGetDriverVersion")
                : unknown<std::string>(result.reason);
}

Fact<std::string> Nvml::cuda_version() const {
  int version = 0; // 1000 * major + 10 * minor
  const NvmlOutcome result = session_->call("nvmlSystemGetCudaDriverVersion_v2", &version);
  if (!result)
    return unknown<std::string>(result.reason);
  return known(std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10),
               "NVML: nvmlSystemGetCudaDriverVersion_v2");
}

Fact<int> Nvml::device_count() const {
  unsigned count = 0;
  const NvmlOutcome result = session_->call("nvmlDeviceGetCount_v2", &count);
  if (!result)
    return unknown<int>(result.reason);
  if (count > 4096)
    return unknown<int>("nvmlDeviceGetCount_v2: " + std::to_string(count) + " GPUs cannot be");
  return known(static_cast<int>(count), "NVML: nvmlDeviceGetCount_v2");
}

namespace {

/// One NVML query with one result: calls and wraps it.
template <class T, class Session, class Ask>
Fact<T> ask(const Session& session, const char* function, Ask question) {
  T value{};
  const NvmlOutcome result = question(session, function, value);
  return result ? known<T>(std::move(value), std::string(origin) + function)
                : unknown<T>(result.reason);
}

template <class Session>
Fact<std::string> ask_text(const Session& session, const char* function, Device device) {
  char text[96] = {};
  const NvmlOutcome result = session.call(function, device, static_cast<char*>(text), 96U);
  return result ? known(text_of(text), std::string(origin) + function)
                : unknown<std::string>(result.reason);
}

/// nvmlEnableState_t as a flag.
template <class Session>
Fact<bool> ask_flag(const Session& session, const char* function, Device device) {
  return ask<bool>(session, function, [device](const Session& to, const char* name, bool& value) {
    int state = 0;
    NvmlOutcome result = to.call(name, device, &state);
    value = state == 1;
    return result;
  });
}

/// NVML gives the nvmlEnableState_t now and that after the next reset; returns the current one.
template <class Session>
Fact<bool> ask_mode(const Session& session, const char* function, Device device) {
  return ask<bool>(session, function, [device](const Session& to, const char* name, bool& value) {
    unsigned current = 0, pending = 0;
    NvmlOutcome result = to.call(name, device, &current, &pending);
    value = current == 1;
    return result;
  });
}

template <class Session>
Fact<PciAddress> ask_address(const Session& session, Device device) {
  nvml_abi::PciInfo pci{};
  const NvmlOutcome result = session.call("nvmlDeviceGetPciInfo_v3", device, &pci);
  if (!result)
    return unknown<PciAddress>(result.reason);
  const std::string text = text_of(pci.bus_id);
  const std::optional<PciAddress> address = parse_pci_address(text);
  return address ? known(*address, "NVML: nvmlDeviceGetPciInfo_v3")
                 : unknown<PciAddress>("nvmlDeviceGetPciInfo_v3: \"" + text + "\" is no address");
}

template <class Session>
Fact<std::string> ask_cpus(const Session& session, Device device) {
  unsigned long words[affinity_words] = {};
  const NvmlOutcome result = session.call("nvmlDeviceGetCpuAffinity", device, affinity_words,
                                          static_cast<unsigned long*>(words));
  return result ? known(format_cpulist(set_of(words)), "NVML: nvmlDeviceGetCpuAffinity")
                : unknown<std::string>(result.reason);
}

template <class Session>
Fact<int> ask_numa(const Session& session, Device device) {
  unsigned long words[affinity_words] = {};
  const NvmlOutcome result = session.call("nvmlDeviceGetMemoryAffinity", device, affinity_words,
                                          static_cast<unsigned long*>(words), nvml_abi::scope_node);
  if (!result)
    return unknown<int>(result.reason);
  const CpuSet nodes = set_of(words); // the words have the form of a CPU set
  if (nodes.empty() || nodes.first() != nodes.last())
    return unknown<int>("nvmlDeviceGetMemoryAffinity names NUMA nodes \"" + format_cpulist(nodes) +
                        "\"");
  return known(nodes.first(), "NVML: nvmlDeviceGetMemoryAffinity");
}

} // namespace

NvmlGpu Nvml::gpu(int index) const {
  NvmlGpu gpu;
  gpu.index = index;
  const auto [device, reason] = session_->device(index);
  if (device == nullptr) {
    gpu.address.origin = gpu.name.origin = gpu.uuid.origin = gpu.vbios.origin = gpu.minor.origin =
        gpu.cpus.origin = gpu.numa.origin = gpu.mig_enabled.origin = gpu.links.origin =
            gpu.nvlinks_present.origin = gpu.nvlinks_active.origin = reason;
    return gpu;
  }
  gpu.address = ask_address(*session_, device);
  gpu.name = ask_text(*session_, "nvmlDeviceGetName", device);
  gpu.uuid = ask_text(*session_, "nvmlDeviceGetUUID", device);
  gpu.vbios = ask_text(*session_, "nvmlDeviceGetVbiosVersion", device);
  gpu.minor = ask<int>(*session_, "nvmlDeviceGetMinorNumber",
                       [handle = device](const Session& to, const char* name, int& value) {
                         unsigned minor = 0;
                         NvmlOutcome result = to.call(name, handle, &minor);
                         value = static_cast<int>(minor);
                         return result;
                       });
  gpu.cpus = ask_cpus(*session_, device);
  gpu.numa = ask_numa(*session_, device);
  gpu.mig_enabled = ask_mode(*session_, "nvmlDeviceGetMigMode", device);
  session_->read_links(device, gpu);
  return gpu;
}

NvmlGpu Nvml::gpu_identity(int index) const {
  NvmlGpu gpu;
  gpu.index = index;
  const std::pair<Device, std::string> found = session_->device(index);
  if (found.first == nullptr) {
    gpu.address.origin = gpu.uuid.origin = found.second;
    return gpu;
  }
  gpu.address = ask_address(*session_, found.first);
  gpu.uuid = ask_text(*session_, "nvmlDeviceGetUUID", found.first);
  return gpu;
}

namespace {

/// Unknown for GPUs whose fabric is one machine: their cluster UUID is 0.
Fact<std::string> domain_of(const nvml_abi::FabricInfo& fabric) {
  constexpr const char* from = "nvmlDeviceGetGpuFabricInfo";
  if (static_cast<FabricState>(fabric.state) != FabricState::completed || fabric.status != 0)
    return unknown<std::string>(std::string(from) + ": not registered with a fabric");
  std::string cluster;
  bool named = false;
  for (const unsigned char byte : fabric.cluster_uuid) {
    cluster += fmt::format("{:02x}", byte);
    named = named || byte != 0;
  }
  if (!named)
    return unknown<std::string>(std::string(from) + ": its NVLink domain is one machine");
  return known(fmt::format("{}.{}", cluster, fabric.clique_id), "NVML: nvmlDeviceGetGpuFabricInfo");
}

template <class Session>
NvmlClock ask_clock(const Session& session, Device device, int type) {
  const auto in_MHz = [&](const char* function) {
    return ask<unsigned>(session, function,
                         [device, type](const Session& to, const char* name, unsigned& value) {
                           return to.call(name, device, type, &value);
                         });
  };
  NvmlClock clock;
  clock.now_MHz = in_MHz("nvmlDeviceGetClockInfo");
  clock.max_MHz = in_MHz("nvmlDeviceGetMaxClockInfo");
  clock.application_MHz = in_MHz("nvmlDeviceGetApplicationsClock");
  clock.default_MHz = in_MHz("nvmlDeviceGetDefaultApplicationsClock");
  return clock;
}

} // namespace

NvmlHealth Nvml::health(int index) const {
  NvmlHealth health;
  const auto [device, reason] = session_->device(index);
  if (device == nullptr) {
    health.persistence_mode.origin = health.ecc_enabled.origin =
        health.uncorrected_ecc_errors.origin = health.remapped_rows.origin =
            health.retired_pages_pending.origin = health.throttle_reasons.origin =
                health.fabric_state.origin = health.fabric_status.origin =
                    health.fabric_domain.origin = reason;
    for (NvmlClock* clock : {&health.sm_clock, &health.memory_clock})
      clock->now_MHz.origin = clock->max_MHz.origin = clock->application_MHz.origin =
          clock->default_MHz.origin = reason;
    return health;
  }
  const Session& session = *session_;
  const Device handle = device;
  health.persistence_mode = ask_flag(session, "nvmlDeviceGetPersistenceMode", handle);
  health.ecc_enabled = ask_mode(session, "nvmlDeviceGetEccMode", handle);
  health.retired_pages_pending =
      ask_flag(session, "nvmlDeviceGetRetiredPagesPendingStatus", handle);
  health.uncorrected_ecc_errors =
      ask<std::uint64_t>(session, "nvmlDeviceGetTotalEccErrors",
                         [handle](const Session& to, const char* name, std::uint64_t& value) {
                           unsigned long long count = 0;
                           NvmlOutcome result = to.call(name, handle, nvml_abi::uncorrected_error,
                                                        nvml_abi::volatile_counter, &count);
                           value = count;
                           return result;
                         });
  health.throttle_reasons =
      ask<std::uint64_t>(session, "nvmlDeviceGetCurrentClocksThrottleReasons",
                         [handle](const Session& to, const char* name, std::uint64_t& value) {
                           unsigned long long bits = 0;
                           NvmlOutcome result = to.call(name, handle, &bits);
                           value = bits;
                           return result;
                         });
  health.sm_clock = ask_clock(session, handle, nvml_abi::clock_of_sm);
  health.memory_clock = ask_clock(session, handle, nvml_abi::clock_of_memory);
  health.remapped_rows =
      ask<NvmlRemappedRows>(session, "nvmlDeviceGetRemappedRows",
                            [handle](const Session& to, const char* name, NvmlRemappedRows& rows) {
                              unsigned pending = 0, failed = 0;
                              NvmlOutcome result = to.call(name, handle, &rows.correctable,
                                                           &rows.uncorrectable, &pending, &failed);
                              rows.pending = pending != 0;
                              rows.failed = failed != 0;
                              return result;
                            });
  nvml_abi::FabricInfo fabric{};
  const NvmlOutcome result = session.call("nvmlDeviceGetGpuFabricInfo", handle, &fabric);
  if (!result || fabric.state > static_cast<unsigned char>(FabricState::completed)) {
    health.fabric_state.origin = health.fabric_status.origin = health.fabric_domain.origin =
        result ? "nvmlDeviceGetGpuFabricInfo: state " + std::to_string(fabric.state)
               : result.reason;
    return health;
  }
  health.fabric_state =
      known(static_cast<FabricState>(fabric.state), "NVML: nvmlDeviceGetGpuFabricInfo");
  health.fabric_status = known(fabric.status, "NVML: nvmlDeviceGetGpuFabricInfo");
  health.fabric_domain = domain_of(fabric);
  return health;
}

namespace {

LinkTarget target_of(int remote_type) {
  switch (remote_type) {
  case nvml_abi::remote_is_gpu:
    return LinkTarget::gpu;
  case nvml_abi::remote_is_ibm_npu:
    return LinkTarget::cpu;
  case nvml_abi::remote_is_switch:
    return LinkTarget::nvswitch;
  default:
    return LinkTarget::unknown;
  }
}

Fact<double> bandwidth_GBps(const Fact<std::uint64_t>& speed_MBps) {
  if (!speed_MBps || *speed_MBps == 0)
    return unknown<double>(speed_MBps ? "NVML says 0 MB/s" : speed_MBps.origin);
  return known(static_cast<double>(*speed_MBps) / 1000.0, speed_MBps.origin);
}

/// Adds one link to the entry with the same target, or creates an entry.
void add_link(std::vector<GpuLink>& links, GpuLink link) {
  const auto same = std::find_if(links.begin(), links.end(), [&link](const GpuLink& other) {
    return other.kind == link.kind && other.target == link.target &&
           other.target_address == link.target_address;
  });
  if (same == links.end())
    links.push_back(std::move(link));
  else
    same->count += link.count;
}

/// The other end of an active NVLink. In a virtual machine NVML names the kind of device but hides
/// its address (ffffffff:ff:ff.0), which does not parse as an address.
template <class Session>
GpuLink describe_nvlink(const Session& session, Device device, unsigned number) {
  GpuLink link;
  int remote_type = -1;
  if (session.call("nvmlDeviceGetNvLinkRemoteDeviceType", device, number, &remote_type))
    link.target = target_of(remote_type);
  nvml_abi::PciInfo remote{};
  if (session.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, number, &remote))
    link.target_address = parse_pci_address(
        std::string(remote.bus_id, ::strnlen(remote.bus_id, sizeof remote.bus_id)));
  Fact<std::uint64_t> speed_MBps = session.field(device, nvml_abi::field_nvlink_speed_MBps, number);
  if (!speed_MBps)
    speed_MBps = session.field(device, nvml_abi::field_nvlink_speed_common_MBps, 0);
  link.bandwidth_GBps = bandwidth_GBps(speed_MBps);
  return link;
}

template <class Session>
bool has_no_nvlinks(const Session& session, Device device) {
  const Fact<std::uint64_t> count = session.field(device, nvml_abi::field_nvlink_count, 0);
  return count && *count == 0;
}

/// C2C (Grace Hopper): present only if the driver counts at least one link.
template <class Session>
void add_c2c_links(const Session& session, Device device, std::vector<GpuLink>& links) {
  const Fact<std::uint64_t> count = session.field(device, nvml_abi::field_c2c_link_count, 0);
  if (!count)
    return;
  for (unsigned number = 0; number < std::min<std::uint64_t>(*count, nvml_abi::max_nvlinks);
       ++number) {
    const Fact<std::uint64_t> status =
        session.field(device, nvml_abi::field_c2c_link_status, number);
    if (!status || *status != 1)
      continue;
    GpuLink link;
    link.kind = GpuLinkKind::c2c;
    link.target = LinkTarget::cpu;
    link.bandwidth_GBps =
        bandwidth_GBps(session.field(device, nvml_abi::field_c2c_link_bandwidth_MBps, number));
    add_link(links, std::move(link));
  }
}

} // namespace

Fact<Nvml::Session::Nvlinks> Nvml::Session::nvlinks(Device device, bool has_mig) const {
  Nvlinks found;
  for (unsigned number = 0; number < nvml_abi::max_nvlinks; ++number) {
    int state = 0;
    const NvmlOutcome result = call("nvmlDeviceGetNvLinkState", device, number, &state);
    if (result.code == nvml_abi::invalid_argument && (number > 0 || has_no_nvlinks(*this, device)))
      break; // the GPU has no more links
    // A card without NVLink returns "not supported" for all links, and so does one in MIG mode,
    // whose links exist but cannot be queried.
    if (result.code == nvml_abi::not_supported && !has_mig)
      continue;
    if (!result)
      return unknown<Nvlinks>(result.reason + (has_mig ? " (MIG is enabled)" : ""));
    found.present.push_back(number);
    if (state == 1)
      found.active.push_back(number);
  }
  return known(std::move(found), "NVML: nvmlDeviceGetNvLinkState");
}

void Nvml::Session::read_links(Device device, NvmlGpu& gpu) const {
  const Fact<Nvlinks> found = nvlinks(device, gpu.mig_enabled && *gpu.mig_enabled);
  if (!found) {
    gpu.links = unknown<std::vector<GpuLink>>(found.origin);
    gpu.nvlinks_present = gpu.nvlinks_active = unknown<int>(found.origin);
    return;
  }
  std::vector<GpuLink> links;
  for (const unsigned number : (*found).active)
    add_link(links, describe_nvlink(*this, device, number));
  add_c2c_links(*this, device, links);
  gpu.links = known(std::move(links), found.origin);
  gpu.nvlinks_present = known(static_cast<int>((*found).present.size()), found.origin);
  gpu.nvlinks_active = known(static_cast<int>((*found).active.size()), found.origin);
}

const char* to_string(FabricState state) {
  switch (state) {
  case FabricState::not_supported:
    return "not supported";
  case FabricState::not_started:
    return "not started";
  case FabricState::in_progress:
    return "in progress";
  case FabricState::completed:
    return "completed";
  }
  return "?";
}

std::vector<std::string> throttle_words(std::uint64_t reasons) {
  static constexpr std::pair<std::uint64_t, const char*> harmful[] = {
      {0x04, "software power cap"},        {0x08, "hardware slowdown"},
      {0x20, "software thermal slowdown"}, {0x40, "hardware thermal slowdown"},
      {0x80, "hardware power brake"},
  };
  std::vector<std::string> words;
  for (const auto& [bit, word] : harmful)
    if ((reasons & bit) != 0)
      words.emplace_back(word);
  return words;
}

bool are_clocks_held_by_setting(std::uint64_t reasons) {
  constexpr std::uint64_t idle = 0x01, application_clocks_setting = 0x02;
  return (reasons & idle) == 0 && (reasons & application_clocks_setting) != 0;
}

namespace {

/// The samples that the driver keeps of the GPU's processes; unknown, with the reason, if it gives
/// none.
template <class Session>
Fact<std::vector<nvml_abi::UtilizationSample>> utilization_samples(const Session& session,
                                                                   Device device) {
  using Samples = std::vector<nvml_abi::UtilizationSample>;
  constexpr const char* function = "nvmlDeviceGetProcessUtilization";
  constexpr unsigned long long since_ever = 0;
  unsigned count = 0;
  NvmlOutcome result = session.call(
      function, device, static_cast<nvml_abi::UtilizationSample*>(nullptr), &count, since_ever);
  if (!result && result.code != nvml_abi::insufficient_size)
    return unknown<Samples>(result.reason);
  constexpr unsigned most = 1U << 16;
  Samples samples(std::min(count, most));
  count = static_cast<unsigned>(samples.size());
  if (count == 0)
    return known(Samples(), origin + std::string(function));
  result = session.call(function, device, samples.data(), &count, since_ever);
  if (!result)
    return unknown<Samples>(result.reason);
  samples.resize(std::min<std::size_t>(count, samples.size()));
  return known(std::move(samples), origin + std::string(function));
}

Fact<unsigned> busy_percent_of(unsigned pid,
                               const Fact<std::vector<nvml_abi::UtilizationSample>>& samples) {
  if (!samples)
    return unknown<unsigned>(samples.origin);
  const nvml_abi::UtilizationSample* newest = nullptr;
  for (const nvml_abi::UtilizationSample& sample : *samples)
    if (sample.pid == pid && sample.sm_percent <= 100 &&
        (newest == nullptr || sample.timestamp_us > newest->timestamp_us))
      newest = &sample;
  return newest != nullptr ? known(newest->sm_percent, samples.origin)
                           : unknown<unsigned>("no sample of the process");
}

} // namespace

Fact<std::vector<NvmlProcess>> Nvml::processes(int index) const {
  using Processes = std::vector<NvmlProcess>;
  const std::pair<Device, std::string> found = session_->device(index);
  const Device device = found.first;
  if (device == nullptr)
    return unknown<Processes>(found.second);
  // Drivers before 510 have version 2 only, with the same structure.
  const char* function = "nvmlDeviceGetComputeRunningProcesses_v3";
  const auto ask_list = [this, &function, device](unsigned& most, nvml_abi::ProcessInfo* to) {
    return session_->call(function, device, &most, to);
  };
  unsigned count = 0;
  NvmlOutcome result = ask_list(count, nullptr);
  if (result.code == -1) {
    function = "nvmlDeviceGetComputeRunningProcesses_v2";
    result = ask_list(count, nullptr);
  }
  if (!result && result.code != nvml_abi::insufficient_size)
    return unknown<Processes>(result.reason);
  std::vector<nvml_abi::ProcessInfo> rows;
  if (count > 0) {
    constexpr unsigned limit = 1U << 16, more = 16; // some may start between the calls
    rows.resize(std::min(count, limit) + more);
    count = static_cast<unsigned>(rows.size());
    if (result = ask_list(count, rows.data()); !result)
      return unknown<Processes>(result.reason);
    rows.resize(std::min<std::size_t>(count, rows.size()));
  }
  const auto samples = rows.empty()
                           ? unknown<std::vector<nvml_abi::UtilizationSample>>("no process")
                           : utilization_samples(*session_, device);
  Processes processes;
  for (const nvml_abi::ProcessInfo& row : rows) {
    if (row.pid == 0 || row.pid > 1U << 30)
      continue;
    NvmlProcess process;
    process.pid = static_cast<int>(row.pid);
    process.used_bytes = row.used_bytes == nvml_abi::value_not_available
                             ? unknown<std::uint64_t>(std::string(function) + ": not available")
                             : known<std::uint64_t>(row.used_bytes, std::string(origin) + function);
    process.busy_percent = busy_percent_of(row.pid, samples);
    processes.push_back(std::move(process));
  }
  std::sort(processes.begin(), processes.end(),
            [](const NvmlProcess& left, const NvmlProcess& right) { return left.pid < right.pid; });
  return known(std::move(processes), std::string(origin) + function);
}

NvlinkCounters Nvml::nvlink_counters(const std::string& pci_address) const {
  NvlinkCounters counters;
  nvml_abi::Device device = nullptr;
  if (const NvmlOutcome found =
          session_->call("nvmlDeviceGetHandleByPciBusId_v2", pci_address.c_str(), &device);
      !found) {
    counters.problem = found.reason;
    return counters;
  }
  unsigned mig_now = 0, mig_later = 0;
  session_->call("nvmlDeviceGetMigMode", device, &mig_now, &mig_later); // 0 if the GPU has no MIG
  const Fact<Session::Nvlinks> links = session_->nvlinks(device, mig_now == 1);
  if (!links) {
    counters.problem = links.origin;
    return counters;
  }
  const Session::Nvlinks& numbers = *links;
  for (const unsigned link : numbers.active)
    counters.links.push_back({link, session_->field(device, nvml_abi::field_nvlink_sent_KiB, link),
                              session_->field(device, nvml_abi::field_nvlink_received_KiB, link)});
  if (numbers.present.empty())
    counters.problem = "the GPU has no NVLink";
  else if (numbers.active.empty())
    counters.problem = fmt::format("none of its {} NVLinks is active", numbers.present.size());
  else {
    counters.sent_KiB =
        session_->field(device, nvml_abi::field_nvlink_sent_KiB, nvml_abi::scope_all_nvlinks);
    counters.received_KiB =
        session_->field(device, nvml_abi::field_nvlink_received_KiB, nvml_abi::scope_all_nvlinks);
  }
  return counters;
}

} // namespace shmemctl
