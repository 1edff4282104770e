// Registered memory through which data goes that lies in no registered memory itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transports/ibrc/job_view.h"
#include "transports/verbs/registration.h"

namespace shmemctl::ibrc {

/// A pool of slots, and two words for the results of atomics. Not thread safe.
class Staging {
public:
  static constexpr std::size_t slot_bytes = std::size_t{16} << 10;
  static constexpr std::int16_t slots = 64;

  /// Throws Error (unavailable).
  explicit Staging(const JobView& job);

  /// A free slot; -1 if there is none.
  std::int16_t take() {
    if (free_.empty())
      return -1;
    const std::int16_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(std::int16_t slot) { free_.push_back(slot); }
  bool empty() const { return free_.empty(); }
  std::byte* at(std::int16_t slot) const {
    return memory_.get() + static_cast<std::size_t>(slot) * slot_bytes;
  }
  /// Where the old value of the atomic goes that is waited for.
  std::uint64_t* result() const { return words(); }
  /// Where old values go that nobody reads.
  std::uint64_t* ignored() const { return words() + 1; }
  std::uint32_t local_key(std::size_t device) const { return handles_[device]->lkey; }

private:
  std::uint64_t* words() const {
    return reinterpret_cast<std::uint64_t*>(memory_.get() + slots * slot_bytes);
  }

  struct Unmap {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Unmap> memory_;
  std::vector<verbs::MemoryRegion> handles_; ///< by device; gone before the memory
  std::vector<std::int16_t> free_;
};

} // namespace shmemctl::ibrc
