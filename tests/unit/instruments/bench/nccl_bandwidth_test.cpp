#include "src/instruments/bench/nccl_bandwidth.h"

#include <gtest/gtest.h>

namespace shmemctl::bench {
namespace {

/// Computed by the formulas of nccl-tests' sources: getBw() of all_reduce.cu and so on, with
/// `count` elements of one byte, after getCollByteCount().
TEST(NcclBandwidth, IsThatOfTheirSources) {
  constexpr std::size_t MiB = 1 << 20;
  constexpr double us = 100, n = 4;
  const double once = static_cast<double>(MiB) / us * 1e-3; // GB/s
  const auto bandwidth = [&](const char* name) {
    return nccl_bandwidth(name, MiB, static_cast<int>(n), us).value();
  };
  // all_reduce_perf: the size is that of the buffer.
  EXPECT_DOUBLE_EQ(bandwidth("reduce").algorithm_GBps, once);
  EXPECT_DOUBLE_EQ(bandwidth("reduce").bus_GBps, once * 2 * (n - 1) / n);
  EXPECT_DOUBLE_EQ(bandwidth("reduce-bf16").bus_GBps, once * 2 * (n - 1) / n);
  // all_gather_perf, reduce_scatter_perf and alltoall_perf: that of all ranks' parts together.
  for (const char* name :
       {"fcollect", "collect", "reducescatter", "reducescatter-float", "alltoall"}) {
    EXPECT_DOUBLE_EQ(bandwidth(name).algorithm_GBps, once * n) << name;
    EXPECT_DOUBLE_EQ(bandwidth(name).bus_GBps, once * (n - 1)) << name;
  }
  EXPECT_DOUBLE_EQ(bandwidth("broadcast").algorithm_GBps, once);
  EXPECT_DOUBLE_EQ(bandwidth("broadcast").bus_GBps, once);
}

TEST(NcclBandwidth, OtherCasesHaveNone) {
  for (const char* name : {"put", "barrier", "alltoallv", "reduced", "", "put-signal"})
    EXPECT_FALSE(nccl_bandwidth(name, 8, 2, 1)) << name;
  EXPECT_FALSE(nccl_bandwidth("reduce", 8, 2, 0)) << "no time";
}

} // namespace
} // namespace shmemctl::bench
