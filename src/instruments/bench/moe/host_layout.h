// The layout of the host backend's symmetric memory, the same on all ranks.
#pragma once

#include "src/instruments/bench/moe/buffer_layout.h"
#include "src/instruments/bench/moe/row_fields.h"

namespace shmemctl::moe {

/// Offsets of the flags that peers set, one per rank or node.
struct HostSignals {
  std::size_t ready = 0;      ///< [rank]: it has entered, and its memory may be written; epoch.
                              ///< Low latency: it has begun that dispatch
  std::size_t counts = 0;     ///< [2][rank]: its counts are there; epoch
  std::size_t rows = 0;       ///< [rank]: all its rows are there; epoch. Low latency: [2][rank],
                              ///< with their count
  std::size_t relayed = 0;    ///< [node]: rows to forward have arrived; with their count
  std::size_t ready_back = 0; ///< [rank]: as `ready`, of a combine
  std::size_t rows_back = 0;  ///< [rank]: as `rows`, of a combine
  std::size_t nodes_back = 0; ///< [node]: its sums are there; epoch
};

struct HostLayout {
  explicit HostLayout(const Setup& setup);

  BufferLayout buffers;
  HostSignals signals;
  std::size_t send_rows = 0;  ///< [token]
  std::size_t counts_out = 0; ///< [rank] of count_message_words
  std::size_t counts_in = 0;  ///< [2][rank] of count_message_words
  std::size_t receive = 0;    ///< high throughput [row]; low latency [2][rank][token]
  std::size_t packed = 0;     ///< [packed_rows]: low latency by expert
  std::size_t relay =
      0; ///< [node][token]: [node][token]: rows of the rail's ranks, to be forwarded
  std::size_t results = 0; ///< outputs of the experts
  std::size_t back = 0;    ///< [local rank][node][token], or [2][token][choice or rank]
  std::size_t sums = 0;    ///< [node][token]: what this rank adds up for its rail's ranks
  std::size_t sums_in = 0; ///< [node][token]: what nodes have added up for this rank
  /// int32 of a message of counts: rows for each rank, choices for each expert of the receiver.
  std::size_t count_message_words = 0;
  std::size_t result_rows = 0, packed_rows = 0;
  /// For the report: each use of memory, with the formula of its size.
  std::vector<MemoryUse> uses;
};

} // namespace shmemctl::moe
