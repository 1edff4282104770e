// Events that NVML reports while it is watched: XID errors among them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/topo/readers/nvml.h"

namespace shmemctl {

// Xids: the numbers by which NVIDIA's driver tells the kernel's log, and NVML, what went wrong with
// a GPU. Their meaning does not change between drivers.

struct XidMeaning {
  const char* words; ///< what has happened, in a few words
  const char* fix;   ///< what to do; nullptr: it depends on the program that ran
};

/// Returns nullptr for a number that is not in the table: video engines', displays', rare ones.
const XidMeaning* meaning_of_xid(std::uint64_t number);

// What NVIDIA's driver tells of one GPU while somebody listens: Xids, ECC errors, its loss. The
// events are the GPU's, not a process's: what another program on it did is among them.

struct NvmlEvent {
  enum class Kind { xid, corrected_ecc, uncorrected_ecc, lost };
  Kind kind = Kind::xid;
  std::uint64_t xid = 0; ///< of Kind::xid

  bool operator==(const NvmlEvent&) const = default;
};

/// Listens from its making to its end. Nothing runs meanwhile: the driver keeps the events until
/// they are asked for. Thread safe.
class NvmlEvents {
public:
  /// Needs no privileges. Takes about as long as nvmlInit.
  /// @param library     as for Nvml::open
  /// @param pci_address as "0000:1a:00.0"
  /// @param why         receives the reason if nothing can be listened to: one clause
  /// Returns nullptr then.
  static std::unique_ptr<NvmlEvents> listen(const std::string& library,
                                            const std::string& pci_address, std::string& why);
  ~NvmlEvents();
  NvmlEvents(const NvmlEvents&) = delete;
  NvmlEvents& operator=(const NvmlEvents&) = delete;

  /// Each different event since the start, in the order in which they came first.
  /// @param timeout_ms if there was none yet: how long to wait for one. What makes CUDA fail and
  ///                    what makes an event are not ordered.
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
/// the job's start"; "" for none. Of more than four, the first four.
std::string words_of(const std::vector<NvmlEvent>& events, const std::string& pci_address);
/// What to do about the first of them that is the hardware's; "": none is.
std::string fix_of(const std::vector<NvmlEvent>& events);

} // namespace shmemctl
