// Bandwidth of collectives as nccl-tests reports it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace shmemctl::bench {

struct NcclBandwidth {
  double algorithm_GBps = 0; ///< "algbw": the operation's size divided by its time
  double bus_GBps = 0;       ///< "busbw": the rate of a link, independent of the number of PEs
};

/// Computed by the formulas of nccl-tests (doc/PERFORMANCE.md). Nothing if NCCL has no such
/// collective, or if there is no time.
/// @param case_name "reduce-bf16", "fcollect", ...
/// @param size_bytes size of the row; of one PE's contribution, part or block even if nccl-tests
/// counts those of all PEs as the size
std::optional<NcclBandwidth> nccl_bandwidth(const std::string& case_name, std::size_t size_bytes,
                                            int n_pes, double time_us);

} // namespace shmemctl::bench
