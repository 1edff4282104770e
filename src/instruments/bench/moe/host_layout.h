// The layout of the host backend's symmetric memory, the same on all ranks.
#pragma once

#include "src/instruments/bench/moe/buffer_layout.h"
#include "src/instruments/bench/moe/row_fields.h"

namespace shmemctl::moe {

/// Offsets of the flags that peers set; each is an array with one entry per rank or node.
struct HostSignals {
  /// [rank]: epoch of the call that the rank has entered, so that its memory may be written. Low
  /// latency: the rank has begun that dispatch.
  std::size_t ready = 0;
  std::size_t counts = 0; ///< [2][rank]: epoch of the counts that have arrived
  /// [rank]: epoch of the rows, all of which have arrived. Low latency: [2][rank], with their
  /// count.
  std::size_t rows = 0;
  std::size_t relayed = 0;    ///< [node]: rows to forward have arrived; with their count
  std::size_t ready_back = 0; ///< [rank]: as `ready`, for a combine
  std::size_t rows_back = 0;  ///< [rank]: as `rows`, for a combine
  std::size_t nodes_back = 0; ///< [node]: epoch of the sums that have arrived
};

struct HostLayout {
  explicit HostLayout(const Setup& setup);

  BufferLayout buffers;
  HostSignals signals;
  std::size_t send_rows = 0;  ///< [token]
  std::size_t counts_out = 0; ///< [rank][count_message_words]
  std::size_t counts_in = 0;  ///< [2][rank][count_message_words]
  std::size_t receive = 0;    ///< high throughput [row]; low latency [2][rank][token]
  std::size_t packed = 0;     ///< [packed_rows]: low latency, rows packed by expert
  std::size_t relay =
      0; ///< [node][token]: rows that this rank's rail has sent here, to be forwarded by this rank
  std::size_t results = 0; ///< outputs of the experts
  std::size_t back = 0;    ///< ht: [local rank][node][token]; ll: [2][token][choice or rank]
  /// [node][token]: sums that this rank computes for the ranks of its rail.
  std::size_t sums = 0;
  std::size_t sums_in = 0; ///< [node][token]: sums that other nodes have computed for this rank
  /// Number of int32 in a message of counts: rows for each rank, choices for each expert of the
  /// receiver.
  std::size_t count_message_words = 0;
  std::size_t result_rows = 0, packed_rows = 0;
  /// For the report: each use of memory, with the formula of its size.
  std::vector<MemoryUse> uses;
};

} // namespace shmemctl::moe
