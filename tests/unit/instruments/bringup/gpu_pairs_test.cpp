// What PEs report about their GPUs and about the kernels' results, merged. The kernels' own part is
// tested in tests/unit/kernels/device_plan/pair_check_test.cpp.
#include "src/instruments/bringup/gpu_pairs.h"

#include <gtest/gtest.h>

#include "src/instruments/bringup/verdict.h"
#include "tests/support/expect_error.h"

namespace shmemctl {
namespace {

using kernel_check::Result;

const KernelPath mapped{DevicePath::load_store, "its heap is mapped"};
const KernelPath apart{DevicePath::none, "on another virtual node"};

GpuInfo info_of(int device, const std::string& address) {
  GpuInfo info;
  info.device = device;
  info.name = "NVIDIA H200";
  info.pci_address = address;
  info.heap_kind = "vmm";
  info.heap_reason = "all GPUs of the job have it";
  return info;
}

TEST(GpuPairs, ReachOfKernelsIsATransports) {
  const std::vector<TransportReach> all =
      merge_reach({kernel_reach_message({mapped, mapped, apart}, "vmm"),
                   kernel_reach_message({mapped, mapped, apart}, "host"),
                   kernel_reach_message({apart, apart, mapped}, "vmm")});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "gpu");
  EXPECT_EQ(all[0].from(0, 1), can_put | can_get | can_put_signal | can_atomics);
  EXPECT_EQ(all[0].from(1, 0), can_put | can_get | can_put_signal);
  EXPECT_EQ(all[0].from(0, 2), 0u);
  EXPECT_EQ(all[0].why(0, 2), "on another virtual node");
  EXPECT_EQ(checkable_pairs(all[0], PairOp::put), 5u);
  EXPECT_EQ(checkable_pairs(all[0], PairOp::fetch_add), 3u);
}

/// Results of PE 1 of 3, all successful but one.
std::vector<Result> results_with(int peer, int op, const Result& result) {
  std::vector<Result> results(3 * kernel_check::n_ops, Result{});
  results[static_cast<std::size_t>(peer * kernel_check::n_ops + op)] = result;
  return results;
}

TEST(GpuPairs, WhatIsWellIsNoFailure) {
  EXPECT_TRUE(kernel_failures(results_with(0, 0, Result{}), 1, 4).empty());
}

TEST(GpuPairs, BlameDependsOnTheReportingPe) {
  const Result wrong{Result::wrong, 16385, 7, 0x0a, 0xa5};
  const auto pair_of = [&](int op, const Result& result) {
    const std::vector<PairFailure> failures = kernel_failures(results_with(2, op, result), 1, 4);
    EXPECT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures.at(0).op, static_cast<PairOp>(op));
    EXPECT_EQ(failures.at(0).transport, 4);
    return PePair(failures.at(0).source, failures.at(0).target);
  };
  EXPECT_EQ(pair_of(kernel_check::put, wrong), PePair(2, 1));
  EXPECT_EQ(pair_of(kernel_check::put_signal, wrong), PePair(2, 1));
  EXPECT_EQ(pair_of(kernel_check::get, wrong), PePair(1, 2));
  EXPECT_EQ(pair_of(kernel_check::fetch_add, wrong), PePair(1, 2));
  Result at_target = wrong;
  at_target.state = Result::wrong_at_target;
  EXPECT_EQ(pair_of(kernel_check::compare_swap, at_target), PePair(2, 1));
}

TEST(GpuPairs, DescribesAFailure) {
  const auto words = [](int op, const Result& result) {
    return describe(kernel_failures(results_with(2, op, result), 1, 0).at(0), kernels_name);
  };
  EXPECT_EQ(words(kernel_check::put, {Result::wrong, 16385, 7, 0x0a, 0xa5}),
            "put of 16385 bytes by PE 2 to PE 1, transport gpu: at offset 7 expected 0a, found a5 "
            "(seen by a kernel of PE 1)");
  EXPECT_EQ(words(kernel_check::put_signal, {Result::nothing_arrived, 8, 0, 1, 0}),
            "put-signal of 8 bytes by PE 2 to PE 1, transport gpu (the signal did not arrive)");
  EXPECT_EQ(words(kernel_check::fetch_add, {Result::wrong, 8, 0, 5, 0x12}),
            "fetch-add of 8 bytes by PE 1 at PE 2, transport gpu: at offset 0 expected "
            "0000000000000005, found 0000000000000012 (seen by a kernel of PE 1)");
}

