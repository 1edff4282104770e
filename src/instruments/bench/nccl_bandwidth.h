// Bandwidth of collectives as nccl-tests reports it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace shmemctl::bench {

struct NcclBandwidth {
  double algorithm_GBps = 0; ///< "algbw": the operation's size divided by its time
  double bus_GBps = 0;       ///< "busbw": what a link carries, whatever the number of PEs
};

/// By the formulas of nccl-tests (doc/PERFORMANCE.md). Nothing for a case that is no collective of
/// NCCL's, and without a time.
/// @param case_name "reduce-bf16", "fcollect", ...
/// @param size_bytes of the row: one PE's contribution, part or block where nccl-tests counts those
/// of all PEs
std::optional<NcclBandwidth> nccl_bandwidth(const std::string& case_name, std::size_t size_bytes,
                                            int n_pes, double time_us);

} // namespace shmemctl::bench
