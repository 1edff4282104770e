// The launchers of measuring kernels, once for each of the ways of kernels/build_variants.h.
#pragma once

#include "kernels/bench/atomics.h"
#include "kernels/bench/barrier.h"
#include "kernels/bench/collectives.h"
#include "kernels/bench/pingpong.h"
#include "kernels/bench/transfer.h"
#include "kernels/build_variants.h"

namespace shmemctl::bench {

// clang-format off
#define SHMEMCTL_BENCH_LAUNCHERS(ways)                                                             \
  namespace ways {                                                                                 \
  std::string launch_atomic_latency(const KernelLaunch& how, const AtomicArguments& arguments);    \
  std::string launch_atomic_rate(const KernelLaunch& how, const AtomicArguments& arguments);       \
  std::string launch_atomic_bandwidth(const KernelLaunch& how, const AtomicArguments& arguments);  \
  int max_atomic_blocks(int device, int threads);                                                 \
  std::string launch_collective(const KernelLaunch& how, const CollectiveArguments& arguments);    \
  int max_collective_blocks(CollectiveKernel kernel, CollectiveNumber number, int device,         \
                             int threads);                                                         \
  std::string launch_reduction(const KernelLaunch& how, const CollectiveArguments& arguments);     \
  int max_reduction_blocks(CollectiveKernel kernel, CollectiveNumber number, int device,          \
                            int threads);                                                          \
  std::string launch_barrier(const KernelLaunch& how, const BarrierArguments& arguments);          \
  std::string launch_pingpong(const KernelLaunch& how, const PingPongArguments& arguments);        \
  std::string launch_ring(const KernelLaunch& how, const RingArguments& arguments);                \
  std::string launch_transfer(const KernelLaunch& how, const TransferArguments& arguments);        \
  std::string launch_transfer_latency(const KernelLaunch& how,                                     \
                                      const TransferArguments& arguments);                         \
  int max_transfer_blocks(TransferKernel kernel, KernelScope scope, int device, int threads);     \
  std::string launch_puts(const KernelLaunch& how, const TransferArguments& arguments);            \
  std::string launch_put_latency(const KernelLaunch& how, const TransferArguments& arguments);     \
  std::string launch_put_signal_latency(const KernelLaunch& how,                                   \
                                        const TransferArguments& arguments);                       \
  int max_put_blocks(KernelScope scope, int device, int threads);                                 \
  std::string launch_gets(const KernelLaunch& how, const TransferArguments& arguments);            \
  std::string launch_get_latency(const KernelLaunch& how, const TransferArguments& arguments);     \
  int max_get_blocks(KernelScope scope, int device, int threads);                                 \
  }
// clang-format on

SHMEMCTL_BENCH_LAUNCHERS(mapped)
SHMEMCTL_BENCH_LAUNCHERS(with_network)

} // namespace shmemctl::bench
