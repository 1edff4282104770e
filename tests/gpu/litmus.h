// Litmus tests of the device API's orders on GPUs: data before its signal, by every means and
// scope, by many blocks at a time. litmus_kernels.cuh is compiled once as it is, and once for each
// order that is taken out of the headers (a mutant): a test must then fail.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "src/abi/device_job.h"
#include "tests/gpu/device_kernels.h"

namespace shmemctl::test {

enum class LitmusProgram {
  put_signal,     ///< put with signal (set), there and back
  put_signal_add, ///< as put_signal, but the signal is added
  put_signal_nbi, ///< by threads that do not come at the same time
  beside,         ///< data and signal are the halves of 16 bytes
  fence,          ///< put, fence, signal by the last thread
  quiet,          ///< put, quiet, a value by the last thread
  barrier,        ///< put to each other, barrier, look
  poll,           ///< get again and again until the value has changed
  grid_barrier,   ///< some blocks put to the other PE; all blocks of both PEs meet
  grid_sync,      ///< blocks of a grid write, meet, and check what other blocks wrote
  gather,         ///< fcollect of a scope
  gather_of_grid, ///< fcollect of a grid
  reduce,         ///< reduce and reducescatter of a scope by turns, now and then in place
  reduce_of_grid, ///< as reduce, by all blocks of a grid
  relay           ///< PE 0 puts to PE 2, quiet, tells PE 1, which tells PE 2: of three PEs
};

struct Litmus {
  LitmusProgram program;
  Who who;
  int blocks, threads;
  std::size_t size_bytes; ///< size of a message
  std::uint64_t rounds;   ///< rounds of each block
};

/// What a kernel has seen, in the PE's own memory.
struct LitmusCount {
  unsigned long long wrong;   ///< words that were late
  unsigned long long checked; ///< messages that were checked
  unsigned long long gave_up; ///< blocks whose wait has ended without success
};

/// Offsets in the litmus' memory, the same on all PEs; each block has places of its own.
struct LitmusPlaces {
  static constexpr std::size_t max_blocks = 64, max_bytes = std::size_t{64} << 10;
  static constexpr std::size_t count = 0; ///< LitmusCount
  static constexpr std::size_t signals = 4096, signal_stride = 256;
  /// Two halves; grids meet in this area.
  static constexpr std::size_t meeting = std::size_t{64} << 10;
  static constexpr std::size_t out = std::size_t{1} << 20;        ///< what is sent
  static constexpr std::size_t in = out + max_blocks * max_bytes; ///< what has come; two of each
  static constexpr std::size_t load = in + 2 * max_blocks * max_bytes;
  static constexpr std::size_t load_bytes = std::size_t{8} << 20;
  static constexpr std::size_t bytes = load + 2 * load_bytes;
};

/// Starts a litmus' kernel; throws std::runtime_error.
using LaunchLitmus = void (*)(cudaStream_t stream, const DeviceJob& job, std::byte* base,
                              const Litmus& litmus);
struct LitmusVariant {
  const char* name; ///< "NONE", or what was taken out
  LaunchLitmus launch;
  bool has_network; ///< compiled with the proxy and the HCA's queues
};
/// The variants of this program, NONE first.
std::vector<LitmusVariant> litmus_variants();

/// Blocks that fill the link to `peer` until `*stop` (device memory) is not 0.
void launch_load(cudaStream_t stream, const DeviceJob& job, std::byte* base, int peer, int blocks,
                 const unsigned* stop);

} // namespace shmemctl::test
