// The memory of regions: registered here, and the keys of the peers' parts.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "transports/transport.h"
#include "transports/ucx/context.h"
#include "transports/ucx/key.h"

namespace shmemctl {

/// Thread safe.
class UcxMemory {
public:
  using Pieces = std::shared_ptr<const std::vector<UcxPiece>>;

  /// Before everything else.
  void use(std::shared_ptr<const UcxContext> context) { context_ = std::move(context); }

  /// Registers the new part of a region, and returns the key of the whole region.
  std::string set_region(const RegionView& region);
  void set_keys(int region, const std::vector<std::string>& keys);
  /// Changes when keys do.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// The pieces of that PE's part of a region; nothing if unknown.
  Pieces pieces(int region, int pe) const;

  /// Ranges may overlap, and several may start at the same address.
  void add_local(void* base, std::size_t size_bytes);
  /// The youngest that begins there; nothing happens if there is none.
  void remove_local(void* base);

private:
  struct Region {
    std::byte* base = nullptr;
    std::vector<UcxPiece> pieces;
    std::uint64_t size_bytes = 0; ///< bytes that the pieces cover
  };
  void extend(Region& region, std::uint64_t size_bytes);
  UcxPiece map(std::byte* base, std::uint64_t offset_bytes, std::uint64_t size_bytes);

  mutable std::mutex mutex_;
  std::shared_ptr<const UcxContext> context_;
  std::deque<UcxMapping> mappings_; ///< all of regions: what a region was before stays usable
  std::map<int, Region> regions_;
  /// Mappings; those of one address are in the order in which they were added.
  std::multimap<void*, UcxMapping> local_;
  std::map<int, std::vector<Pieces>> keys_; ///< by region and PE
  std::atomic<std::uint64_t> version_{0};
};

} // namespace shmemctl
