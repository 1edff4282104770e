// The runtime's GPU phase on real GPUs. Skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/fork_job.h"
#include "tests/support/gpu_bodies.h"

namespace shmemctl::test {
namespace {

/// Why there is none; "" if there is. Asked in a child: CUDA does not survive a fork.
const std::string& why_no_gpu() {
  static const std::string why = [] {
    ForkJob job;
    job.n_pes = 1;
    job.gpu = GpuUse::if_there;
    job.environment = {{"SHMEMCTL_SYMMETRIC_SIZE", "2M"}};
    job.body = [](Runtime& runtime) {
      return runtime.gpu() ? std::string() : runtime.no_gpu_reason();
    };
    return run_fork_job(job)[0].text;
  }();
  return why;
}

class OnGpus : public ::testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    if (!why_no_gpu().empty())
      GTEST_SKIP() << why_no_gpu();
  }
  static ForkJob job(int n_pes, std::function<std::string(Runtime&)> body) {
    ForkJob job;
    job.n_pes = n_pes;
    job.gpu = GpuUse::required;
    job.environment = {{"SHMEMCTL_SYMMETRIC_SIZE", "64M"},
                       {"SHMEMCTL_HEAP_CHUNK", "4M"},
                       {"SHMEMCTL_HEAP", GetParam()}};
    job.body = std::move(body);
    return job;
  }
  static void expect_all_well(const std::vector<PeResult>& results) {
    for (std::size_t pe = 0; pe < results.size(); ++pe) {
      EXPECT_EQ(results[pe].exit_code, 0) << "PE " << pe << ": " << results[pe].text;
      if (!results[pe].text.empty())
        std::printf("PE %zu: %s\n", pe, results[pe].text.c_str());
    }
  }
};

TEST_P(OnGpus, EachPeHasOneAndKnowsTheOthers) {
  expect_all_well(run_fork_job(job(2, [](Runtime& runtime) {
    const GpuSite& site = runtime.gpu()->site();
    std::string text = site.name + " " + site.pci_address + ", heap " + site.heap_kind;
    for (const GpuWay& way : runtime.gpu()->ways()) {
      expect(way.path == DevicePath::load_store, way.reason);
      text += "; " + way.reason;
    }
    runtime.gpu()->wait(runtime.gpu()->stream(), "nothing");
    return text;
  })));
}

TEST_P(OnGpus, WhatAPePutsIsInItsPeersMemory) {
  const std::string kind = GetParam();
  expect_all_well(
      run_fork_job(job(3, [kind](Runtime& runtime) { return put_to_all(runtime, kind); })));
}

TEST_P(OnGpus, SignalsAndAtomicsAreCounted) {
  expect_all_well(run_fork_job(job(2, signal_and_count)));
}

TEST_P(OnGpus, TheHeapGrowsInPlaceUpToItsLimit) {
  expect_all_well(run_fork_job(job(2, grow_to_the_limit)));
}

INSTANTIATE_TEST_SUITE_P(, OnGpus, ::testing::Values("vmm", "ipc", "host"),
                         [](const auto& kind) { return std::string(kind.param); });

} // namespace
} // namespace shmemctl::test
