// The allocator's free blocks as a search tree by offset, in which each node stores the size of the
// largest block in its subtree.
#pragma once

#include <cstdint>
#include <vector>

namespace shmemctl {

/// A range of the managed memory, free or in use. All ranges are elements of one vector and refer
/// to each other by index, so growing the vector invalidates nothing. One cache line each.
struct alignas(64) MemoryBlock {
  static constexpr std::uint32_t none = 0xffffffff;

  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t asked_bytes = 0;   ///< requested size; 0 marks a free block
  std::uint64_t largest_bytes = 0; ///< of a free block: the largest size in its subtree
  std::uint32_t previous = none;   ///< neighbours by address, free or not
  std::uint32_t next = none;
  std::uint32_t left = none;
  std::uint32_t right = none;
  std::uint32_t parent = none;
  std::uint32_t priority = 0;

  bool free() const { return asked_bytes == 0; }
};

/// A treap (search tree by offset, heap by random priority; expected depth O(log n)). The
/// priorities come from a generator with a fixed seed, so the same calls give the same tree.
class FreeTree {
public:
  explicit FreeTree(std::vector<MemoryBlock>& blocks) : blocks_(blocks) {}

  /// The block's offset and size must be set.
  void insert(std::uint32_t block);
  void remove(std::uint32_t block);
  /// Updates the tree after the block's size, or its offset within the gap between its neighbours,
  /// has changed.
  void refresh(std::uint32_t block);
  std::uint64_t largest_bytes() const { return largest_of(root_); }
  /// The block of lowest offset with room for `size_bytes` at a multiple of `alignment_bytes` (a
  /// power of two); MemoryBlock::none if there is none. O(log n), plus one step for each lower
  /// block that is large enough but contains no aligned range.
  std::uint32_t lowest_fit(std::uint64_t size_bytes, std::uint64_t alignment_bytes) const;

private:
  MemoryBlock& at(std::uint32_t index) const { return blocks_[index]; }
  std::uint64_t largest_of(std::uint32_t index) const {
    return index == MemoryBlock::none ? 0 : at(index).largest_bytes;
  }
  std::uint64_t largest_below(const MemoryBlock& block) const;
  void update_upwards(std::uint32_t block);
  void replace_child(std::uint32_t parent, std::uint32_t child, std::uint32_t by);
  void rotate_up(std::uint32_t block);
  std::uint32_t next_priority();
  std::uint32_t leftmost_candidate(std::uint32_t subtree, std::uint64_t size_bytes) const;
  std::uint32_t next_candidate(std::uint32_t block, std::uint64_t size_bytes) const;

  std::vector<MemoryBlock>& blocks_;
  std::uint32_t root_ = MemoryBlock::none;
  std::uint32_t seed_ = 0x9e3779b9;
};

} // namespace shmemctl
