// Staging slots that every device of this PE knows.
#pragma once

#include <cstdint>
#include <vector>

#include "transports/ibrc/job_view.h"
#include "transports/rc/staging_slots.h"
#include "transports/verbs/registration.h"

namespace shmemctl::ibrc {

/// After the slots: two words for the results of atomics.
class Staging : public rc::StagingSlots {
public:
  /// Throws Error (unavailable).
  explicit Staging(const JobView& job) : rc::StagingSlots(words_bytes) {
    for (const UsedDevice& used : job.devices)
      handles_.push_back(verbs::register_memory(*used.device, memory(), size_bytes(),
                                                verbs::MemoryKind::host, {}, purpose));
  }

  /// Receives the old value of an atomic that is waited for.
  std::uint64_t* result() const { return reinterpret_cast<std::uint64_t*>(behind()); }
  /// Receives old values that are not used.
  std::uint64_t* ignored() const { return result() + 1; }
  std::uint32_t local_key(std::size_t device) const { return handles_[device]->lkey; }

private:
  static constexpr std::size_t words_bytes = 4096;

  std::vector<verbs::MemoryRegion> handles_; ///< by device
};

} // namespace shmemctl::ibrc
