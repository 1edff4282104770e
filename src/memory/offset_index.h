// From the offset of a live block to its index: a hash table without an allocation per entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shmemctl {

/// Open addressing with linear probing, at most half full; erasing shifts entries back, so that
/// no marks of erased entries pile up. Offsets are multiples of 64.
class OffsetIndex {
public:
  OffsetIndex() : entries_(1024) {}

  /// `offset` is not in the table.
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
  /// Fibonacci hashing: offsets come in strides.
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

} // namespace shmemctl
