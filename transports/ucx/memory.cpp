#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include "transports/ucx/memory.h"

#include <iterator>
#include <tuple>
#include <utility>

namespace shmemctl {

namespace {

constexpr std::size_t longest_key_bytes = 4096; // longest key that set_region() accepts

} // namespace

UcxPiece UcxMemory::map(std::byte* base, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  std::byte* at = base + offset_bytes;
  const UcxMapping& mapping = mappings_.emplace_back(context_, at, size_bytes);
  return {offset_bytes, size_bytes, reinterpret_cast<std::uint64_t>(at), mapping.packed_key()};
}

void UcxMemory::extend(Region& region, std::uint64_t size_bytes) {
  region.pieces.push_back(map(region.base, region.size_bytes, size_bytes - region.size_bytes));
  region.size_bytes = size_bytes;
}

std::string UcxMemory::set_region(const RegionView& view) {
  const std::lock_guard lock(mutex_);
  Region& region = regions_[view.region];
  if (region.base != view.base || region.size_bytes > view.size_bytes)
    region = {view.base, {}, 0};
  if (view.size_bytes > region.size_bytes) {
    // Only the new part is registered, since registration costs time and locked memory. If there
    // are too many pieces, the whole region is registered as one piece, so that keys do not
    // accumulate.
    if (region.pieces.size() == max_ucx_pieces)
      region = {view.base, {}, 0};
    extend(region, view.size_bytes);
  }
  std::string key = to_key(region.pieces);
  if (key.size() > longest_key_bytes && region.pieces.size() > 1) {
    region = {view.base, {}, 0};
    extend(region, view.size_bytes);
    key = to_key(region.pieces);
  }
  return key;
}

void UcxMemory::set_keys(int region, const std::vector<std::string>& keys) {
  std::vector<Pieces> parsed;
  for (const std::string& key : keys)
    parsed.push_back(key.empty() ? nullptr // the PE cannot use UCX
                                 : std::make_shared<const std::vector<UcxPiece>>(parse_key(key)));
  const std::lock_guard lock(mutex_);
  keys_[region] = std::move(parsed);
  version_.fetch_add(1, std::memory_order_release);
}

UcxMemory::Pieces UcxMemory::pieces(int region, int pe) const {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(region);
  const auto at = static_cast<std::size_t>(pe);
  return found == keys_.end() || at >= found->second.size() ? nullptr : found->second[at];
}

void UcxMemory::add_local(void* base, std::size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  local_.emplace(std::piecewise_construct, std::forward_as_tuple(base),
                 std::forward_as_tuple(context_, base, size_bytes));
}

void UcxMemory::remove_local(void* base) {
  const std::lock_guard lock(mutex_);
  const auto next = local_.upper_bound(base);
  if (next != local_.begin() && std::prev(next)->first == base)
    local_.erase(std::prev(next));
}

} // namespace shmemctl

#endif
