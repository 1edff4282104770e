#include "src/runtime/memory/allocator.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/round_up.h"
#include "src/runtime/memory/free_tree.h"

namespace shmemctl {

namespace {

constexpr std::uint32_t none = MemoryBlock::none;
constexpr std::uint64_t unit_bytes = Allocator::minimum_alignment_bytes;
/// No memory is larger, and the sum of two sizes below this does not overflow.
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 62;

/// Maps the offset of a live block to its index: a hash table without an allocation per entry. Open
/// addressing with linear probing, at most half full; erasing moves entries back, so that no marks
/// of erased entries accumulate. Offsets are multiples of 64.
class OffsetIndex {
public:
  OffsetIndex() : entries_(1024) {}

  /// `offset` must not be in the table.
  void insert(std::uint64_t offset, std::uint32_t block) {
    if (2 * (count_ + 1) > entries_.size())
      enlarge();
    place({key_of(offset), block});
    ++count_;
  }

  std::optional<std::uint32_t> find(std::uint64_t offset) const {
    const std::size_t at = slot_of(key_of(offset));
    return entries_[at].key == 0 ? std::nullopt : std::optional(entries_[at].block);
  }

  void erase(std::uint64_t offset) {
    std::size_t hole = slot_of(key_of(offset));
    if (entries_[hole].key == 0)
      return;
    for (std::size_t at = hole;;) {
      at = (at + 1) & mask();
      if (entries_[at].key == 0)
        break;
      // An entry may move into the hole unless its own home slot lies after the hole.
      if (((at - home_of(entries_[at].key)) & mask()) >= ((at - hole) & mask())) {
        entries_[hole] = entries_[at];
        hole = at;
      }
    }
    entries_[hole].key = 0;
    --count_;
  }

private:
  struct Entry {
    std::uint64_t key = 0; ///< 0 is empty
    std::uint32_t block = 0;
  };
  static std::uint64_t key_of(std::uint64_t offset) { return offset / 64 + 1; }
  std::size_t mask() const { return entries_.size() - 1; }
  /// Fibonacci hashing, because offsets often have a constant stride.
  std::size_t home_of(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ull) >> 32) & mask();
  }
  std::size_t slot_of(std::uint64_t key) const {
    std::size_t at = home_of(key);
    while (entries_[at].key != 0 && entries_[at].key != key)
      at = (at + 1) & mask();
    return at;
  }
  void place(const Entry& entry) { entries_[slot_of(entry.key)] = entry; }
  void enlarge() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.key != 0)
        place(entry);
  }

  std::vector<Entry> entries_;
  std::size_t count_ = 0;
};

} // namespace

struct Allocator::Impl {
  std::vector<MemoryBlock> blocks;
  std::vector<std::uint32_t> spare; ///< indices that can be reused
  FreeTree free_blocks{blocks};
  OffsetIndex live;
  std::uint32_t last = none; ///< block at the highest address
  std::uint64_t size = 0, managed = 0, used = 0;
  std::size_t live_count = 0;

  std::uint32_t make_block(std::uint64_t offset, std::uint64_t size_bytes) {
    std::uint32_t index;
    if (spare.empty()) {
      index = static_cast<std::uint32_t>(blocks.size());
      blocks.emplace_back();
    } else {
      index = spare.back();
      spare.pop_back();
      blocks[index] = MemoryBlock{};
    }
    blocks[index].offset_bytes = offset;
    blocks[index].size_bytes = size_bytes;
    return index;
  }

  /// Links `block` into the address order after `previous` (none: at the front).
  void link_after(std::uint32_t block, std::uint32_t previous, std::uint32_t next) {
    blocks[block].previous = previous;
    blocks[block].next = next;
    if (previous != none)
      blocks[previous].next = block;
    if (next != none)
      blocks[next].previous = block;
    else
      last = block;
  }

  void drop_block(std::uint32_t block) {
    const std::uint32_t previous = blocks[block].previous, next = blocks[block].next;
    if (previous != none)
      blocks[previous].next = next;
    if (next != none)
      blocks[next].previous = previous;
    else
      last = previous;
    spare.push_back(block);
  }

  bool is_free(std::uint32_t block) const { return block != none && blocks[block].free(); }

  std::uint64_t take(std::uint32_t block, std::uint64_t size_bytes, std::uint64_t alignment,
                     std::uint64_t asked);
  void release(std::uint32_t block);
  bool inside_live_block(std::uint64_t offset) const;
};

