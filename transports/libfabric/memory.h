// Registered memory: this PE's own, with each endpoint, and the peers' keys. A region that grows
// gets an additional piece; existing pieces stay registered, so memory is not pinned twice.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "transports/device_regions.h"
#include "transports/libfabric/endpoint.h"
#include "transports/libfabric/interval_map.h"
#include "transports/libfabric/wire.h"
#include "transports/region_table.h"

namespace shmemctl::fabric {

/// The start of a range that is the same all over.
struct LocalPart {
  void* descriptor = nullptr;
  bool registered = false;
  std::size_t size_bytes = 0;
};
struct RemotePart {
  std::uint64_t address = 0, key = 0;
  std::size_t size_bytes = 0;
};

/// Thread safe. Look-ups of remote memory take no lock.
class MemoryMap {
public:
  explicit MemoryMap(int n_pes) : n_pes_(static_cast<std::size_t>(n_pes)) {}

  /// From now on memory is registered with these; once, before anything else.
  void use(const std::vector<const Endpoint*>& endpoints) { endpoints_ = endpoints; }

  /// Registers the new part of the region, and returns its key. Throws Error.
  std::string set_region(const RegionView& region);
  /// @param keys by PE: what set_region() returned there. Throws Error for what is no key.
  void set_keys(int region, const std::vector<std::string>& keys);
  /// A region's part that belongs to this PE.
  const RegionView& region(std::size_t number) const { return regions_[number]; }

  // Memory of GPUs.
  DeviceRegions& devices() { return devices_; }
  const DeviceRegions& devices() const { return devices_; }
  /// Test: registers the memory with each endpoint, and deregisters it. Throws Error.
  void try_register(std::byte* base, std::size_t size_bytes, const DeviceMemory& gpu) const {
    register_area(base, size_bytes, &gpu);
  }
  /// Deregisters the region, and drops the peers' keys.
  void drop_device_region(int region);

  /// Ranges may overlap, and several may start at the same address.
  void add_local(void* base, std::size_t size_bytes);
  /// Removes the youngest mapping that begins at the address.
  void remove_local(void* base);

  /// The descriptor of this memory's first bytes for an endpoint, and how many it covers.
  LocalPart local(std::size_t endpoint, const void* memory, std::size_t size_bytes) const;
  /// Throws Error if that PE has sent no key for the address.
  RemotePart remote(std::size_t endpoint, const RemoteAddress& address,
                    std::size_t size_bytes) const;

private:
  using Registrations = std::vector<Registration>; ///< by endpoint
  /// By PE, the pieces in their order.
  using RaddrSegments = std::vector<std::vector<PieceKey>>;

  /// @param gpu whose memory it is; nullptr: the host's
  Registrations register_area(std::byte* base, std::size_t size_bytes,
                              const DeviceMemory* gpu = nullptr) const;

  std::size_t n_pes_;
  std::vector<const Endpoint*> endpoints_;
  RegionTable regions_;
  DeviceRegions devices_;
  std::map<int, std::vector<std::byte*>> gpu_pieces_; ///< by region: where its pieces begin

  mutable std::shared_mutex areas_mutex_;
  Areas<Registrations> areas_;

  /// A new table replaces the old one, which is kept: another thread may be reading it.
  std::mutex keys_mutex_;
  std::deque<RaddrSegments> tables_;
  std::array<std::atomic<const RaddrSegments*>, RegionTable::capacity> current_{};
};

} // namespace shmemctl::fabric
