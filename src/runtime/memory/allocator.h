// The symmetric heap's allocator: offsets only, so that it is the same for every kind of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace shmemctl {

/// First fit over an address-ordered free list with coalescing. Deterministic: the same calls give
/// the same offsets on every PE. Not thread safe. Keeps nothing inside the memory it manages.
class Allocator {
public:
  static constexpr std::size_t minimum_alignment_bytes = 64;

  explicit Allocator(std::size_t size_bytes);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// The lowest offset that fits; nothing if none does, or `size_bytes` is 0.
  /// @param alignment_bytes a power of two; smaller than minimum_alignment_bytes counts as that
  std::optional<std::size_t> allocate(std::size_t size_bytes,
                                      std::size_t alignment_bytes = minimum_alignment_bytes);
  enum class FreeResult { freed, not_allocated, inside_a_block };
  FreeResult free(std::size_t offset);
  /// More room at the end.
  void grow(std::size_t more_bytes);

  /// Size asked for of the block that begins at `offset`.
  std::optional<std::size_t> block_bytes(std::size_t offset) const;
  std::size_t size_bytes() const;
  std::size_t used_bytes() const; ///< with padding
  std::size_t live_blocks() const;
  std::size_t largest_free_bytes() const;
  /// Free bytes at the very end: what grow() would extend.
  std::size_t free_tail_bytes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl
