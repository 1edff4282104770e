// The registered memory of this PE, and the keys of the peers' regions.
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

  /// Must be called before all other functions.
  void use(std::shared_ptr<const UcxContext> context) { context_ = std::move(context); }

  /// Registers the new part of a region, and returns the key of the whole region.
  std::string set_region(const RegionView& region);
  void set_keys(int region, const std::vector<std::string>& keys);
  /// A number that changes whenever keys change.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// The pieces of that PE's part of a region; nullptr if unknown.
  Pieces pieces(int region, int pe) const;

  /// Registers a range. Ranges may overlap, and several may start at the same address.
  void add_local(void* base, std::size_t size_bytes);
  /// Removes the newest range that begins at `base`, if there is one.
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
  std::deque<UcxMapping> mappings_; ///< of all regions; earlier extents of a region stay usable
  std::map<int, Region> regions_;
  /// Mappings by address; those of one address are in the order in which they were added.
  std::multimap<void*, UcxMapping> local_;
  std::map<int, std::vector<Pieces>> keys_; ///< by region and PE
  std::atomic<std::uint64_t> version_{0};
};

} // namespace shmemctl
