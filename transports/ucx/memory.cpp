#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include "transports/ucx/memory.h"

namespace shmemctl {

UcxPiece UcxMemory::map(std::byte* base, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  std::byte* at = base + offset_bytes;
  const UcxMapping& mapping = mappings_.emplace_back(context_, at, size_bytes);
  return {offset_bytes, size_bytes, reinterpret_cast<std::uint64_t>(at), mapping.packed_key()};
}

std::string UcxMemory::set_region(const RegionView& view) {
  const std::lock_guard lock(mutex_);
  Region& region = regions_[view.region];
  const bool moved = region.base != view.base || region.size_bytes > view.size_bytes;
  // Registering anew what is there already costs time and locked memory, but keys must not grow
  // for ever.
  const bool too_many =
      region.pieces.size() == max_ucx_pieces && region.size_bytes < view.size_bytes;
  if (moved || too_many)
    region = {view.base, {}, 0};
  if (view.size_bytes > region.size_bytes) {
    region.pieces.push_back(map(view.base, region.size_bytes, view.size_bytes - region.size_bytes));
    region.size_bytes = view.size_bytes;
  }
  return to_key(region.pieces);
}

void UcxMemory::set_keys(int region, const std::vector<std::string>& keys) {
  std::vector<Pieces> parsed;
  for (const std::string& key : keys)
    parsed.push_back(std::make_shared<const std::vector<UcxPiece>>(parse_key(key)));
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
  local_.try_emplace(base, context_, base, size_bytes);
}

void UcxMemory::remove_local(void* base) {
  const std::lock_guard lock(mutex_);
  local_.erase(base);
}

} // namespace shmemctl

#endif
