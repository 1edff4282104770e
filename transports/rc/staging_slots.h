// A pool of registered slots through which unregistered memory is copied.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/error.h"

namespace shmemctl::rc {

/// Not thread safe. A derived class registers [memory(), memory() + size_bytes()), and destroys the
/// registration before the memory.
class StagingSlots {
public:
  static constexpr std::size_t slot_bytes = std::size_t{16} << 10;
  static constexpr std::int16_t slots = 64;
  static constexpr const char* purpose = "memory for staged transfers"; ///< for messages

  /// A free slot. Not if it is empty().
  std::int16_t take() {
    const std::int16_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void release(std::int16_t slot) { free_.push_back(slot); }
  bool empty() const { return free_.empty(); }
  std::byte* at(std::int16_t slot) const {
    return memory() + static_cast<std::size_t>(slot) * slot_bytes;
  }

protected:
  /// @param behind_bytes additional bytes after the slots. Throws Error (unavailable).
  explicit StagingSlots(std::size_t behind_bytes = 0)
      : memory_(map(slots * slot_bytes + behind_bytes)) {
    for (std::int16_t slot = slots; slot-- > 0;)
      free_.push_back(slot);
  }
  std::byte* memory() const { return memory_.get(); }
  std::size_t size_bytes() const { return memory_.get_deleter().size_bytes; }
  std::byte* behind() const { return memory() + slots * slot_bytes; }

private:
  struct Unmap {
    std::size_t size_bytes = 0;
    void operator()(std::byte* memory) const { ::munmap(memory, size_bytes); }
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;
  static Mapping map(std::size_t size_bytes) {
    void* const memory =
        ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw system_error(purpose, "map", errno, "free host memory");
    return Mapping(static_cast<std::byte*>(memory), Unmap{size_bytes});
  }

  Mapping memory_;
  std::vector<std::int16_t> free_;
};

} // namespace shmemctl::rc