TEST(GpuPairs, DevicesHeapAndPaths) {
  const std::vector<KernelPath> all(4, mapped);
  const GpuSummary summary = merge_gpu_infos({gpu_info_message(info_of(0, "0000:1a:00.0"), all),
                                              gpu_info_message(info_of(1, "0000:1b:00.0"), all),
                                              gpu_info_message(info_of(0, "0000:1a:00.0"), all),
                                              gpu_info_message(info_of(1, "0000:1b:00.0"), all)},
                                             {{"a"}, {"a"}, {"a"}, {"a"}});
  ASSERT_EQ(summary.rows.size(), 3u);
  EXPECT_EQ(summary.rows[0].id, "gpu-devices");
  EXPECT_EQ(summary.rows[0].reason, "4 PEs on 2 GPUs (NVIDIA H200); up to 2 PEs share one, and "
                                    "their kernels take turns");
  EXPECT_EQ(summary.rows[0].evidence, "a 0000:1a:00.0: PE 0, 2; a 0000:1b:00.0: PE 1, 3");
  EXPECT_EQ(summary.rows[1].reason, "vmm on 4 PEs: all GPUs of the job have it");
  EXPECT_EQ(summary.rows[2].reason, "kernels reach 12 of 12 pairs");
  EXPECT_EQ(summary.rows[2].evidence, "load/store: 12 pairs (its heap is mapped)");
  for (const CheckRow& row : summary.rows) {
    EXPECT_EQ(row.group, "gpu");
    EXPECT_EQ(row.status, "pass");
  }
  EXPECT_TRUE(summary.findings.empty());
  ASSERT_EQ(summary.connections.size(), 16u);
  EXPECT_EQ(summary.connections[1].transport, "gpu");
  EXPECT_EQ(summary.connections[1].path, "load/store: its heap is mapped");
  EXPECT_EQ(gpu_rows_text(summary.rows).rfind("GPUs\n  gpu-devices: 4 PEs on 2 GPUs", 0), 0u);
  EXPECT_EQ(gpu_rows_text({}), "");
}

TEST(GpuPairs, TwoHostsOfOneNameHaveGpusOfTheirOwn) {
  const std::vector<KernelPath> all(3, mapped);
  const std::string text = gpu_info_message(info_of(0, "0000:1a:00.0"), all);
  const CheckRow row =
      merge_gpu_infos({text, text, text}, {{"node", 17}, {"node", 18}, {"node", 17}}).rows[0];
  EXPECT_EQ(row.reason, "3 PEs on 2 GPUs (NVIDIA H200); up to 2 PEs share one, and their kernels "
                        "take turns");
  EXPECT_EQ(row.evidence, "node 0000:1a:00.0: PE 0, 2; node 0000:1a:00.0: PE 1");
}

TEST(GpuPairs, PairsWithoutAPathAreAFinding) {
  const GpuSummary summary =
      merge_gpu_infos({gpu_info_message(info_of(0, "0000:1a:00.0"), {mapped, apart}),
                       gpu_info_message(info_of(0, "0000:1a:00.0"), {apart, mapped})},
                      {{"a"}, {"b"}});
  EXPECT_EQ(summary.rows[0].reason, "2 PEs on 2 GPUs (NVIDIA H200)"); // the PEs are of two hosts
  EXPECT_EQ(summary.rows[2].status, "warning");
  EXPECT_EQ(summary.rows[2].reason, "kernels reach 0 of 2 pairs");
  ASSERT_EQ(summary.findings.size(), 1u);
  EXPECT_EQ(summary.findings[0].id, "gpu-pair-unreachable");
  EXPECT_EQ(summary.findings[0].severity, Severity::warning);
  EXPECT_EQ(summary.findings[0].message,
            "kernels do not reach 2 pairs of PEs: 0>1, 1>0; on another virtual node");
  // Advice that helps whatever the reason is, such as another kind of heap.
  EXPECT_NE(summary.findings[0].fix.find("a transport that reaches these PEs"), std::string::npos);
  EXPECT_EQ(summary.findings[0].fix.find("HEAP"), std::string::npos);
}

TEST(GpuPairs, NicsThatDoNotReachGpuMemoryAreAFinding) {
  const auto findings_of = [](const std::string& text) {
    const KernelPath way{DevicePath::proxy, "on another machine: proxy over " + text};
    return merge_gpu_infos({gpu_info_message(info_of(0, "x"), {mapped, way}),
                            gpu_info_message(info_of(0, "x"), {way, mapped})},
                           {{"a"}, {"b"}})
        .findings;
  };
  const Findings findings =
      findings_of("staged: ibrc: PE 1: mlx5_0: dma-buf: Operation not supported");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "gpu-memory-staged");
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_NE(
      findings[0].message.find("host memory: ibrc: PE 1: mlx5_0: dma-buf: Operation not supported"),
      std::string::npos);
  EXPECT_NE(findings[0].fix.find("--only dma-buf,nvidia-peermem"), std::string::npos);
  EXPECT_TRUE(findings_of("GPUDirect RDMA by dma-buf over ibrc").empty());
  EXPECT_TRUE(findings_of("staged: SHMEMCTL_GPUDIRECT=off").empty());
  EXPECT_TRUE(findings_of("staged: libfabric: PE 0: it reaches memory of the host only").empty());
  EXPECT_TRUE(findings_of("staged: ibgda: PE 0: the emulated HCA reaches memory of the "
                          "host only (no access on 2 of 2 PEs); ucx: PE 0: it reaches memory of "
                          "the host only")
                  .empty());
  EXPECT_EQ(findings_of("staged: ibdevx: PE 0: mlx5_0: dma-buf: Bad address; libfabric: PE 0: it "
                        "reaches memory of the host only")
                .size(),
            1u);
}

TEST(GpuPairs, NonsenseOfAPeIsRefused) {
  const std::string good = gpu_info_message(info_of(0, "x"), {mapped, mapped});
  const std::string too_few_paths = gpu_info_message(info_of(0, "x"), {mapped});
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{}"), too_few_paths})
    test::expect_error(ExitCode::unavailable, {"PE 1", "cannot read its GPU summary"}, [&] {
      merge_gpu_infos({good, bad}, {{"a"}, {"a"}});
    });
}

} // namespace
} // namespace shmemctl
