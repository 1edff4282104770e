// Kernels that look at rows the moment their sources say that they are there: what a dispatch that
// is not ordered leaves has often come by the time that a later kernel looks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/moe/check.h"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/low_latency.h"

namespace shmemctl::test {

/// Of one source: the rows that it sends to this rank, in order.
struct WatchedSource {
  const std::int32_t* tokens; ///< [count]: of each row
  std::int32_t count;
  const std::byte* rows; ///< BF16
};

struct WatchedCalls {
  moe::Shape shape;
  std::uint32_t seed;
  WatchedSource sources[moe::max_ranks_of_kernels];
  std::uint64_t timeout_ns;
  /// rows: words that were not what they must be; a source that did not come counts as one.
  moe::Mismatch* wrong;
};

/// High throughput: a block for each source waits for its word of `epoch`, then checks the end of
/// each of its rows, the last one first.
std::string launch_watch_dispatch(const WatchedCalls& calls, const moe::CallFlags* flags,
                                  std::uint64_t epoch, void* stream);
/// Low latency, instead of the receiving half: a warp for each token of each source, which has a
/// block for each, waits for that block's word and looks at the whole row.
std::string launch_watch_low_latency(const WatchedCalls& calls, const moe::LowLatencyFlags* flags,
                                     std::uint64_t epoch, void* stream);

/// One thread that waits until the host has written `go`, then writes `ended`: 1, or 2 if it did
/// not come in time. Both are memory of the host that kernels reach.
std::string launch_hold(const std::uint32_t* go, std::uint32_t* ended, std::uint64_t timeout_ns,
                        void* stream);

} // namespace shmemctl::test
