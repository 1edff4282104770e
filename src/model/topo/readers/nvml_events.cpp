// Events that NVML reports while it is watched: XID errors among them.
#include "src/model/topo/readers/nvml_events.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "src/base/process.h"
#include "src/model/topo/readers/nvml.h"

namespace shmemctl {

namespace {

constexpr const char* of_memory =
    "the GPU's memory has failed: nvidia-smi -q -d ECC,ROW_REMAPPER; drain the node and reset the "
    "GPU";
constexpr const char* of_link =
    "an NVLink has failed: nvidia-smi nvlink -e; reset the GPU and check the cables";
constexpr const char* of_gpu = "drain the node and reset the GPU; if it recurs, replace the GPU";
constexpr const char* of_bus =
    "the GPU no longer responds on PCIe: reboot the node; check power, temperature and seating";

struct Entry {
  std::uint64_t number;
  XidMeaning meaning;
};
constexpr std::array entries{
    Entry{13, {"a kernel faulted: a trap, an invalid address or an illegal instruction", nullptr}},
    Entry{31, {"an MMU fault: access to unmapped memory", nullptr}},
    Entry{32, {"corrupted commands to the GPU, as on a bad PCIe link", of_gpu}},
    Entry{38, {"the GPU's firmware had an error", of_gpu}},
    Entry{39, {"a copy engine faulted", nullptr}},
    Entry{40, {"a copy engine faulted", nullptr}},
    Entry{41, {"a copy engine faulted", nullptr}},
    Entry{43, {"a channel was stopped after an application fault", nullptr}},
    Entry{45, {"a channel was cleaned up: its process ended or had failed before", nullptr}},
    Entry{46, {"the GPU stopped processing", of_gpu}},
    Entry{48, {"an uncorrectable ECC error (two bits)", of_memory}},
    Entry{61, {"the GPU's power controller warned", of_gpu}},
    Entry{62, {"the GPU's power controller halted", of_gpu}},
    Entry{63, {"a memory row is remapped or a page is retired", of_memory}},
    Entry{64, {"row remapping or page retirement failed", of_memory}},
    Entry{69, {"a kernel faulted, or its launch was corrupted", nullptr}},
    Entry{74, {"an NVLink error", of_link}},
    Entry{79, {"the GPU has fallen off the bus", of_bus}},
    Entry{92, {"many corrected ECC errors", of_memory}},
    Entry{94,
          {"a contained uncorrectable ECC error: it terminates the affected processes", of_memory}},
    Entry{95, {"an uncontained uncorrectable ECC error: it terminates all processes", of_memory}},
    Entry{109, {"a GPU context switch timed out", of_gpu}},
    Entry{110, {"a security fault", of_gpu}},
    Entry{119, {"the GPU system processor (GSP) did not respond", of_gpu}},
    Entry{120, {"the GPU system processor (GSP) had an error", of_gpu}},
    Entry{121, {"an error on the link between GPU and processor (C2C)", of_gpu}},
    Entry{137, {"a peer rejected an NVLink access: its memory is unmapped", nullptr}},
    Entry{140, {"an unrecovered uncorrectable ECC error", of_memory}},
    Entry{143, {"the GPU could not be initialized", of_gpu}},
    Entry{144, {"an NVLink error", of_link}},
    Entry{145, {"an NVLink error", of_link}},
    Entry{146, {"an NVLink error", of_link}},
    Entry{147, {"an NVLink error", of_link}},
    Entry{148, {"an NVLink error", of_link}},
    Entry{149, {"an NVLink error", of_link}},
    Entry{150, {"an NVLink error", of_link}},
    Entry{154,
          {"the driver reports a recovery action for the GPU",
           "nvidia-smi -q shows the recovery action: carry it out"}},
};

} // namespace

const XidMeaning* meaning_of_xid(std::uint64_t number) {
  const auto* found = std::find_if(entries.begin(), entries.end(),
                                   [&](const Entry& entry) { return entry.number == number; });
  return found == entries.end() ? nullptr : &found->meaning;
}

namespace {

/// A failing GPU may produce more events than anybody reads.
constexpr int max_at_once = 256;
constexpr std::size_t max_named = 4;

/// Events of kinds that were not requested are ignored.
bool read_event(const nvml_abi::EventData& data, NvmlEvent& event) {
  switch (data.type) {
  case nvml_abi::event_xid:
    event = {NvmlEvent::Kind::xid, data.data};
    return true;
  case nvml_abi::event_corrected_ecc:
    event = {NvmlEvent::Kind::corrected_ecc, 0};
    return true;
  case nvml_abi::event_uncorrected_ecc:
    event = {NvmlEvent::Kind::uncorrected_ecc, 0};
    return true;
  default:
    return false;
  }
}

std::string describe_events(const NvmlEvent& event) {
  switch (event.kind) {
  case NvmlEvent::Kind::xid: {
    const XidMeaning* const meaning = meaning_of_xid(event.xid);
    return fmt::format("Xid {}", event.xid) +
           (meaning ? fmt::format(" ({})", meaning->words) : std::string());
  }
  case NvmlEvent::Kind::corrected_ecc:
    return "a corrected ECC error";
  case NvmlEvent::Kind::uncorrected_ecc:
    return "an uncorrectable ECC error";
  case NvmlEvent::Kind::lost:
    break;
  }
  return "its loss";
}

const char* fix_of(const NvmlEvent& event) {
  constexpr std::uint64_t like_ecc = 48, like_lost = 79;
  switch (event.kind) {
  case NvmlEvent::Kind::xid: {
    const XidMeaning* const meaning = meaning_of_xid(event.xid);
    return meaning ? meaning->fix : nullptr;
  }
  case NvmlEvent::Kind::corrected_ecc:
    return nullptr;
  case NvmlEvent::Kind::uncorrected_ecc:
    return meaning_of_xid(like_ecc)->fix;
  case NvmlEvent::Kind::lost:
    break;
  }
  return meaning_of_xid(like_lost)->fix;
}

} // namespace

NvmlEvents::~NvmlEvents() {
  if (set_)
    nvml_.session_->call("nvmlEventSetFree", set_);
}

std::unique_ptr<NvmlEvents> NvmlEvents::listen(const std::string& library,
                                               const std::string& pci_address, std::string& why) {
  std::optional<Nvml> nvml = Nvml::open(library, why);
  if (!nvml)
    return nullptr;
  std::unique_ptr<NvmlEvents> events(new NvmlEvents(std::move(*nvml)));
  const Nvml::Session& session = *events->nvml_.session_;
  const SignalsBlocked blocked(SignalsBlocked::But::faults); // the driver may start threads
  const auto does = [&why](const NvmlOutcome& outcome) {
    why = outcome.reason;
    return static_cast<bool>(outcome);
  };
  nvml_abi::Device device = nullptr;
  unsigned long long types = 0;
  if (!does(session.call("nvmlDeviceGetHandleByPciBusId_v2", pci_address.c_str(), &device)) ||
      !does(session.call("nvmlDeviceGetSupportedEventTypes", device, &types)))
    return nullptr;
  types &= nvml_abi::event_xid | nvml_abi::event_corrected_ecc | nvml_abi::event_uncorrected_ecc;
  if (types == 0)
    why = "nvmlDeviceGetSupportedEventTypes: neither Xids nor ECC errors";
  if (types == 0 || !does(session.call("nvmlEventSetCreate", &events->set_)) ||
      !does(session.call("nvmlDeviceRegisterEvents", device, types, events->set_)))
    return nullptr;
  return events;
}

/// Reads one event. Returns whether there was one, so that there may be more.
bool NvmlEvents::take(unsigned timeout_ms) {
  nvml_abi::EventData data;
  const NvmlOutcome outcome = nvml_.session_->call("nvmlEventSetWait_v2", set_, &data, timeout_ms);
  NvmlEvent event{NvmlEvent::Kind::lost, 0};
  if (outcome ? !read_event(data, event) : outcome.code != nvml_abi::gpu_is_lost)
    return static_cast<bool>(outcome);
  if (std::find(seen_.begin(), seen_.end(), event) == seen_.end())
    seen_.push_back(event);
  return static_cast<bool>(outcome);
}

std::vector<NvmlEvent> NvmlEvents::seen(unsigned timeout_ms) {
  const std::lock_guard lock(mutex_);
  for (int asked = 0; asked < max_at_once; ++asked)
    if (!take(asked == 0 && seen_.empty() ? timeout_ms : 0))
      break;
  return seen_;
}

std::string describe_events(const std::vector<NvmlEvent>& events, const std::string& pci_address) {
  std::string list;
  for (std::size_t i = 0; i < std::min(events.size(), max_named); ++i)
    list += (i == 0 ? "" : ", ") + describe_events(events[i]);
  if (events.size() > max_named)
    list += fmt::format(" and {} more", events.size() - max_named);
  return list.empty() ? ""
                      : fmt::format("the driver reported {} on GPU {} since the job's start", list,
                                    pci_address);
}

std::string fix_of(const std::vector<NvmlEvent>& events) {
  for (const NvmlEvent& event : events)
    if (const char* const fix = fix_of(event))
      return fix;
  return "";
}

} // namespace shmemctl
