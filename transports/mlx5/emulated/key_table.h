// Memory keys of the emulated HCA, with their access rights and address ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/mlx5/emulated/outcome.h"

namespace shmemctl::mlx5 {

/// The memory that a key refers to.
struct KeyWindow {
  std::uint32_t key = 0;
  /// Address that WQEs use: a virtual address in the process that registered the memory.
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  unsigned access = 0; ///< bits of Access
  /// Address at which it is mapped here; nullptr if a transport reaches it.
  std::byte* mapped = nullptr;
  bool is_gpu = false; ///< whether it is GPU memory, which the CPU must not access even if mapped
  /// For transports: the region's number, and the memory's offset in the region.
  int region = 0;
  std::uint64_t region_offset_bytes = 0;
};

/// The result of a look-up.
struct KeyMatch {
  Outcome outcome;
  const KeyWindow* window = nullptr;
  std::uint64_t offset_bytes = 0; ///< offset in the window
};

/// Not thread safe.
class KeyTable {
public:
  /// Adds a key, or replaces its memory.
  void add(const KeyWindow& window);
  void remove(std::uint32_t key);
  /// Removes the keys of a transport's region.
  void remove_region(int region);
  bool knows(std::uint32_t key) const { return find(key) != nullptr; }

  /// Looks up a range. It must be entirely within the key's memory, and the key must allow all bits
  /// of `access`.
  KeyMatch find_local(std::uint32_t lkey, std::uint64_t address, std::uint64_t size_bytes,
                      unsigned access) const;
  KeyMatch find_remote(std::uint32_t rkey, std::uint64_t address, std::uint64_t size_bytes,
                       unsigned access) const;

private:
  const KeyWindow* find(std::uint32_t key) const;

  std::vector<KeyWindow> windows_; ///< sorted by key
  mutable std::size_t latest_ = 0; ///< index of the window found last
};

} // namespace shmemctl::mlx5
