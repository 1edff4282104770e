// The kernels of stream operations, in both builds of build_variants.h.
#pragma once

#include <cstddef>

#include "kernels/build_variants.h"
#include "kernels/on_stream.h"

namespace shmemctl::on_stream {

// Each kernel implements several operations: separate kernels would duplicate the code that they
// share.

enum class Transfer { put, get, put_signal };
enum class Ordering { signal, quiet, barrier, sync };
enum class Moving { broadcast, fcollect, alltoall };

struct SignalOf {
  std::uint64_t* word;
  std::uint64_t value;
  device::SignalOp op;
};

struct Kernels {
  void (*transfer)(const DeviceJob job, Transfer kind, void* target, const void* source,
                   std::size_t size_bytes, SignalOf signal, int pe);
  void (*wait_for_word)(const DeviceJob job, const std::uint64_t* word, device::Compare compare,
                        std::uint64_t value, int peer);
  void (*order)(const DeviceJob job, Ordering kind, SignalOf signal, int pe, int team);
  void (*move_in_team)(const DeviceJob job, Moving moving, int team, void* dest, const void* source,
                       std::size_t size_bytes, int root);
  void (*exchange_in_team)(const DeviceJob job, int team, void* dest, const void* source,
                           ExchangeLists lists);
};
using ReduceKernel = void (*)(const DeviceJob job, int team, void* dest, const void* source,
                              std::size_t count, device::ReduceOp op, bool scatter);

namespace mapped {
Kernels kernels();
ReduceKernel reduce_kernel(NumberType type);
} // namespace mapped
namespace with_network {
Kernels kernels();
ReduceKernel reduce_kernel(NumberType type);
} // namespace with_network

/// Block size of puts and gets, which one block makes. Of mapped GPU memory, kernels copy only the
/// payloads of puts with signal, which are short (put_signal_copy_bytes).
inline constexpr int copy_threads = 1024;
/// Block size of collectives.
inline constexpr int block_threads = 512;

} // namespace shmemctl::on_stream
