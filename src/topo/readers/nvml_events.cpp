#include "src/topo/readers/nvml_events.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/signals_blocked.h"
#include "src/topo/readers/nvml_session.h"
#include "src/topo/readers/xid.h"

namespace shmemctl {

namespace {

/// A GPU that is going under may have more of them than anybody reads.
constexpr int most_at_once = 256;
constexpr std::size_t most_named = 4;

/// A kind that is not asked for is none of ours.
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

std::string words_of(const NvmlEvent& event) {
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

/// Whether something came, and more may be there.
bool NvmlEvents::take(unsigned patience_ms) {
  nvml_abi::EventData data;
  const NvmlOutcome outcome = nvml_.session_->call("nvmlEventSetWait_v2", set_, &data, patience_ms);
  NvmlEvent event{NvmlEvent::Kind::lost, 0};
  if (outcome ? !read_event(data, event) : outcome.code != nvml_abi::gpu_is_lost)
    return static_cast<bool>(outcome);
  if (std::find(seen_.begin(), seen_.end(), event) == seen_.end())
    seen_.push_back(event);
  return static_cast<bool>(outcome);
}

std::vector<NvmlEvent> NvmlEvents::seen(unsigned patience_ms) {
  const std::lock_guard lock(mutex_);
  for (int asked = 0; asked < most_at_once; ++asked)
    if (!take(asked == 0 && seen_.empty() ? patience_ms : 0))
      break;
  return seen_;
}

std::string words_of(const std::vector<NvmlEvent>& events, const std::string& pci_address) {
  std::string list;
  for (std::size_t i = 0; i < std::min(events.size(), most_named); ++i)
    list += (i == 0 ? "" : ", ") + words_of(events[i]);
  if (events.size() > most_named)
    list += fmt::format(" and {} more", events.size() - most_named);
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
