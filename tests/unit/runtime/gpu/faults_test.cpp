// Failures under a job with GPUs: the error text of each kind, and the order in which a failing PE
// tears its parts down.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/unit/kernels/device_network/kernel_threads.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

/// The driver's report about a kernel or the device, and text that the fix must contain.
struct Failure {
  int code;
  const char* name;
  const char* fix;
};
class GpuFailures : public ::testing::TestWithParam<Failure> {};

/// The context is permanently broken: every later driver call returns the same error.
TEST_P(GpuFailures, AreOneLineWithTheGpuAndAFix) {
  const std::vector<PeResult> results = run_fork_job(
      gpu_job(2, [](Runtime& runtime) { return fail_kernel_of_pe_1(runtime, GetParam().code); }));
  for (const PeResult& result : results) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
    for (const char* words : {"GPU 1 (0000:1b:00.0)", "PE 1", "CUDA_ERROR_", GetParam().fix})
      EXPECT_NE(result.text.find(words), std::string::npos) << words << ": " << result.text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , GpuFailures,
    ::testing::Values(Failure{2, "out_of_memory", "SHMEMCTL_SYMMETRIC_SIZE"},
                      Failure{46, "device_unavailable", "nvidia-smi -q -d COMPUTE"},
                      Failure{214, "ecc_uncorrectable", "nvidia-smi -q -d ECC"},
                      Failure{220, "nvlink_uncorrectable", "nvidia-smi nvlink -e"},
                      Failure{226, "contained", "nvidia-smi -q -d ECC"},
                      Failure{700, "illegal_address", "compute-sanitizer"},
                      Failure{702, "launch_timeout", "nvidia-smi -q -d DISPLAY"},
                      Failure{710, "assert", "assert"}, Failure{714, "hardware_stack_error", "Xid"},
                      Failure{715, "illegal_instruction", "compute-sanitizer"},
                      Failure{716, "misaligned_address", "compute-sanitizer"},
                      Failure{717, "invalid_address_space", "compute-sanitizer"},
                      Failure{718, "invalid_pc", "compute-sanitizer"},
                      Failure{719, "launch_failed", "compute-sanitizer"},
                      Failure{802, "system_not_ready", "nvidia-fabricmanager"},
                      Failure{999, "unknown", "Xid"}),
    [](const auto& tested) { return std::string(tested.param.name); });

/// Out of memory at each allocating call: reported once, with the GPU, and nothing leaks.
class GpuMemoryRunsOut : public OverHeaps {};

/// Every call of `function` in turn returns "out of memory"; counts the PEs that failed.
int fail_each_call(const ForkJob& job, const std::string& function) {
  int failures = 0;
  for (int call = 1; call < 60; ++call) {
    const SetVariable fail("FAKE_CUDA_FAIL", function + ":" + std::to_string(call) + ":2");
    bool well = true; // the call does not exist any more
    for (const PeResult& result : run_fork_job(job)) {
      const std::string about = function + " " + std::to_string(call) + ": " + result.text;
      EXPECT_NE(result.text.find(std::string(" held: ") + nothing_held), std::string::npos)
          << about;
      if (result.exit_code == 0)
        continue;
      well = false;
      ++failures;
      EXPECT_EQ(result.exit_code, 3) << about;
      EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << about;
      EXPECT_NE(result.text.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << about;
      EXPECT_NE(result.text.find("GPU "), std::string::npos) << about;
    }
    if (well)
      return failures;
  }
  ADD_FAILURE() << function << " is called without an end";
  return failures;
}

TEST_P(GpuMemoryRunsOut, AtEachAllocation) {
  ForkJob job = gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        runtime.gpu()->allocate(1 << 20);
        runtime.gpu()->allocate(9 << 20); // the heap grows
        return {};
      },
      heap());
  job.environment["SHMEMCTL_SYMMETRIC_SIZE"] = "16M";
  job.environment["SHMEMCTL_TRANSPORT"] = "shm";
  job.after = [] { return " held: " + held_by_fake(); };
  int failures = 0;
  for (const char* path : {"auto", "proxy"}) {
    job.environment["SHMEMCTL_DEVICE_PATH"] = path;
    for (const char* function :
         {"cuMemCreate", "cuMemAlloc", "cuMemHostAlloc", "cuMemHostRegister", "cuMemAddressReserve",
          "cuMemMap", "cuDevicePrimaryCtxRetain", "cuStreamCreateWithPriority"})
      failures += fail_each_call(job, function);
  }
  EXPECT_GT(failures, 20);
}
INSTANTIATE_TEST_SUITE_P(, GpuMemoryRunsOut, all_heaps(),
                         [](const auto& which) { return std::string(which.param); });

