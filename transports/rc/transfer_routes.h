// Transfers of QP sets: the path that carries a transfer, its stripes over NICs, and the pieces in
// which it is posted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/error.h"
#include "src/base/round_up.h"
#include "transports/rc/job.h"
#include "transports/rc/local_memory.h"
#include "transports/rc/remote_memory.h"
#include "transports/rc/staging.h"
#include "transports/transport.h"

namespace shmemctl::rc {

/// A transfer, or the part of it that one NIC carries.
struct NicTransfer {
  enum class Direction { put, get };
  /// Up to this size, a blocking put of host memory copies the data and returns; for larger puts,
  /// waiting costs less than copying.
  static constexpr std::size_t copied_bytes = 8192;

  Direction direction = Direction::put;
  RemoteAddress remote;
  std::byte* local = nullptr; ///< a put only reads from it
  std::size_t size_bytes = 0;
  bool stage = false; ///< copy at once: the caller may reuse its memory on return
  bool await = false; ///< whether the caller waits for its completion

  /// @param of_gpu whether CPUs must not access `source`
  static NicTransfer put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                         bool blocking, bool of_gpu) {
    const bool stage = blocking && size_bytes <= copied_bytes && !of_gpu;
    return {Direction::put, target, static_cast<std::byte*>(const_cast<void*>(source)),
            size_bytes,     stage,  blocking && !stage};
  }
  static NicTransfer get(void* target, const RemoteAddress& source, std::size_t size_bytes,
                         bool blocking) {
    return {Direction::get, source, static_cast<std::byte*>(target), size_bytes, false, blocking};
  }

  /// The part of this transfer that starts at `offset_bytes`.
  NicTransfer part(std::size_t offset_bytes, std::size_t part_bytes) const {
    NicTransfer part = *this;
    part.remote.offset_bytes += offset_bytes;
    part.local += offset_bytes;
    part.size_bytes = part_bytes;
    return part;
  }
};

/// Transfers of this size and above are striped over NICs, except as TransferRoutes::is_striped()
/// says: then each part is worth a message of its own.
inline constexpr std::size_t striped_bytes = 32768;

/// Calls each(path, part) for the paths that carry a part of `whole`, in order.
template <class Each>
void for_each_stripe(const NicTransfer& whole, std::size_t paths, Each&& each) {
  constexpr std::size_t granularity_bytes = 4096;
  const std::size_t share_bytes =
      round_up((whole.size_bytes + paths - 1) / paths, granularity_bytes);
  std::size_t done = 0;
  for (std::size_t path = 0; path < paths && done < whole.size_bytes; ++path) {
    const NicTransfer part = whole.part(done, std::min(share_bytes, whole.size_bytes - done));
    done += part.size_bytes;
    each(path, part);
  }
}

/// The SGE of a work request; its length is that of the piece.
struct Sge {
  std::byte* address = nullptr;
  std::uint32_t lkey = 0;
};

/// A part of a transfer that one work request carries.
struct Piece {
  NicTransfer transfer;
  const SegmentKey& segment; ///< the segment that contains all of its remote memory
  /// The registration that contains all of its local memory; nullptr if it uses a staging slot.
  const Registration* local = nullptr;
  bool last = false; ///< whether it is the last of its transfer

  RdmaAddress remote(std::size_t peer_port) const {
    return segment.at(transfer.remote.offset_bytes, peer_port);
  }
  /// The SGE of the caller's memory or of a staging slot; copies the data of a put into the slot.
  /// @param slot ignored if the piece does not use a staging slot
  Sge sge(const Staging& staging, std::int16_t slot, std::size_t port) const {
    if (local)
      return {transfer.local, local->lkey(port)};
    std::byte* const memory = staging.at(slot);
    if (transfer.direction == NicTransfer::Direction::put)
      std::memcpy(memory, transfer.local, transfer.size_bytes);
    return {memory, staging.lkey(port)};
  }
};

/// The routes of one QP set. Look-ups of remote memory throw Error (unavailable) if the peer has
/// not registered it.
class TransferRoutes {
public:
  /// @param qp_set number of the QP set: small transfers of different sets use different paths
  TransferRoutes(const Job& job, const LocalMemory& local, const RemoteMemory& remote,
                 std::size_t qp_set)
      : job_(job), local_(local), remote_(remote), qp_set_(qp_set) {}

  /// The path for small transfers.
  /// @param paths number of paths to that PE. Throws Error (unavailable) if it is 0
  std::size_t usual_path(int pe, std::size_t paths) const {
    require_connected(pe, paths);
    return qp_set_ % paths;
  }
  /// The path for atomics that HCAs execute: always the first, which ends at the peer's first NIC,
  /// since atomics of two HCAs are not atomic with each other.
  std::size_t atomic_path(int pe, std::size_t paths) const {
    require_connected(pe, paths);
    return 0;
  }

  const SegmentKey& segment_of(const RemoteAddress& address) const {
    return remote_.segment_of(job_, address);
  }
  /// The remote address of a word. Throws if it is not entirely registered.
  RdmaAddress word(const RemoteAddress& address, std::size_t size_bytes,
                   std::size_t peer_port) const {
    const SegmentKey& segment = segment_of(address);
    if (segment.left_at(address.offset_bytes) < size_bytes)
      throw job_.not_registered(
          {address.pe, address.region, segment.offset_bytes + segment.size_bytes});
    return segment.at(address.offset_bytes, peer_port);
  }
  /// The segment that a put with inline data writes to; nullptr if the put cannot be inline. The
  /// CPU copies inline data into the work request, so it must be host memory that fits into one
  /// request, and the target must be in one segment.
  const SegmentKey* inline_target(const RemoteAddress& target, const void* source,
                                  std::size_t size_bytes, std::size_t max_inline_bytes) const {
    if (size_bytes > max_inline_bytes || local_.devices().hold(source))
      return nullptr;
    const SegmentKey& segment = segment_of(target);
    return size_bytes <= segment.left_at(target.offset_bytes) ? &segment : nullptr;
  }
  NicTransfer put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                  bool blocking) const {
    return NicTransfer::put(target, source, size_bytes, blocking, local_.devices().hold(source));
  }

  /// Whether a transfer is striped over all paths. Writes to GPU memory use one NIC only: an
  /// acknowledgement for another NIC's part does not prove that the part has passed all PCIe
  /// switches on its way to the GPU.
  bool is_striped(const NicTransfer& whole, std::size_t paths) const {
    if (whole.size_bytes < striped_bytes || paths < 2)
      return false;
    return whole.direction == NicTransfer::Direction::put
               ? !local_.devices().has(whole.remote.region)
               : !local_.devices().hold(whole.local);
  }

  /// Calls each(Piece) for the pieces of a transfer over one path, in order.
  /// @param max_piece_bytes largest size of one work request
  template <class Each>
  void for_each_piece(const NicTransfer& whole, std::uint64_t max_piece_bytes, Each&& each) const {
    for (std::size_t done = 0; done < whole.size_bytes;) {
      Piece piece{whole.part(done, whole.size_bytes - done),
                  segment_of(whole.part(done, 0).remote)};
      NicTransfer& part = piece.transfer;
      piece.local = whole.stage ? nullptr : local_.find(part.local);
      const std::uint64_t here =
          piece.local ? piece.local->end - reinterpret_cast<std::uint64_t>(part.local)
                      : Staging::slot_bytes;
      const std::uint64_t there = piece.segment.left_at(part.remote.offset_bytes);
      part.size_bytes = static_cast<std::size_t>(
          std::min({std::uint64_t{part.size_bytes}, here, there, max_piece_bytes}));
      done += part.size_bytes;
      piece.last = done == whole.size_bytes;
      each(static_cast<const Piece&>(piece));
    }
  }

private:
  void require_connected(int pe, std::size_t paths) const {
    if (paths == 0)
      throw Error(ExitCode::unavailable, job_.name_of(pe), "reach it", "not connected to this PE",
                  "run shmemctl bringup to see which PEs can reach each other", job_.where());
  }

  const Job& job_;
  const LocalMemory& local_;
  const RemoteMemory& remote_;
  std::size_t qp_set_;
};

} // namespace shmemctl::rc
