// What goes wrong on real GPUs: each fault is one line at every PE, names the GPU or the PE, and
// leaves no process, no memory of a GPU, and no kernel that runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "src/runtime/gpu/gpu.h"
#include "tests/gpu/fault_kernels.h"
#include "tests/support/fork_job.h"
#include "tests/support/forked_pes.h"

namespace shmemctl::test {
namespace {

/// What nvidia-smi says of every GPU: "used memory in MiB, utilisation in %" by line; empty where
/// there is none.
std::vector<std::pair<int, int>> ask_nvidia_smi() {
  std::vector<std::pair<int, int>> all;
  FILE* const pipe = ::popen("nvidia-smi --query-gpu=memory.used,utilization.gpu "
                             "--format=csv,noheader,nounits 2>/dev/null",
                             "r");
  if (!pipe)
    return all;
  int used_mib = 0, busy_percent = 0;
  while (std::fscanf(pipe, "%d , %d", &used_mib, &busy_percent) == 2)
    all.emplace_back(used_mib, busy_percent);
  ::pclose(pipe);
  return all;
}

/// Used memory of all GPUs together, and whether any works: an idle one shows a percent or two.
struct UseOfGpus {
  int used_mib = 0;
  bool busy = false;
};
UseOfGpus use_of_gpus() {
  UseOfGpus all;
  for (const auto& [used_mib, busy_percent] : ask_nvidia_smi()) {
    all.used_mib += used_mib;
    all.busy = all.busy || busy_percent > 5;
  }
  return all;
}

class GpuFaults : public ::testing::Test {
protected:
  void SetUp() override {
    if (ask_nvidia_smi().empty())
      GTEST_SKIP() << "nvidia-smi shows no GPU";
    used_before_mib_ = use_of_gpus().used_mib;
  }
  /// Others may use the GPUs of this machine too: what is asked for is no more than before, soon.
  void TearDown() override {
    if (IsSkipped())
      return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    UseOfGpus now = use_of_gpus();
    while ((now.used_mib > used_before_mib_ || now.busy) &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      now = use_of_gpus();
    }
    EXPECT_LE(now.used_mib, used_before_mib_) << "memory of a GPU is left allocated";
    EXPECT_FALSE(now.busy) << "a GPU is left busy";
  }

