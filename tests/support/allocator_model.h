// What Allocator promises, in the plainest way: a map of live blocks that is searched from the
// front. Drives both and says where they differ.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "src/runtime/memory/allocator.h"

namespace shmemctl::test {

class AllocatorModel {
public:
  explicit AllocatorModel(std::uint64_t size_bytes) : allocator_(size_bytes), size_(size_bytes) {}

  /// Each returns what differed, or "".
  std::string allocate(std::uint64_t size_bytes, std::uint64_t alignment_bytes) {
    const auto wanted = lowest_fit(size_bytes, std::max<std::uint64_t>(alignment_bytes, 64));
    const auto got = allocator_.allocate(size_bytes, alignment_bytes);
    if (wanted)
      live_[*wanted] = size_bytes;
    if (got != wanted)
      return "allocate " + std::to_string(size_bytes) + ": " + text(got) + ", not " + text(wanted);
    return judge();
  }

  std::string free(std::uint64_t offset) {
    Allocator::FreeResult wanted = Allocator::FreeResult::not_allocated;
    for (const auto& [begin, size_bytes] : live_)
      if (offset > begin && offset < begin + rounded(size_bytes))
        wanted = Allocator::FreeResult::inside_a_block;
    if (live_.erase(offset) != 0)
      wanted = Allocator::FreeResult::freed;
    if (allocator_.free(offset) != wanted)
      return "free " + std::to_string(offset);
    return judge();
  }

  std::string grow(std::uint64_t more_bytes) {
    size_ += more_bytes;
    allocator_.grow(more_bytes);
    return judge();
  }

  /// The offset of the n-th live block, counted round; 1 if there is none.
  std::uint64_t live_offset(std::size_t n) const {
    return live_.empty()
               ? 1
               : std::next(live_.begin(), static_cast<std::ptrdiff_t>(n % live_.size()))->first;
  }
  const Allocator& allocator() const { return allocator_; }

private:
  static std::uint64_t rounded(std::uint64_t size_bytes) { return (size_bytes + 63) / 64 * 64; }
  static std::string text(const std::optional<std::size_t>& offset) {
    return offset ? std::to_string(*offset) : "nothing";
  }

  std::optional<std::size_t> lowest_fit(std::uint64_t size_bytes, std::uint64_t alignment) const {
    if (size_bytes == 0 || (alignment & (alignment - 1)) != 0)
      return std::nullopt;
    std::uint64_t at = 0;
    for (const auto& [begin, live_bytes] : live_) {
      at = (at + alignment - 1) / alignment * alignment;
      if (at + rounded(size_bytes) <= begin)
        return at;
      at = begin + rounded(live_bytes);
    }
    at = (at + alignment - 1) / alignment * alignment;
    return at + rounded(size_bytes) <= size_ / 64 * 64 ? std::optional<std::size_t>(at)
                                                       : std::nullopt;
  }

  /// All that the allocator tells about itself. Gaps that were not joined would show as a largest
  /// free block that is too small.
  std::string judge() const {
    std::uint64_t used = 0, end = 0, largest = 0;
    for (const auto& [begin, live_bytes] : live_) {
      if (begin < end)
        return "blocks overlap at " + std::to_string(begin);
      if (allocator_.block_bytes(begin) != live_bytes)
        return "size of the block at " + std::to_string(begin);
      largest = std::max(largest, begin - end);
      end = begin + rounded(live_bytes);
      used += rounded(live_bytes);
    }
    const std::uint64_t tail = size_ / 64 * 64 - end;
    if (allocator_.used_bytes() != used)
      return "used_bytes";
    if (allocator_.size_bytes() != size_)
      return "size_bytes";
    if (allocator_.live_blocks() != live_.size())
      return "live_blocks";
    if (allocator_.largest_free_bytes() != std::max(largest, tail))
      return "largest_free_bytes";
    return allocator_.free_tail_bytes() == tail ? "" : "free_tail_bytes";
  }

  Allocator allocator_;
  std::uint64_t size_;
  std::map<std::uint64_t, std::uint64_t> live_;
};

} // namespace shmemctl::test
