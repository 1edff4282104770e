// Staging slots that every port of this PE knows.
#pragma once

#include <cstdint>

#include "transports/mlx5/local_memory.h"
#include "transports/rc/staging_slots.h"

namespace shmemctl::mlx5 {

class Staging : public rc::StagingSlots {
public:
  /// Throws Error (unavailable).
  explicit Staging(const JobView& job)
      : registration_(register_range(job, {memory(), size_bytes()}, purpose)) {}

  std::uint32_t lkey(std::size_t port) const { return registration_.segment.lkeys[port]; }

private:
  Registration registration_;
};

/// A slot reserved for a WQE; freed if the WQE is not posted.
class TakenSlot {
public:
  TakenSlot(Staging* staging, std::int16_t number) : staging_(staging), number_(number) {}
  ~TakenSlot() {
    if (staging_)
      staging_->release(number_);
  }
  TakenSlot(const TakenSlot&) = delete;
  TakenSlot& operator=(const TakenSlot&) = delete;
  std::int16_t number() const { return number_; }
  std::int16_t hand_over() {
    staging_ = nullptr;
    return number_;
  }

private:
  Staging* staging_;
  std::int16_t number_;
};

} // namespace shmemctl::mlx5
