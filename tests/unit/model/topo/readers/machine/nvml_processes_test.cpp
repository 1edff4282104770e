// Processes that have a context on a GPU, by the fake NVML.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "src/model/topo/readers/nvml.h"
#include "tests/support/set_variable.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

class NvmlProcesses : public ::testing::Test {
protected:
  Nvml open(const std::string& text) {
    folder_.write("nvml.txt", "gpu 0 00000000:18:00.0 GPU-0 NVIDIA H100\n"
                              "gpu 1 00000000:2a:00.0 GPU-1 NVIDIA H100\n" +
                                  text);
    std::string why;
    std::optional<Nvml> nvml = Nvml::open(SHMEMCTL_FAKE_NVML, why);
    if (!nvml)
      throw std::runtime_error(why);
    return std::move(*nvml);
  }
  TemporaryFolder folder_;
  test::SetVariable config_{"FAKE_NVML_CONFIG", folder_.path() + "/nvml.txt"};
};

TEST_F(NvmlProcesses, MemoryAndTheNewestUtilization) {
  const Nvml nvml = open("process 1 4712 5000000000 37\nprocess 1 4711 - -\n");
  const auto none = nvml.processes(0);
  ASSERT_TRUE(none);
  EXPECT_TRUE((*none).empty());
  const auto found = nvml.processes(1);
  ASSERT_TRUE(found) << found.origin;
  ASSERT_EQ((*found).size(), 2U);
  EXPECT_EQ((*found)[0].pid, 4711);
  EXPECT_FALSE((*found)[0].used_bytes);
  EXPECT_FALSE((*found)[0].busy_percent);
  EXPECT_EQ((*found)[0].busy_percent.origin, "no sample of the process");
  EXPECT_EQ((*found)[1].pid, 4712);
  EXPECT_EQ((*found)[1].used_bytes.value, 5000000000U) << "beyond 32 bits";
  EXPECT_EQ((*found)[1].busy_percent.value, 37U) << "not the older sample's";
}

TEST_F(NvmlProcesses, IdentityOfAGpu) {
  const Nvml nvml = open("");
  const NvmlGpu gpu = nvml.gpu_identity(1);
  ASSERT_TRUE(gpu.address);
  EXPECT_EQ(to_string(*gpu.address), "0000:2a:00.0");
  EXPECT_EQ(gpu.uuid.value, "GPU-1");
  EXPECT_FALSE(nvml.gpu_identity(2).address);
}

TEST_F(NvmlProcesses, WhyThereAreNone) {
  const Nvml nvml = open("process 0 5 1 1\nprocess 1 6 1 1\n"
                         "fail nvmlDeviceGetComputeRunningProcesses_v3 15 0\n"
                         "fail nvmlDeviceGetProcessUtilization 4 1\n");
  EXPECT_EQ(nvml.processes(0).origin, "nvmlDeviceGetComputeRunningProcesses_v3: GPU is lost");
  EXPECT_FALSE(nvml.processes(2));
  const auto found = nvml.processes(1);
  ASSERT_TRUE(found);
  ASSERT_EQ((*found).size(), 1U);
  EXPECT_EQ((*found)[0].busy_percent.origin,
            "nvmlDeviceGetProcessUtilization: Insufficient Permissions");
}

} // namespace
} // namespace shmemctl
