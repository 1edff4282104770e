// The launchers of measuring kernels, each of which is built twice (kernels/build_variants.h). One
// list: choose.cu defines those that the host calls, absent.cpp those of a build without CUDA.
#pragma once

#include "kernels/bench/atomics.h"
#include "kernels/bench/barrier.h"
#include "kernels/bench/collectives.h"
#include "kernels/bench/pingpong.h"
#include "kernels/bench/transfer.h"
#include "kernels/build_variants.h"

/// Every launcher that the host calls: its name, and what it takes behind the KernelLaunch.
#define SHMEMCTL_BENCH_LAUNCHERS(LAUNCHER)                                                         \
  LAUNCHER(launch_atomic_latency, AtomicArguments)                                                 \
  LAUNCHER(launch_atomic_rate, AtomicArguments)                                                    \
  LAUNCHER(launch_atomic_bandwidth, AtomicArguments)                                               \
  LAUNCHER(launch_barrier, BarrierArguments)                                                       \
  LAUNCHER(launch_collective, CollectiveArguments)                                                 \
  LAUNCHER(launch_pingpong, PingPongArguments)                                                     \
  LAUNCHER(launch_ring, RingArguments)                                                             \
  LAUNCHER(launch_transfer, TransferArguments)                                                     \
  LAUNCHER(launch_transfer_latency, TransferArguments)

/// Those that these call in their own build: one file is one translation unit of kernels.
#define SHMEMCTL_BENCH_PARTS(LAUNCHER)                                                             \
  LAUNCHER(launch_reduction, CollectiveArguments)                                                  \
  LAUNCHER(launch_puts, TransferArguments)                                                         \
  LAUNCHER(launch_put_latency, TransferArguments)                                                  \
  LAUNCHER(launch_put_signal_latency, TransferArguments)                                           \
  LAUNCHER(launch_gets, TransferArguments)                                                         \
  LAUNCHER(launch_get_latency, TransferArguments)

namespace shmemctl::bench {

// clang-format off
#define SHMEMCTL_DECLARE_LAUNCHER(name, Arguments)                                                 \
  std::string name(const KernelLaunch& how, const Arguments& arguments);
#define SHMEMCTL_DECLARE_VARIANT(variant)                                                          \
  namespace variant {                                                                              \
  SHMEMCTL_BENCH_LAUNCHERS(SHMEMCTL_DECLARE_LAUNCHER)                                              \
  SHMEMCTL_BENCH_PARTS(SHMEMCTL_DECLARE_LAUNCHER)                                                  \
  int max_atomic_blocks(int device, int threads);                                                  \
  int max_collective_blocks(CollectiveKernel kernel, CollectiveNumber number, int device,          \
                            int threads);                                                          \
  int max_reduction_blocks(CollectiveKernel kernel, CollectiveNumber number, int device,           \
                           int threads);                                                           \
  int max_transfer_blocks(TransferKernel kernel, KernelScope scope, int device, int threads);      \
  int max_put_blocks(KernelScope scope, int device, int threads);                                  \
  int max_get_blocks(KernelScope scope, int device, int threads);                                  \
  }
// clang-format on

SHMEMCTL_DECLARE_VARIANT(mapped)
SHMEMCTL_DECLARE_VARIANT(with_network)

#undef SHMEMCTL_DECLARE_VARIANT
#undef SHMEMCTL_DECLARE_LAUNCHER

} // namespace shmemctl::bench
