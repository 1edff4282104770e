// Registered memory through which data goes that lies in no registered memory itself.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include "transports/direct/local_memory.h"

namespace shmemctl::direct {

/// A pool of slots. Not thread safe.
class Staging {
public:
  static constexpr std::size_t slot_bytes = std::size_t{16} << 10;
  static constexpr std::int16_t slots = 64;

  /// Throws Error (unavailable).
  explicit Staging(const JobView& job) {
    void* memory = ::mmap(nullptr, slots * slot_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw system_error("memory for staged transfers", "map", errno, "free memory on this host");
    memory_.reset(static_cast<std::byte*>(memory));
    registration_ =
        register_range(job, {memory, slots * slot_bytes}, "memory for staged transfers");
    for (std::int16_t slot = slots; slot-- > 0;)
      free_.push_back(slot);
  }

  /// A free slot. Not if it is empty().
  std::int16_t take() {
    const std::int16_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(std::int16_t slot) { free_.push_back(slot); }
  bool empty() const { return free_.empty(); }
  std::byte* at(std::int16_t slot) const {
    return memory_.get() + static_cast<std::size_t>(slot) * slot_bytes;
  }
  std::uint32_t lkey(std::size_t port) const { return registration_.segment.lkeys[port]; }

private:
  struct Unmap {
    void operator()(std::byte* memory) const { ::munmap(memory, slots * slot_bytes); }
  };
  std::unique_ptr<std::byte, Unmap> memory_;
  Registration registration_; ///< gone before the memory
  std::vector<std::int16_t> free_;
};

/// A slot on its way to an entry; given back if that does not come about.
class TakenSlot {
public:
  TakenSlot(Staging* staging, std::int16_t number) : staging_(staging), number_(number) {}
  ~TakenSlot() {
    if (staging_)
      staging_->give_back(number_);
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

} // namespace shmemctl::direct
