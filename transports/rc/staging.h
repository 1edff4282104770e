// A pool of registered slots through which unregistered memory is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/rc/local_memory.h"
#include "transports/rc/pages.h"

namespace shmemctl::rc {

/// Not thread safe.
class Staging {
public:
  static constexpr std::size_t slot_bytes = std::size_t{16} << 10;
  static constexpr std::int16_t slots = 64;

  /// @param extra_bytes additional bytes after the slots. Throws Error (unavailable).
  explicit Staging(const LocalMemory& local, std::size_t extra_bytes = 0)
      : memory_(slots * slot_bytes + extra_bytes, purpose),
        registration_(local.register_memory(memory_.data(), memory_.size_bytes(), purpose)) {
    for (std::int16_t slot = slots; slot-- > 0;)
      free_.push_back(slot);
  }

  /// Takes a free slot. Must not be called if empty().
  std::int16_t take() {
    const std::int16_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void release(std::int16_t slot) { free_.push_back(slot); }
  bool empty() const { return free_.empty(); }
  std::byte* at(std::int16_t slot) const {
    return memory_.data() + static_cast<std::size_t>(slot) * slot_bytes;
  }
  /// The additional bytes.
  std::byte* extra() const { return memory_.data() + slots * slot_bytes; }
  std::uint32_t lkey(std::size_t port) const { return registration_.lkey(port); }

private:
  static constexpr const char* purpose = "memory for staged transfers"; ///< for error messages

  Pages memory_;
  Registration registration_; ///< destroyed before the memory
  std::vector<std::int16_t> free_;
};

/// A slot taken for a work request; the destructor frees it unless hand_over() was called.
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

} // namespace shmemctl::rc
