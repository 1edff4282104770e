// The buffers of one memory block, each between guard bytes that must not be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shmemctl::moe {

class BufferLayout {
public:
  /// @return the offset of the new buffer, aligned to a cache line
  std::size_t add(const std::string& name, std::size_t size_bytes);
  /// Total size, including guards.
  std::size_t size_bytes() const { return end_ + guard_bytes; }

  /// Writes all guards.
  void set_guards(std::byte* memory) const;
  /// The name of a buffer next to which a guard byte was overwritten; nothing if there is none.
  std::optional<std::string> broken_guard(const std::byte* memory) const;

  static constexpr std::size_t guard_bytes = 256;

private:
  struct Part {
    std::string name;
    std::size_t offset, size_bytes;
  };
  template <class Visit>
  void for_each_guard(Visit&& visit) const;

  std::vector<Part> parts_;
  std::size_t end_ = 0;
};

/// Poison: no valid BF16 value, FP8 code, rank or token index has these bytes (NaN, and -1).
inline constexpr std::byte poison_byte{0xff};
/// Offset of the first byte that is not poison; nothing if all bytes are.
std::optional<std::size_t> first_written(const std::byte* begin, std::size_t size_bytes);

} // namespace shmemctl::moe
