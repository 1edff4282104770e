// Kernels that use the network, for network_test.cpp.
#pragma once

#include <cuda_runtime.h>

#include "src/abi/device_job.h"
#include "tests/support/rma_program.h"

namespace shmemctl::test {

/// Places in the heap of every PE; `n_threads` of them each.
struct NetworkHeap {
  static constexpr std::uint64_t counter = 0, signal = 64;
  static constexpr std::uint64_t payload = 1024; ///< of the signal
  static constexpr std::uint64_t payload_bytes = 1000;
  static constexpr std::uint64_t slots = 8192; ///< what peers write
  static constexpr std::uint64_t local = std::uint64_t{1} << 20;
  static constexpr std::uint64_t slot_bytes = 1024;                   ///< slot of each thread
  static constexpr std::uint64_t numbers = std::uint64_t{1280} << 10; ///< of collectives
  static constexpr std::uint64_t results = std::uint64_t{1664} << 10;
  static constexpr std::uint64_t bytes = std::uint64_t{2} << 20;
};
struct NetworkShape {
  static constexpr int blocks = 2, threads = 16, n_threads = blocks * threads;
};

/// Which expectation was not met, and how often: zero all.
struct NetworkFindings {
  static constexpr int count = 29;
  std::uint32_t wrong[count];
};

/// Every operation, by every thread, towards `peer`. @param away memory of the GPU: a slot for each
/// thread
void launch_network_operations(cudaStream_t stream, const DeviceJob& job, int peer,
                               std::uint64_t rounds, std::byte* away, NetworkFindings* findings);
/// Puts with signals to each other, in turn.
void launch_network_signals(cudaStream_t stream, const DeviceJob& job, int peer,
                            std::uint64_t rounds, NetworkFindings* findings);

/// One block runs the steps (device memory) of a random program.
void launch_network_program(cudaStream_t stream, const DeviceJob& job, const RmaStep* steps,
                            int count, NetworkFindings* findings);

/// Collectives of the world by `blocks` blocks: results[i] = the sum of all PEs' numbers[i].
void launch_network_sum(cudaStream_t stream, const DeviceJob& job, int blocks, std::size_t count,
                        NetworkFindings* findings);
/// The same, a part for each PE; then what each PE has for each one, at results + count numbers.
void launch_network_parts(cudaStream_t stream, const DeviceJob& job, int blocks, std::size_t count,
                          NetworkFindings* findings);

/// How long it took to build WQEs: zero all before.
struct NetworkRate {
  std::uint64_t cycles;        ///< cycles of the first thread for its WQEs
  std::uint64_t ns;            ///< from the arrival of all threads to the last WQE of the last one
  std::uint64_t arrived, done; ///< counters
};
/// Each thread puts 1, 2, ..., `each` into a word of its own (from NetworkHeap::slots on), without
/// waiting for any; a quiet behind that is not in the time. All threads run at the same time.
void launch_network_entries(cudaStream_t stream, const DeviceJob& job, int peer, int blocks,
                            int threads, std::uint64_t each, NetworkRate* rate,
                            NetworkFindings* findings);

/// Where the cycles of a single WQE go, as sums: zero all before. What the parts leave of `whole`
/// is arithmetic, look-ups in the queue table, and the clock's own reading.
struct NetworkEntryParts {
  enum Part { load, acquire, store, read_modify_write, fence, record, doorbell, release, count };
  std::uint64_t whole, clock; ///< duration of all WQEs, and of one reading of the clock
  std::uint64_t cycles[count], times[count];
};
/// One thread puts 1, 2, ..., `each` into the first slot, over ibgda; each step of a queue is
/// timed.
void launch_network_entry_parts(cudaStream_t stream, const DeviceJob& job, int peer,
                                std::uint64_t each, NetworkEntryParts* parts,
                                NetworkFindings* findings);

} // namespace shmemctl::test
