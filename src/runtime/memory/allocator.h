// The symmetric heap's allocator: offsets only, so that it is the same for every kind of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace shmemctl {

/// First fit over an address-ordered free list with coalescing. Deterministic: the same calls give
/// the same offsets on every PE. Not thread safe. Stores nothing in the memory that it manages.
class Allocator {
public:
  static constexpr std::size_t minimum_alignment_bytes = 64;

  explicit Allocator(std::size_t size_bytes);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// The lowest offset that fits; nothing if none does, or if `size_bytes` is 0.
  /// @param alignment_bytes a power of two, raised to minimum_alignment_bytes if smaller
  std::optional<std::size_t> allocate(std::size_t size_bytes,
                                      std::size_t alignment_bytes = minimum_alignment_bytes);
  enum class FreeResult { freed, not_allocated, inside_a_block };
  FreeResult free(std::size_t offset);
  /// Adds memory at the end.
  void grow(std::size_t more_bytes);

  /// The requested size of the allocated block that begins at `offset`; nothing if there is none.
  std::optional<std::size_t> block_bytes(std::size_t offset) const;
  std::size_t size_bytes() const;
  std::size_t used_bytes() const; ///< allocated bytes, with padding
  std::size_t live_blocks() const;
  std::size_t largest_free_bytes() const;
  /// The size of the free block at the very end, which grow() extends.
  std::size_t free_tail_bytes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl
