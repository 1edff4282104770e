// Entries of a send queue in memory of the host, written by one block of a kernel and rung by
// another, while a processor reads them as an HCA would. For queue_memory_test.cpp.
#pragma once

#include <cuda_runtime.h>

#include "src/abi/qp_view.h"

namespace shmemctl::test {

/// Words of a WQE that number `index` has.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t queue_memory_word(std::uint64_t index, unsigned word) {
  return (index + 1) * 0x9e3779b97f4a7c15u + word;
}

/// In each round block 0 posts a WQE that may be rung later, and block 1, once that is
/// published, one behind it, which rings for both; then both wait until the reader has completed
/// them. Gives up at `timeout_ns` without a completion: `gave_up` (memory of the host) is 1 then.
/// @param view of a queue whose WQEs, completions, records and register the host maps, with one
///             CQE for all
void launch_queue_memory(cudaStream_t stream, const mlx5::QpView& view, std::uint64_t rounds,
                         std::uint64_t timeout_ns, std::uint64_t* gave_up);

} // namespace shmemctl::test
