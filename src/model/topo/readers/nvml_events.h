// Events that NVML reports while it is watched: XID errors among them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/model/topo/readers/nvml.h"

namespace shmemctl {

// Xids: the numbers by which NVIDIA's driver reports GPU errors to the kernel's log and NVML. Their
// meaning does not change between drivers.

struct XidMeaning {
  const char* words; ///< the event in a few words
  const char* fix;   ///< the fix; nullptr: it depends on the program that ran
};

/// Returns nullptr for a number that is not in the table: video engines, displays, rare ones.
const XidMeaning* meaning_of_xid(std::uint64_t number);

/// What NVIDIA's driver reports about one GPU: an Xid, an ECC error, or the loss of the GPU. Events
/// are the GPU's, not a process's: they include those caused by other programs. NvmlEvents collects
/// them.
struct NvmlEvent {
  enum class Kind { xid, corrected_ecc, uncorrected_ecc, lost };
  Kind kind = Kind::xid;
  std::uint64_t xid = 0; ///< number of a Kind::xid event

  bool operator==(const NvmlEvent&) const = default;
};

/// Registers for events at construction and collects them until destruction. No thread runs
/// meanwhile: the driver queues the events. Thread safe.
class NvmlEvents {
public:
  /// Needs no privileges. Takes about as long as nvmlInit.
  /// @param library     as for Nvml::open
  /// @param pci_address as "0000:1a:00.0"
  /// @param why         receives the reason if events are not available, as a clause
  /// Returns nullptr then.
  static std::unique_ptr<NvmlEvents> listen(const std::string& library,
                                            const std::string& pci_address, std::string& why);
  ~NvmlEvents();
  NvmlEvents(const NvmlEvents&) = delete;
  NvmlEvents& operator=(const NvmlEvents&) = delete;

  /// Each distinct event since the start, in order of first occurrence.
  /// @param timeout_ms how long to wait for an event if there was none yet. A CUDA error may be
  /// returned before its event is reported, or after.
  std::vector<NvmlEvent> seen(unsigned timeout_ms);

private:
  explicit NvmlEvents(Nvml nvml) : nvml_(std::move(nvml)) {}
  bool take(unsigned timeout_ms);

  std::mutex mutex_;
  Nvml nvml_;
  void* set_ = nullptr; ///< nvmlEventSet_t
  std::vector<NvmlEvent> seen_;
};

/// "the driver reported Xid 48 (an uncorrectable ECC error (two bits)) on GPU 0000:1a:00.0 since
/// the job's start"; "" for none. Lists at most the first four events.
std::string describe_events(const std::vector<NvmlEvent>& events, const std::string& pci_address);
/// The fix for the first event with a known one (XidMeaning::fix); "" if there is none.
std::string fix_of(const std::vector<NvmlEvent>& events);

} // namespace shmemctl
