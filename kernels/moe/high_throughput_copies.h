// High-throughput dispatch and combine whose rows are moved by the copy engines of the GPUs: no
// multiprocessor loads or stores a row that crosses a link. Within one NVLink domain. No CUDA
// header.
//
// Dispatch: the copy engines of a rank copy all its tokens to every other rank, to the same index
// as here, whether a token goes there or not; a few warps write the metadata of those that go
// there, in the order of high_throughput.h. The experts find a row's values by the source rank and
// token of its metadata, and those of this rank's own tokens where they were given (as with
// DispatchArguments::in_place). With few ranks most tokens go to all of them anyway: of 256
// experts, the top 8 are on both of 2 ranks for 99% of all tokens, on one of 4 for 90%.
//
// Combine: the outputs for a token's source rank are contiguous on the expert's rank, by source
// rank and slot. The copy engines copy them to their home, in pieces, and a kernel there adds up
// each token when its pieces have arrived. The host needs the counts of rows for that, as
// Plan::counts says after notify.
//
// How a copy is ordered:
// - before: a kernel of one block announces that this rank has entered the call, waits until all
//   ranks have, and writes the number of the call into CopiedMemory::number; the copies wait for
//   its end (an event). So they overwrite only what every rank has read, as in high_throughput.h.
// - after: behind each piece, the same stream copies CopiedMemory::number to the destination's word
//   of the piece. CUDA executes the copies of a stream one after the other, and the bytes of one
//   are in the destination's memory before the next begins, which the signals of stream operations
//   rely on, too. Who acquires the number therefore finds the piece. Bulk loads of it need a proxy
//   fence between, as behind any acquire.
// - a rank that timed out copies failed_call() instead of the number: the others fail as well.
// - at the end, the caller's stream waits for the copies: what they read may be overwritten. It
// does
//   not wait until other ranks have what this one sent, because they await the words themselves.
//
// When a rank times out, its copies to the rank that has not entered are made all the same, since a
// copy in a stream cannot be withheld: rows that a late rank is reading may then change. It fails
// at the beginning of its next call. Otherwise the rules of high_throughput.h hold.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/moe/high_throughput.h"

namespace shmemctl::moe {

/// Most pieces into which a rank's rows for one other rank are divided.
inline constexpr std::int32_t max_pieces = 64;

/// The pieces in which the rows of one rank for another one are copied: all of the same number of
/// rows but the last, which may have fewer. For host and device.
struct CopyPieces {
  std::int32_t rows_of_piece;

  /// @param pieces at most, if a rank sends max_rows
  SHMEMCTL_HOST_DEVICE static constexpr CopyPieces of(std::int32_t max_rows, std::int32_t pieces) {
    const std::int32_t rows = (max_rows + pieces - 1) / pieces;
    return {rows > 0 ? rows : 1};
  }
  /// How many of `rows` rows.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t count(std::int32_t rows) const {
    return (rows + rows_of_piece - 1) / rows_of_piece;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t piece_of(std::int32_t slot) const {
    return slot / rows_of_piece;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t begin(std::int32_t piece) const {
    return piece * rows_of_piece;
  }
  /// Rows of the piece, of `rows`.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t size(std::int32_t piece, std::int32_t rows) const {
    const std::int32_t left = rows - begin(piece);
    return left < rows_of_piece ? left : rows_of_piece;
  }
};

/// Symmetric memory of this rank besides HighThroughputMemory; the words are zeroed before the
/// first call. Dispatch and combine may share it: the rows of the one are read when the other
/// begins.
struct CopiedMemory {
  /// [n_ranks][max_tokens], of the row's size: by source rank and token (dispatch), or by the rank
  /// of the experts and slot (combine).
  std::byte* rows;
  std::uint64_t* arrived; ///< [n_ranks][max_pieces]: the last call whose piece has arrived
  std::uint64_t* number;  ///< own: the number of the present call, or failed_call()
};

/// The streams on which copies run, beside the one that a call is launched on. For one device and
/// one caller's stream.
class CopyStreams {
public:
  CopyStreams() = default;
  ~CopyStreams();
  CopyStreams(const CopyStreams&) = delete;
  CopyStreams& operator=(const CopyStreams&) = delete;
  /// On the current device. @return "" or why it failed
  std::string open(std::int32_t n_ranks);

  struct Handles; ///< CUDA's handles
  Handles* handles() const { return handles_; }

private:
  Handles* handles_ = nullptr;
};

struct CopiedDispatch {
  DispatchArguments dispatch; ///< without in_place and after_notify; tuning.sms: for the metadata
  CopiedMemory copied;
  /// [n_ranks], host: the heap of that rank is mapped at this rank's address plus this.
  const std::int64_t* heap_delta_bytes;
};
/// The first half of a dispatch: announces that this rank has entered, and begins the copies. It
/// needs no plan, so it may be launched ahead of the notify of this dispatch: counts are then
/// exchanged while rows are copied.
std::string launch_row_copies(const DeviceJob& job, const CopiedDispatch& arguments,
                              const CopyStreams& streams, void* stream);
/// The second half, behind the first one and the plan's notify: metadata, and the rows of others.
/// Afterwards the values of the row of a record are at copied.rows + (source * max_tokens + token)
/// * value_bytes, or at dispatch.values + token * value_bytes for this rank's own.
std::string launch_copied_metadata(const DeviceJob& job, const CopiedDispatch& arguments,
                                   const CopyStreams& streams, void* stream);

struct CopiedCombine {
  /// Without weights, with slots (rows of all ranks are near: slots.own may be 0). tuning.sms:
  /// blocks that add up what arrives while more is copied; 0: none do, and when all pieces of this
  /// rank have left, `tail_sms` blocks add up everything.
  CombineArguments combine;
  CopiedMemory copied;
  const std::int64_t* heap_delta_bytes; ///< as above
  const std::int32_t* counts;           ///< [n_ranks][n_ranks], host: Plan::counts
  std::int32_t pieces;                  ///< 1 to max_pieces
  std::int32_t tail_sms;
};
/// The result is that of launch_combine(), to the bit.
std::string launch_copied_combine(const DeviceJob& job, const CopiedCombine& arguments,
                                  const CopyStreams& streams, void* stream);

} // namespace shmemctl::moe
