#include "transports/libfabric/memory.h"

#include <algorithm>

namespace shmemctl::fabric {

namespace {

Error no_key(int pe, const std::string& what,
             const std::string& fix = "report this as a bug in shmemctl, with the command line") {
  return {ExitCode::unavailable, "memory of PE " + std::to_string(pe), "access", what, fix};
}

} // namespace

MemoryMap::Registrations MemoryMap::register_area(std::byte* base, std::size_t size_bytes,
                                                  const DeviceMemory* gpu) const {
  Registrations registrations;
  for (const Endpoint* endpoint : endpoints_)
    registrations.emplace_back(*endpoint, base, size_bytes, gpu);
  return registrations;
}

std::string MemoryMap::set_region(const RegionView& region) {
  const RegionView known = regions_[static_cast<std::size_t>(region.region)];
  const bool goes_on = known.base == region.base && known.size_bytes <= region.size_bytes;
  PieceKey key;
  key.offset_bytes = goes_on ? known.size_bytes : 0;
  key.size_bytes = region.size_bytes - key.offset_bytes;
  if (key.size_bytes > 0) {
    std::byte* const base = region.base + key.offset_bytes;
    const auto size_bytes = static_cast<std::size_t>(key.size_bytes);
    const std::shared_ptr<const DeviceMemory> gpu = devices_.learn(region);
    Registrations registrations = register_area(base, size_bytes, gpu.get());
    if (gpu)
      gpu_pieces_[region.region].push_back(base);
    for (std::size_t i = 0; i < endpoints_.size(); ++i)
      key.by_endpoint.push_back({registrations[i].key(), endpoints_[i]->promises().virtual_addresses
                                                             ? reinterpret_cast<std::uint64_t>(base)
                                                             : 0});
    const std::unique_lock lock(areas_mutex_);
    areas_.add(base, size_bytes, std::move(registrations));
  }
  regions_.set(region);
  return to_bytes(key);
}

void MemoryMap::set_keys(int region, const std::vector<std::string>& keys) {
  const std::lock_guard lock(keys_mutex_);
  auto& current = current_[static_cast<std::size_t>(region)];
  const RaddrSegments* before = current.load(std::memory_order_acquire);
  RaddrSegments after = before ? *before : RaddrSegments(n_pes_);
  for (std::size_t pe = 0; pe < keys.size() && pe < n_pes_; ++pe) {
    if (keys[pe].empty())
      continue; // the PE is not a peer
    const auto key = from_bytes<PieceKey>(keys[pe]);
    if (!key || (key->size_bytes > 0 && key->by_endpoint.size() != endpoints_.size()))
      throw no_key(static_cast<int>(pe), "it sent a malformed key",
                   "run the same version of shmemctl on all hosts");
    if (key->offset_bytes == 0 && key->size_bytes > 0)
      after[pe].clear(); // the peer's region has moved
    if (key->size_bytes > 0)
      after[pe].push_back(*key);
  }
  tables_.push_back(std::move(after));
  current.store(&tables_.back(), std::memory_order_release);
}

void MemoryMap::drop_device_region(int region) {
  {
    const std::unique_lock lock(areas_mutex_);
    for (const std::byte* base : gpu_pieces_[region])
      areas_.remove(base);
    gpu_pieces_.erase(region);
  }
  regions_.set({region, nullptr, 0, {}});
  devices_.drop(region);
  const std::lock_guard lock(keys_mutex_);
  tables_.emplace_back(n_pes_);
  current_[static_cast<std::size_t>(region)].store(&tables_.back(), std::memory_order_release);
}

void MemoryMap::add_local(void* base, std::size_t size_bytes) {
  auto* const bytes = static_cast<std::byte*>(base);
  Registrations registrations = register_area(bytes, size_bytes);
  const std::unique_lock lock(areas_mutex_);
  areas_.add(bytes, size_bytes, std::move(registrations));
}

void MemoryMap::remove_local(void* base) {
  const std::unique_lock lock(areas_mutex_);
  areas_.remove(static_cast<const std::byte*>(base));
}

LocalPart MemoryMap::local(std::size_t endpoint, const void* memory, std::size_t size_bytes) const {
  const auto* const at = static_cast<const std::byte*>(memory);
  const std::shared_lock lock(areas_mutex_);
  if (const auto found = areas_.find(at))
    return {(*found->value)[endpoint].descriptor(), true, std::min(size_bytes, found->rest_bytes)};
  return {nullptr, false, areas_.up_to_next(at, size_bytes)};
}

RemotePart MemoryMap::remote(std::size_t endpoint, const RemoteAddress& address,
                             std::size_t size_bytes) const {
  const auto region = static_cast<std::size_t>(address.region);
  const RaddrSegments* pieces =
      region < current_.size() ? current_[region].load(std::memory_order_acquire) : nullptr;
  const auto pe = static_cast<std::size_t>(address.pe);
  if (pieces && pe < n_pes_)
    for (const PieceKey& piece : (*pieces)[pe])
      if (address.offset_bytes - piece.offset_bytes < piece.size_bytes) {
        const std::uint64_t in_piece = address.offset_bytes - piece.offset_bytes;
        const PieceKey::EndpointKey& each = piece.by_endpoint[endpoint];
        return {each.base + in_piece, each.key,
                std::min(size_bytes, static_cast<std::size_t>(piece.size_bytes - in_piece))};
      }
  throw no_key(address.pe, "no key received for offset " + std::to_string(address.offset_bytes) +
                               " of region " + std::to_string(address.region));
}

} // namespace shmemctl::fabric
