// The runtime's GPU phase on real GPUs. Skipped, with the reason, where there is none.
#include "tests/gpu/on_gpus.h"
#include "tests/support/gpu_bodies.h"

namespace shmemctl::test {
namespace {

/// Over each kind of heap.
class RuntimeOnGpus : public OnGpus {
protected:
  static ForkJob job(int n_pes, std::function<std::string(Runtime&)> body) {
    return job_with_heap(GetParam(), n_pes, std::move(body));
  }
};

TEST_P(RuntimeOnGpus, EachPeHasOneAndKnowsTheOthers) {
  expect_all_well(run_fork_job(job(2, [](Runtime& runtime) {
    const GpuInfo& info = runtime.gpu()->info();
    std::string text = info.name + " " + info.pci_address + ", heap " + info.heap_kind;
    for (const KernelPath& way : runtime.gpu()->paths_by_pe()) {
      expect(way.path == DevicePath::load_store, way.reason);
      text += "; " + way.reason;
    }
    runtime.gpu()->wait(runtime.gpu()->stream(), "nothing");
    return text;
  })));
}

TEST_P(RuntimeOnGpus, WhatAPePutsIsInItsPeersMemory) {
  const std::string kind = GetParam();
  expect_all_well(
      run_fork_job(job(3, [kind](Runtime& runtime) { return put_to_all(runtime, kind); })));
}

TEST_P(RuntimeOnGpus, SignalsAndAtomicsAreCounted) {
  expect_all_well(run_fork_job(job(2, signal_and_count)));
}

TEST_P(RuntimeOnGpus, TheHeapGrowsInPlaceUpToItsLimit) {
  expect_all_well(run_fork_job(job(2, grow_to_the_limit)));
}

INSTANTIATE_TEST_SUITE_P(, RuntimeOnGpus, ::testing::Values("vmm", "ipc", "host"),
                         [](const auto& kind) { return std::string(kind.param); });

} // namespace
} // namespace shmemctl::test
