// Errors of a job's GPU name what the driver reported about it: Xids, by the fake NVML.
#include <algorithm>

#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

class XidTest : public ::testing::Test {
protected:
  void write(const std::string& lines) {
    folder_.write("nvml.txt", "gpu 0 00000000:1A:00.0 GPU-0 Fake GPU\n"
                              "gpu 1 00000000:1B:00.0 GPU-1 Fake GPU\n" +
                                  lines);
  }
  /// The error of PE 1 when its kernel has failed with this CUDA error.
  static std::string failure(int code, const char* nvml = SHMEMCTL_FAKE_NVML) {
    ForkJob job =
        gpu_job(2, [code](Runtime& runtime) { return fail_kernel_of_pe_1(runtime, code); });
    job.environment["SHMEMCTL_NVML_LIBRARY"] = nvml;
    const std::vector<PeResult> results = run_fork_job(job);
    EXPECT_EQ(results[1].exit_code, 3) << results[1].text;
    EXPECT_EQ(std::count(results[1].text.begin(), results[1].text.end(), '\n'), 1)
        << results[1].text;
    return results[1].text;
  }
  static void expect(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      EXPECT_NE(text.find(word), std::string::npos) << word << ": " << text;
  }
  static void expect_none(const std::string& text, const char* word) {
    EXPECT_EQ(text.find(word), std::string::npos) << word << ": " << text;
  }

  TemporaryFolder folder_;
  SetVariable config_{"FAKE_NVML_CONFIG", folder_.path() + "/nvml.txt"};
};

TEST_F(XidTest, FollowsCudasErrorWithTheGpusAddress) {
  write("event 8 31\n");
  expect(failure(700), {"CUDA_ERROR_", "; the driver reported Xid 31 (an MMU fault",
                        ") on GPU 0000:1b:00.0 since the job's start", "compute-sanitizer"});
}

/// For a broken GPU, CUDA often reports only that a kernel failed: the Xid has a better fix.
TEST_F(XidTest, HardwareXidsHaveAFix) {
  write("event 8 79\nevent 8 45\n");
  const std::string text = failure(719);
  expect(text, {"Xid 79 (the GPU has fallen off the bus), Xid 45 (", "reboot the node"});
  expect_none(text, "compute-sanitizer");
}

TEST_F(XidTest, AnEccErrorIsNamed) {
  write("event-types 11\nevent 2 0\n");
  expect(failure(214),
         {"CUDA_ERROR_", "; the driver reported an uncorrectable ECC error on GPU 0000:1b:00.0",
          "nvidia-smi -q -d ECC"});
}

/// CUDA's error may arrive before the event.
TEST_F(XidTest, AnErrorWaitsBrieflyForItsXid) {
  write("event 8 13 50\n");
  expect(failure(719), {"CUDA_ERROR_", "Xid 13"});
}

TEST_F(XidTest, AnErrorWithoutAnEventIsAsItWas) {
  write("");
  const std::string text = failure(719);
  expect(text, {"CUDA_ERROR_", "compute-sanitizer"});
  expect_none(text, "reported");
}

/// Out of memory has no Xid: another process's Xid must not be attributed to it.
TEST_F(XidTest, IsNotReadUnlessTheGpuFailed) {
  write("event 8 31\n");
  const std::string text = failure(2);
  expect(text, {"CUDA_ERROR_", "SHMEMCTL_SYMMETRIC_SIZE"});
  expect_none(text, "reported");
}

TEST_F(XidTest, WithoutEventsErrorsAreAsTheyWere) {
  write("fail nvmlDeviceRegisterEvents 4\nevent 8 31\n");
  for (const std::string& text : {failure(719), failure(719, SHMEMCTL_FAKE_NVML_WITHOUT_EVENTS),
                                  failure(719, "libshmemctl-none.so.1")}) {
    expect(text, {"CUDA_ERROR_", "compute-sanitizer"});
    expect_none(text, "reported");
  }
}

/// A GPU that does not finish its work, and no CUDA error: the wait's own error has it.
TEST_F(XidTest, IsPartOfATimeoutError) {
  write("event 8 119\n");
  ForkJob job = gpu_job(1, [](Runtime& runtime) -> std::string {
    const HeldStreams held;
    runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel");
    return "no failure";
  });
  job.environment["SHMEMCTL_NVML_LIBRARY"] = SHMEMCTL_FAKE_NVML;
  job.environment["SHMEMCTL_TIMEOUT"] = "1";
  const std::vector<PeResult> results = run_fork_job(job);
  EXPECT_EQ(results[0].exit_code, 124) << results[0].text;
  expect(results[0].text, {"timed out", "Xid 119", "0000:1a:00.0", "reset the GPU"});
}

} // namespace
} // namespace shmemctl::test