/// While it exists, stream queries to the driver do not return.
class BlockedQueries {
public:
  BlockedQueries() { of_fake<void(int)>("fake_cuda_block")(1); }
  ~BlockedQueries() { of_fake<void(int)>("fake_cuda_block")(0); }
  BlockedQueries(const BlockedQueries&) = delete;
  BlockedQueries& operator=(const BlockedQueries&) = delete;
  static int waiting() { return of_fake<int()>("fake_cuda_blocked")(); }
};
int streams_destroyed() {
  return of_fake<int(const char*)>("fake_cuda_calls")("cuStreamDestroy");
}

/// A PE fails while its kernels' proxy is inside a transport: the transport stays until the proxy
/// has left it. The proxy is held there for two seconds; a transport that is destroyed earlier
/// destroys its streams meanwhile.
TEST(GpuTeardown, TheProxyReleasesATransportBeforeItIsDestroyed) {
  std::thread releasing;
  std::atomic<int> destroyed_meanwhile{-1};
  ForkJob job = gpu_job(
      2,
      [&](Runtime& runtime) -> std::string {
        auto* words = static_cast<std::uint64_t*>(runtime.gpu()->allocate(4096));
        const DeviceJob seen = runtime.gpu()->job();
        expect(seen.network.rings.n_fifos > 0, "kernels have a proxy");
        ThreadWait wait;
        ThreadProxy proxy(seen.network, 0, wait);
        ProxyRequest put;
        put.op = ProxyOp::put;
        put.region = region::gpu_heap;
        put.pe = 1 - runtime.pe();
        put.offset_bytes = 0;
        put.size_bytes = 2048;
        put.local = reinterpret_cast<std::uint64_t>(words);
        // Once, so that each PE's transport has all of its streams.
        expect(proxy.post(put) && proxy.quiet(), "a put");
        runtime.gather_text("");
        if (runtime.pe() == 1) {
          runtime.gather_text(""); // ends with the failure of PE 0
          return {};
        }
        auto blocked = std::make_shared<BlockedQueries>();
        expect(proxy.post(put), "a request");
        const Deadline soon = Deadline::after(std::chrono::seconds(60));
        while (BlockedQueries::waiting() == 0 && !soon.passed())
          std::this_thread::yield();
        expect(BlockedQueries::waiting() > 0, "the proxy is inside of the transport");
        releasing = std::thread([&destroyed_meanwhile, blocked]() mutable {
          const int before = streams_destroyed();
          std::this_thread::sleep_for(std::chrono::seconds(2));
          destroyed_meanwhile = streams_destroyed() - before;
          blocked.reset();
        });
        blocked.reset();
        throw Error(ExitCode::finding, "the test", "end", "as it shall", "-");
      },
      {{"SHMEMCTL_HEAP", "vmm"}, {"SHMEMCTL_DEVICE_PATH", "proxy"}, {"SHMEMCTL_TRANSPORT", "shm"}});
  job.after = [&] {
    if (releasing.joinable())
      releasing.join();
    return " destroyed: " + std::to_string(destroyed_meanwhile) + " held: " + held_by_fake();
  };
  const std::vector<PeResult> results = run_fork_job(job);
  EXPECT_EQ(results[0].exit_code, 1) << results[0].text;
  EXPECT_NE(results[0].text.find(" destroyed: 0 "), std::string::npos) << results[0].text;
  for (const PeResult& result : results)
    EXPECT_NE(result.text.find(std::string(" held: ") + nothing_held), std::string::npos)
        << result.text;
}

} // namespace
} // namespace shmemctl::test
