#include "src/runtime/memory/free_tree.h"

#include <algorithm>

namespace shmemctl {

namespace {

constexpr std::uint32_t no_node = MemoryBlock::none;

/// Whether an aligned range of that size fits in the block. Sums do not overflow, since offsets and
/// sizes are at most 2^62.
bool fits(const MemoryBlock& block, std::uint64_t size_bytes, std::uint64_t alignment_bytes) {
  const std::uint64_t start = (block.offset_bytes + alignment_bytes - 1) & ~(alignment_bytes - 1);
  const std::uint64_t padding = start - block.offset_bytes;
  return padding <= block.size_bytes && block.size_bytes - padding >= size_bytes;
}

} // namespace

std::uint64_t FreeTree::largest_below(const MemoryBlock& block) const {
  return std::max({block.size_bytes, largest_of(block.left), largest_of(block.right)});
}

std::uint32_t FreeTree::next_priority() {
  // xorshift32 (Marsaglia 2003): from any non-zero seed it generates all non-zero values.
  seed_ ^= seed_ << 13;
  seed_ ^= seed_ >> 17;
  seed_ ^= seed_ << 5;
  return seed_;
}

/// Recomputes `largest_bytes` from `block` towards the root, until it does not change.
void FreeTree::update_upwards(std::uint32_t block) {
  while (block != no_node) {
    MemoryBlock& here = at(block);
    const std::uint64_t largest = largest_below(here);
    if (largest == here.largest_bytes)
      return;
    here.largest_bytes = largest;
    block = here.parent;
  }
}

void FreeTree::replace_child(std::uint32_t parent, std::uint32_t child, std::uint32_t by) {
  if (parent == no_node)
    root_ = by;
  else if (at(parent).left == child)
    at(parent).left = by;
  else
    at(parent).right = by;
  if (by != no_node)
    at(by).parent = parent;
}

/// Rotates `block` and its parent; the order by offset is kept.
void FreeTree::rotate_up(std::uint32_t block) {
  const std::uint32_t above = at(block).parent;
  MemoryBlock& child = at(block);
  MemoryBlock& parent = at(above);
  const bool from_left = parent.left == block;
  const std::uint32_t moved = from_left ? child.right : child.left;
  replace_child(parent.parent, above, block);
  (from_left ? parent.left : parent.right) = moved;
  if (moved != no_node)
    at(moved).parent = above;
  (from_left ? child.right : child.left) = above;
  parent.parent = block;
  child.largest_bytes = parent.largest_bytes;
  parent.largest_bytes = largest_below(parent);
}

void FreeTree::insert(std::uint32_t block) {
  MemoryBlock& inserted = at(block);
  inserted.left = inserted.right = no_node;
  inserted.priority = next_priority();
  inserted.largest_bytes = inserted.size_bytes;
  std::uint32_t parent = no_node;
  bool left = false;
  for (std::uint32_t below = root_; below != no_node;) {
    MemoryBlock& here = at(below);
    here.largest_bytes = std::max(here.largest_bytes, inserted.size_bytes);
    parent = below;
    left = inserted.offset_bytes < here.offset_bytes;
    below = left ? here.left : here.right;
  }
  inserted.parent = parent;
  if (parent == no_node)
    root_ = block;
  else
    (left ? at(parent).left : at(parent).right) = block;
  while (inserted.parent != no_node && at(inserted.parent).priority < inserted.priority)
    rotate_up(block);
}

void FreeTree::remove(std::uint32_t block) {
  MemoryBlock& removed = at(block);
  while (removed.left != no_node && removed.right != no_node)
    rotate_up(at(removed.left).priority > at(removed.right).priority ? removed.left
                                                                     : removed.right);
  replace_child(removed.parent, block, removed.left != no_node ? removed.left : removed.right);
  update_upwards(removed.parent);
}

void FreeTree::refresh(std::uint32_t block) {
  update_upwards(block);
}

/// The lowest block of at least `size_bytes` in a subtree that is known to contain one.
std::uint32_t FreeTree::leftmost_candidate(std::uint32_t subtree, std::uint64_t size_bytes) const {
  while (true) {
    const MemoryBlock& here = at(subtree);
    if (largest_of(here.left) >= size_bytes)
      subtree = here.left;
    else if (here.size_bytes >= size_bytes)
      return subtree;
    else
      subtree = here.right;
  }
}

/// The next block after `block` that has at least `size_bytes`.
std::uint32_t FreeTree::next_candidate(std::uint32_t block, std::uint64_t size_bytes) const {
  if (largest_of(at(block).right) >= size_bytes)
    return leftmost_candidate(at(block).right, size_bytes);
  for (std::uint32_t parent = at(block).parent; parent != no_node;
       block = parent, parent = at(parent).parent) {
    if (at(parent).left != block)
      continue;
    if (at(parent).size_bytes >= size_bytes)
      return parent;
    if (largest_of(at(parent).right) >= size_bytes)
      return leftmost_candidate(at(parent).right, size_bytes);
  }
  return no_node;
}

std::uint32_t FreeTree::lowest_fit(std::uint64_t size_bytes, std::uint64_t alignment_bytes) const {
  if (largest_of(root_) < size_bytes)
    return no_node;
  std::uint32_t block = leftmost_candidate(root_, size_bytes);
  while (block != no_node && !fits(at(block), size_bytes, alignment_bytes))
    block = next_candidate(block, size_bytes);
  return block;
}

} // namespace shmemctl