/// Cuts the range out of a free block that contains it. The remainders before and after it stay
/// free.
std::uint64_t Allocator::Impl::take(std::uint32_t block, std::uint64_t size_bytes,
                                    std::uint64_t alignment, std::uint64_t asked) {
  const std::uint64_t begin = blocks[block].offset_bytes;
  const std::uint64_t end = begin + blocks[block].size_bytes;
  const std::uint64_t start = round_up_to_power(begin, alignment);
  const std::uint64_t rest_bytes = end - (start + size_bytes);
  std::uint32_t taken;
  if (start == begin && rest_bytes == 0) {
    free_blocks.remove(block);
    taken = block;
  } else if (start == begin) {
    // The free block loses its front and keeps its node in the tree.
    taken = make_block(start, size_bytes);
    link_after(taken, blocks[block].previous, block);
    blocks[block].offset_bytes = start + size_bytes;
    blocks[block].size_bytes = rest_bytes;
    free_blocks.refresh(block);
  } else {
    taken = make_block(start, size_bytes);
    link_after(taken, block, blocks[block].next);
    blocks[block].size_bytes = start - begin;
    free_blocks.refresh(block);
    if (rest_bytes > 0) {
      const std::uint32_t next = make_block(start + size_bytes, rest_bytes);
      link_after(next, taken, blocks[taken].next);
      free_blocks.insert(next);
    }
  }
  blocks[taken].asked_bytes = asked;
  live.insert(start, taken);
  used += size_bytes;
  ++live_count;
  return start;
}

/// Frees the block and merges it with free neighbours.
void Allocator::Impl::release(std::uint32_t block) {
  MemoryBlock& freed = blocks[block];
  live.erase(freed.offset_bytes);
  used -= freed.size_bytes;
  --live_count;
  freed.asked_bytes = 0;
  const std::uint32_t before = freed.previous, next = freed.next;
  const std::uint64_t end = freed.offset_bytes + freed.size_bytes;
  if (is_free(before)) {
    std::uint64_t joined_end = end;
    if (is_free(next)) {
      joined_end += blocks[next].size_bytes;
      free_blocks.remove(next);
      drop_block(next);
    }
    blocks[before].size_bytes = joined_end - blocks[before].offset_bytes;
    free_blocks.refresh(before);
    drop_block(block);
  } else if (is_free(next)) {
    blocks[next].size_bytes += freed.size_bytes;
    blocks[next].offset_bytes = freed.offset_bytes;
    free_blocks.refresh(next);
    drop_block(block);
  } else {
    free_blocks.insert(block);
  }
}

/// A linear search, since this is needed only for messages about a wrong address.
bool Allocator::Impl::inside_live_block(std::uint64_t offset) const {
  std::uint32_t block = last;
  while (block != none && blocks[block].offset_bytes > offset)
    block = blocks[block].previous;
  return block != none && !blocks[block].free() &&
         offset < blocks[block].offset_bytes + blocks[block].size_bytes;
}

Allocator::Allocator(std::size_t size_bytes) : impl_(std::make_unique<Impl>()) {
  grow(size_bytes);
}

Allocator::~Allocator() = default;

std::optional<std::size_t> Allocator::allocate(std::size_t size_bytes,
                                               std::size_t alignment_bytes) {
  if (size_bytes == 0 || size_bytes > max_bytes || alignment_bytes > max_bytes ||
      !std::has_single_bit(std::max<std::size_t>(alignment_bytes, 1)))
    return std::nullopt;
  const std::uint64_t rounded = round_up(std::uint64_t{size_bytes}, unit_bytes);
  const std::uint64_t alignment = std::max<std::uint64_t>(alignment_bytes, unit_bytes);
  const std::uint32_t block = impl_->free_blocks.lowest_fit(rounded, alignment);
  if (block == none)
    return std::nullopt;
  return impl_->take(block, rounded, alignment, size_bytes);
}

Allocator::FreeResult Allocator::free(std::size_t offset) {
  const auto block = offset % unit_bytes == 0 ? impl_->live.find(offset) : std::nullopt;
  if (!block)
    return impl_->inside_live_block(offset) ? FreeResult::inside_a_block
                                            : FreeResult::not_allocated;
  impl_->release(*block);
  return FreeResult::freed;
}

void Allocator::grow(std::size_t more_bytes) {
  Impl& own = *impl_;
  own.size = std::min(own.size + std::min<std::uint64_t>(more_bytes, max_bytes), max_bytes);
  const std::uint64_t end = own.size / unit_bytes * unit_bytes;
  const std::uint64_t added = end - own.managed;
  if (added == 0)
    return;
  if (own.is_free(own.last)) {
    own.blocks[own.last].size_bytes += added;
    own.free_blocks.refresh(own.last);
  } else {
    const std::uint32_t block = own.make_block(own.managed, added);
    own.link_after(block, own.last, none);
    own.free_blocks.insert(block);
  }
  own.managed = end;
}

std::optional<std::size_t> Allocator::block_bytes(std::size_t offset) const {
  const auto block = offset % unit_bytes == 0 ? impl_->live.find(offset) : std::nullopt;
  if (!block)
    return std::nullopt;
  return impl_->blocks[*block].asked_bytes;
}

std::size_t Allocator::size_bytes() const {
  return impl_->size;
}

std::size_t Allocator::used_bytes() const {
  return impl_->used;
}

std::size_t Allocator::live_blocks() const {
  return impl_->live_count;
}

std::size_t Allocator::largest_free_bytes() const {
  return impl_->free_blocks.largest_bytes();
}

std::size_t Allocator::free_tail_bytes() const {
  return impl_->is_free(impl_->last) ? impl_->blocks[impl_->last].size_bytes : 0;
}

} // namespace shmemctl