  static ForkJob job(const char* heap, std::function<std::string(Runtime&)> body,
                     const Environment& more = {}) {
    ForkJob job;
    job.n_pes = 2;
    job.gpu = GpuUse::required;
    job.environment = {
        {"SHMEMCTL_SYMMETRIC_SIZE", "64M"}, {"SHMEMCTL_HEAP", heap}, {"SHMEMCTL_TIMEOUT", "20"}};
    for (const auto& [name, value] : more)
      job.environment[name] = value;
    job.body = std::move(body);
    return job;
  }
  /// One line that says what failed, and one that says what to do.
  static void expect_one_line(const PeResult& result, std::initializer_list<const char*> words) {
    EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
    for (const char* word : words)
      EXPECT_NE(result.text.find(word), std::string::npos) << word << ": " << result.text;
    std::printf("  said (exit %d): %s\n", result.exit_code, result.text.c_str());
  }
  static cudaStream_t stream_of(Runtime& runtime) {
    return static_cast<cudaStream_t>(runtime.gpu()->stream());
  }
  /// Kernels of this PE put to the other one and wait for it, and the host for them.
  static std::string wait_for_peer(Runtime& runtime, std::byte* base) {
    launch_put_and_wait(stream_of(runtime), runtime.gpu()->job(), base, 1 - runtime.pe());
    runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel that waits");
    return "the wait has ended without an error";
  }
  static std::byte* memory_of(Runtime& runtime) {
    return static_cast<std::byte*>(runtime.gpu()->allocate(std::size_t{1} << 20));
  }

private:
  int used_before_mib_ = 0;
};

class GpuFaultsOverHeaps : public GpuFaults, public ::testing::WithParamInterface<const char*> {};

TEST_P(GpuFaultsOverHeaps, AKilledPeEndsTheKernelsOfOthers) {
  const auto begin = std::chrono::steady_clock::now();
  const auto results = run_fork_job(job(GetParam(), [](Runtime& runtime) {
    std::byte* const base = memory_of(runtime);
    if (runtime.pe() == 1) {
      launch_put_and_wait(stream_of(runtime), runtime.gpu()->job(), base, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::raise(SIGKILL); // while a kernel runs
    }
    return wait_for_peer(runtime, base);
  }));
  EXPECT_EQ(results[1].exit_code, 128 + SIGKILL);
  EXPECT_EQ(results[0].exit_code, 3) << results[0].text;
  expect_one_line(results[0], {"PE 1"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(18))
      << "not by the deadline, but when the loss is known";
}

TEST_P(GpuFaultsOverHeaps, APeThatLeavesWithItsHeapIsNamed) {
  const auto results = run_fork_job(job(GetParam(), [](Runtime& runtime) -> std::string {
    std::byte* const base = memory_of(runtime);
    if (runtime.pe() == 1)
      ::_exit(0); // the process and its memory are gone, without a message
    return wait_for_peer(runtime, base);
  }));
  EXPECT_EQ(results[0].exit_code, 3) << results[0].text;
  expect_one_line(results[0], {"PE 1"});
}

TEST_P(GpuFaultsOverHeaps, AKernelTrapIsSaidByAll) {
  const auto results = run_fork_job(job(GetParam(), [](Runtime& runtime) {
    std::byte* const base = memory_of(runtime);
    if (runtime.pe() == 0)
      return wait_for_peer(runtime, base);
    launch_trap(stream_of(runtime));
    runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel that traps");
    return std::string("the wait has ended without an error");
  }));
  for (const PeResult& result : results) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    expect_one_line(result, {"PE 1", "GPU "});
  }
}
INSTANTIATE_TEST_SUITE_P(, GpuFaultsOverHeaps, ::testing::Values("vmm", "ipc", "host"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_F(GpuFaults, AnIllegalAccessIsSaidByAll) {
  const auto results = run_fork_job(job("vmm", [](Runtime& runtime) {
    std::byte* const base = memory_of(runtime);
    if (runtime.pe() == 0)
      return wait_for_peer(runtime, base);
    launch_wild_load(stream_of(runtime));
    runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel that loads from nowhere");
    return std::string("the wait has ended without an error");
  }));
  for (const PeResult& result : results) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    expect_one_line(result, {"PE 1", "GPU ", "CUDA_ERROR_ILLEGAL_ADDRESS"});
  }
}

/// More than any GPU has. `ipc` takes all of it at once.
TEST_F(GpuFaults, AHeapThatDoesNotFitIsSaidAtTheStart) {
  for (const PeResult& result :
       run_fork_job(job("ipc", [](Runtime&) { return std::string("800 GiB"); },
                        {{"SHMEMCTL_SYMMETRIC_SIZE", "800G"}}))) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    expect_one_line(result, {"GPU ", "CUDA_ERROR_OUT_OF_MEMORY"});
  }
}

/// `vmm` reserves addresses only, and takes memory as the heap grows.
TEST_F(GpuFaults, AHeapThatCannotGrowIsSaid) {
  for (const PeResult& result : run_fork_job(job("vmm",
                                                 [](Runtime& runtime) {
                                                   // as much memory as the GPU has
                                                   memory_of(runtime);
                                                   runtime.gpu()->allocate(std::size_t{400} << 30);
                                                   return std::string("400 GiB");
                                                 },
                                                 {{"SHMEMCTL_SYMMETRIC_SIZE", "800G"}}))) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    expect_one_line(result, {"GPU ", "CUDA_ERROR_OUT_OF_MEMORY"});
  }
}

/// Mistakes of a child's kernel that compute-sanitizer has to see, or its silence means nothing:
/// scripts/gpu_sanitizer.sh.
void in_a_child(void (*launch)(cudaStream_t)) {
  ForkedPes one(1, [launch](int) {
    launch(nullptr);
    cudaDeviceSynchronize();
  });
  one.ends();
}
TEST(SanitizerControls, DISABLED_WildLoad) {
  in_a_child(launch_wild_load);
}
TEST(SanitizerControls, DISABLED_SharedRace) {
  in_a_child(launch_shared_race);
}
TEST(SanitizerControls, DISABLED_WrongMask) {
  in_a_child(launch_wrong_mask);
}

} // namespace
} // namespace shmemctl::test
