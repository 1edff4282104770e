// Memory keys of the emulated HCA: access rights and address range of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/mlx5/emulated/outcome.h"

namespace shmemctl::mlx5 {

/// The memory of a key.
struct KeyWindow {
  std::uint32_t key = 0;
  /// Address that WQEs use: a virtual address of the process that registered it.
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  unsigned access = 0; ///< Access
  /// Where it is mapped here; nullptr if it is reached by a transport.
  std::byte* mapped = nullptr;
  bool is_gpu = false; ///< GPU memory: no processor accesses it, mapped or not
  /// For transports: the region's number, and where the memory begins in it.
  int region = 0;
  std::uint64_t region_offset_bytes = 0;
};

/// Where a checked piece is.
struct KeyMatch {
  Outcome outcome;
  const KeyWindow* window = nullptr;
  std::uint64_t offset_bytes = 0; ///< in the window
};

/// Not thread safe.
class KeyTable {
public:
  /// Replaces the key's previous memory.
  void add(const KeyWindow& window);
  void remove(std::uint32_t key);
  bool knows(std::uint32_t key) const { return find(key) != nullptr; }

  /// The range must be entirely within the key's memory, and all bits of `access` be allowed.
  KeyMatch find_local(std::uint32_t lkey, std::uint64_t address, std::uint64_t size_bytes,
                      unsigned access) const;
  KeyMatch find_remote(std::uint32_t rkey, std::uint64_t address, std::uint64_t size_bytes,
                       unsigned access) const;

private:
  const KeyWindow* find(std::uint32_t key) const;

  std::vector<KeyWindow> windows_; ///< by key
  mutable std::size_t latest_ = 0; ///< the one found last
};

} // namespace shmemctl::mlx5
