// Everything that is needed to post WQEs, in one block of memory without absolute pointers into
// itself: the QPs to each PE, the lkeys of this PE's memory and the rkeys of the peers' regions.
// Kernels post through a copy in GPU memory. For host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/abi/qp_view.h"
#include "src/abi/wqe.h"
#include "src/base/host_device.h"

namespace shmemctl::mlx5 {

inline constexpr std::uint32_t max_table_ports = 8; ///< maximum number of NICs per PE

/// A QP to a peer. The view's addresses are valid in the process that created it.
struct TableQp {
  mlx5::QpView view;
  std::uint32_t port;      ///< local NIC: index of its lkeys
  std::uint32_t peer_port; ///< remote NIC: index of its rkeys
  mlx5::QpCapabilities abilities;
};

/// Registered memory of this PE, in its own address space.
struct LocalSegment {
  std::uint64_t begin, end;
  std::uint32_t lkeys[max_table_ports]; ///< by port

  SHMEMCTL_HOST_DEVICE bool holds(std::uint64_t address) const {
    return address >= begin && address < end;
  }
};

/// A registered part of a peer's region.
struct RemoteSegment {
  std::uint64_t offset_bytes, size_bytes; ///< in the region
  std::uint64_t address;                ///< address of its first byte, in the peer's address space
  std::uint32_t rkeys[max_table_ports]; ///< by port of the peer

  SHMEMCTL_HOST_DEVICE bool holds(std::uint64_t offset) const {
    return offset >= offset_bytes && offset - offset_bytes < size_bytes;
  }
  /// Bytes from `offset` to the end of the segment, which contains it.
  SHMEMCTL_HOST_DEVICE std::uint64_t left_at(std::uint64_t offset) const {
    return offset_bytes + size_bytes - offset;
  }
  SHMEMCTL_HOST_DEVICE mlx5::RaddrSegment piece_at(std::uint64_t offset,
                                                   std::uint32_t peer_port) const {
    return {address + (offset - offset_bytes), rkeys[peer_port]};
  }
};

/// Header of the block; the arrays follow, `*_at` bytes from its start.
class QpTable {
public:
  struct Range {
    std::uint32_t first, count;
  };

  std::uint64_t size_bytes; ///< size of the block, arrays included
  std::uint32_t n_pes, n_paths, n_qp_sets, n_regions, n_local;
  std::uint64_t queues_at, paths_at, ranges_at, remote_at, local_at;

  /// Number of paths (pairs of a local and a remote NIC, each with QPs) to that PE; 0 if it is not
  /// reachable.
  SHMEMCTL_HOST_DEVICE std::uint32_t paths_to(std::uint32_t pe) const {
    return pe < n_pes ? array<std::uint32_t>(paths_at)[pe] : 0;
  }
  /// @param path   less than paths_to(pe)
  /// @param qp_set less than n_qp_sets: QPs of different sets are independent
  SHMEMCTL_HOST_DEVICE const TableQp& queue(std::uint32_t pe, std::uint32_t path,
                                            std::uint32_t qp_set) const {
    return array<TableQp>(queues_at)[(pe * n_paths + path) * n_qp_sets + qp_set];
  }
  /// The segment of the PE's region that contains this byte; nullptr if the PE has not registered
  /// it.
  SHMEMCTL_HOST_DEVICE const RemoteSegment* find_remote(std::uint32_t pe, std::uint32_t region,
                                                        std::uint64_t offset_bytes) const {
    if (pe >= n_pes || region >= n_regions)
      return nullptr;
    const Range range = array<Range>(ranges_at)[pe * n_regions + region];
    const RemoteSegment* segments = array<RemoteSegment>(remote_at) + range.first;
    for (std::uint32_t i = 0; i < range.count; ++i)
      if (segments[i].holds(offset_bytes))
        return segments + i;
    return nullptr;
  }
  /// The segment of local memory that contains this byte; nullptr if it is not registered.
  SHMEMCTL_HOST_DEVICE const LocalSegment* find_local(std::uint64_t address) const {
    const LocalSegment* segments = array<LocalSegment>(local_at);
    for (std::uint32_t i = 0; i < n_local; ++i)
      if (segments[i].holds(address))
        return segments + i;
    return nullptr;
  }

  template <class Item>
  SHMEMCTL_HOST_DEVICE const Item* array(std::uint64_t at) const {
    return reinterpret_cast<const Item*>(reinterpret_cast<const char*>(this) + at);
  }
};

} // namespace shmemctl::mlx5
