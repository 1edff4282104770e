// Registered memory: this PE's memory, registered with each endpoint, and the peers' keys. When a
// region grows, only the new piece is registered, so memory is not pinned twice.
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

/// The first part of a local range: bytes in a single registration, or unregistered bytes.
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

  /// Sets the endpoints with which memory is registered. Called once, before all other functions.
  void use(const std::vector<const Endpoint*>& endpoints) { endpoints_ = endpoints; }

  /// Registers the new part of the region, and returns its key. Throws Error.
  std::string set_region(const RegionView& region);
  /// Throws Error for a malformed key.
  /// @param keys by PE: the result of set_region() on that PE
  void set_keys(int region, const std::vector<std::string>& keys);
  /// The view of a region on this PE.
  const RegionView& region(std::size_t number) const { return regions_[number]; }

  // GPU memory.
  DeviceRegions& devices() { return devices_; }
  const DeviceRegions& devices() const { return devices_; }
  /// Tries to register the memory with each endpoint, and deregisters it. Throws Error.
  void try_register(std::byte* base, std::size_t size_bytes, const DeviceMemory& gpu) const {
    register_area(base, size_bytes, &gpu);
  }
  /// Deregisters the region, and drops the peers' keys.
  void drop_device_region(int region);

  /// Registers a range. Ranges may overlap, and several may start at the same address.
  void add_local(void* base, std::size_t size_bytes);
  /// Deregisters the newest range that begins at the address, if there is one.
  void remove_local(void* base);

  /// The descriptor of the memory's first part for an endpoint, and the size of that part.
  LocalPart local(std::size_t endpoint, const void* memory, std::size_t size_bytes) const;
  /// The address and key of the first part of a remote range, and the size of that part. Throws
  /// Error if the PE has sent no key for the address.
  RemotePart remote(std::size_t endpoint, const RemoteAddress& address,
                    std::size_t size_bytes) const;

private:
  using Registrations = std::vector<Registration>; ///< by endpoint
  /// By PE: the pieces in the order in which they were registered.
  using RaddrSegments = std::vector<std::vector<PieceKey>>;

  /// @param gpu the GPU that owns the memory; nullptr: host memory
  Registrations register_area(std::byte* base, std::size_t size_bytes,
                              const DeviceMemory* gpu = nullptr) const;

  std::size_t n_pes_;
  std::vector<const Endpoint*> endpoints_;
  RegionTable regions_;
  DeviceRegions devices_;
  std::map<int, std::vector<std::byte*>> gpu_pieces_; ///< by region: start addresses of its pieces

  mutable std::shared_mutex areas_mutex_;
  Areas<Registrations> areas_;

  /// A new table replaces the old one, which is kept since another thread may be reading it.
  std::mutex keys_mutex_;
  std::deque<RaddrSegments> tables_;
  std::array<std::atomic<const RaddrSegments*>, RegionTable::capacity> current_{};
};

} // namespace shmemctl::fabric
