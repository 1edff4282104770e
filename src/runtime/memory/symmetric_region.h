// A symmetric region: every process maps the part of slot i at its own base + i * stride.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/runtime/memory/backing.h"
#include "src/runtime/memory/local_peers.h"

namespace shmemctl {

/// Memory of a symmetric heap: of equal size on every PE, and growable.
class HeapMemory {
public:
  virtual ~HeapMemory() = default;
  virtual std::byte* base() const = 0;          ///< this PE's part
  virtual std::size_t size_bytes() const = 0;   ///< committed, per PE
  virtual std::size_t stride_bytes() const = 0; ///< the maximum size, per PE
  /// Collective: commits more memory after the existing part; nothing moves. Throws Error
  /// (unavailable).
  virtual void grow(std::size_t more_bytes, const Deadline& deadline) = 0;
  bool contains(const void* address) const; ///< in this PE's committed part
};

class SymmetricRegion : public HeapMemory {
public:
  /// Reserves slots * stride_bytes of address space; maps nothing.
  /// @param name for messages: "heap", "internal", "staging"
  SymmetricRegion(std::string name, std::size_t stride_bytes, LocalPeers& peers,
                  HeapBacking& backing);
  ~SymmetricRegion() override;
  SymmetricRegion(const SymmetricRegion&) = delete;
  SymmetricRegion& operator=(const SymmetricRegion&) = delete;

  /// Collective: commits `more_bytes` (rounded up to the granularity) in every slot, after the
  /// existing part; nothing moves. Throws Error (unavailable) with the limit or size that was
  /// exceeded.
  void grow(std::size_t more_bytes, const Deadline& deadline) override;

  std::byte* base() const override;
  std::byte* slot_base(int slot) const; ///< address at which that slot's part is mapped here
  std::size_t size_bytes() const override;
  std::size_t stride_bytes() const override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The executable's own global and static variables (.data and .bss) as a symmetric region, because
/// OpenSHMEM makes them remotely accessible. The pages are copied into shared memory, which is then
/// mapped in their place, so this must happen before other threads run. Peers' parts are mapped
/// elsewhere (slot_base()); offsets agree because all PEs run the same executable, which the caller
/// verifies by fingerprint() before share(). The destructor copies the variables back into private
/// memory.
class StaticDataRegion {
public:
  /// Finds the segment of the main program and shares it. Throws Error (unavailable).
  explicit StaticDataRegion(HeapBacking& backing);
  ~StaticDataRegion();
  StaticDataRegion(const StaticDataRegion&) = delete;
  StaticDataRegion& operator=(const StaticDataRegion&) = delete;

  /// Collective: maps the peers' segments.
  void share(LocalPeers& peers, const Deadline& deadline);
  std::byte* base() const;
  std::size_t size_bytes() const;
  std::byte* slot_base(int slot) const;
  /// A text that must be equal on all PEs: build id, size and address.
  std::string fingerprint() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl
