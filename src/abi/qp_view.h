// Addresses of a QP's send queue, CQ and doorbells, and the state that its producers share: plain
// structs, for host and device. Operations on them are in send_queue.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::mlx5 {

inline constexpr std::size_t wqebb_bytes = 64; ///< WQEBB size
inline constexpr unsigned wqebb_words = 8;     ///< 64-bit words per WQEBB
inline constexpr unsigned cqe_words = 8;
inline constexpr std::uint32_t max_qp_wqebbs = 1u << 15; ///< half of the 16-bit index range

enum class CqMode : std::uint32_t {
  /// As many CQEs as the send queue has WQEBBs. The first error CQE stays readable.
  ring,
  /// One CQE, which every completion overwrites: a single load shows the progress, and any number
  /// of threads may poll. After an error, flushed WQEs overwrite the CQE with the cause.
  collapsed
};

/// State shared by the producers of a QP. Counters are in WQEBBs since the QP was created, 64 bits
/// wide; the HCA sees the low 16.
struct QpState {
  /// The next WQEBB that has not been reserved.
  alignas(128) std::uint64_t reserved;
  /// 2 * (first WQEBB that is not published), plus 1 if the next thread that publishes must ring
  /// the doorbell for an earlier one. Written only by the thread that has reserved that WQEBB.
  alignas(128) std::uint64_t ready;
  /// The last WQE that requests a CQE: (end << 8) | (its WQEBBs - 1).
  std::uint64_t signalled;
  /// 2 * (number of WQEBBs announced by doorbells), plus 1 while a thread is ringing (lock).
  alignas(128) std::uint64_t rung;
  /// All WQEs whose first WQEBB is below this are complete.
  alignas(128) std::uint64_t completed;
  /// 0, or the first error CQE (Failure::to_word()).
  std::uint64_t failure;
  /// Lock of the thread that polls: in ring mode, and where Memory::one_polls.
  alignas(128) std::uint64_t poll_lock;
  /// Ring mode: number of CQEs consumed.
  std::uint64_t taken;
};

/// How a QP orders a signal (set) after the payload that was posted to it before.
enum class SignalMethod : std::uint32_t {
  write,     ///< RDMA WRITE: this QP's WRITEs are placed in posting order
  atomic,    ///< masked compare-and-swap of all bits: executed after earlier WRITEs are placed
  completion ///< RDMA WRITE posted after the payload's completion
};

/// Capabilities of a connected QP.
struct QpCapabilities {
  SignalMethod signals = SignalMethod::completion;
  std::uint32_t atomic_bytes = 0; ///< bit mask: 4, 8, or 4 + 8

  /// Whether WRITEs of this QP are placed in posting order. If not, a fence has to wait for
  /// completions.
  SHMEMCTL_HOST_DEVICE constexpr bool orders_writes() const {
    return signals == SignalMethod::write;
  }
};

struct QpView {
  std::uint64_t* wqes;               ///< the WQEBBs: 8 words each
  std::uint64_t* completions;        ///< the CQEs: 8 words each
  std::uint32_t* send_record;        ///< send doorbell record
  std::uint32_t* completions_record; ///< CQ doorbell record
  std::uint64_t* doorbell;           ///< doorbell register (UAR)
  QpState* words;
  std::uint32_t qpn;
  std::uint32_t wqebbs_log2;
  std::uint32_t signal_log2; ///< WQEs that cross a multiple of 2^this WQEBBs request a CQE
  std::uint32_t ring_log2;   ///< WQEs that cross a multiple of 2^this WQEBBs ring at once
  CqMode mode;
  std::uint32_t
      write_combining; ///< nonzero: the UAR page is mapped write-combining; stores need a flush
};

} // namespace shmemctl::mlx5
