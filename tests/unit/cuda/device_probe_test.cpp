// What is tried of each GPU, over the made-up driver, and over the real one where there is one. How
// long copies take is not judged here.
#include <gtest/gtest.h>

#include "src/cuda/device_probe.h"
#include "tests/support/forked_pes.h"
#include "tests/support/set_variable.h"
#include "tests/unit/cuda/drivers.h"

namespace shmemctl::test {
namespace {

constexpr cuda::DevicePlan small{std::size_t{4} << 20, 3};

class DeviceProbeOver : public OverDrivers {};
INSTANTIATE_TEST_SUITE_P(, DeviceProbeOver, both_drivers(), name_of_driver);

TEST_P(DeviceProbeOver, EveryGpuIsTried) {
  const cuda::DeviceSurvey survey = cuda::survey_devices(driver, small);
  EXPECT_EQ(survey.problem, "");
  EXPECT_EQ(survey.copy_bytes, small.copy_bytes);
  ASSERT_EQ(survey.devices.size(), driver->devices().size());
  for (std::size_t i = 0; i < survey.devices.size(); ++i) {
    const cuda::DeviceSample& device = survey.devices[i];
    EXPECT_EQ(device.pci_address, driver->devices()[i].pci_address);
    EXPECT_EQ(device.problem, "");
    EXPECT_EQ(device.no_descriptors, "");
    EXPECT_EQ(device.no_ipc_handles, "");
    EXPECT_EQ(device.wrong, "");
    for (const auto& times : {device.to_device_us, device.to_host_us}) {
      ASSERT_EQ(times.size(), static_cast<std::size_t>(small.rounds));
      for (const double time_us : times)
        EXPECT_GT(time_us, 0);
    }
  }
}

/// A survey in a process of its own, whose driver fails as asked; what `look` throws, "" if
/// nothing. Nothing is left in the driver.
template <class Look>
std::string with(const char* variable, const char* value, const Look& look) {
  ForkedPes one(1, [&](int) {
    const SetVariable wish(variable, value);
    const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
    require(driver != nullptr, "the made-up driver opens");
    const cuda::DeviceSurvey survey = cuda::survey_devices(driver, small);
    require(survey.devices.size() == 2, "two GPUs");
    look(survey.devices[0], survey.devices[1]);
    require(held_by_fake() == nothing_held, held_by_fake());
  });
  return one.ends()[0];
}

TEST(DeviceProbeFaults, WhatAGpuLacksIsSaid) {
  EXPECT_EQ(with("FAKE_CUDA_LACKS", "102",
                 [](const cuda::DeviceSample& first, const cuda::DeviceSample&) {
                   require(first.no_descriptors.find("virtual memory") != std::string::npos,
                           first.no_descriptors);
                   require(first.no_ipc_handles.empty() && first.problem.empty(), "the rest");
                 }),
            "");
  for (const char* lacks : {"86", "none"}) // HOST_NATIVE_ATOMIC_SUPPORTED
    EXPECT_EQ(with("FAKE_CUDA_LACKS", lacks,
                   [lacks](const cuda::DeviceSample& first, const cuda::DeviceSample&) {
                     require(first.host_atomics == (std::string(lacks) == "none"), lacks);
                   }),
              "");
  EXPECT_EQ(with("FAKE_CUDA_FAIL", "cuMemExportToShareableHandle:2:801",
                 [](const cuda::DeviceSample& first, const cuda::DeviceSample& second) {
                   require(first.no_descriptors.empty(), first.no_descriptors);
                   require(second.no_descriptors.rfind("cuMemExportToShareableHandle: ", 0) == 0,
                           second.no_descriptors);
                   require(!second.to_host_us.empty(), "it is measured all the same");
                 }),
            "");
  EXPECT_EQ(with("FAKE_CUDA_FAIL", "cuIpcGetMemHandle:1:801",
                 [](const cuda::DeviceSample& first, const cuda::DeviceSample& second) {
                   require(first.no_ipc_handles.rfind("cuIpcGetMemHandle: ", 0) == 0,
                           first.no_ipc_handles);
                   require(second.no_ipc_handles.empty(), second.no_ipc_handles);
                 }),
            "");
}

/// One GPU that fails does not hide the other.
TEST(DeviceProbeFaults, AGpuThatFailsIsNamed) {
  for (const char* call :
       {"cuDevicePrimaryCtxRetain:1:214", "cuMemAlloc:1:2", "cuMemHostAlloc:1:2",
        "cuStreamCreateWithPriority:1:999", "cuMemcpyAsync:1:719", "cuStreamSynchronize:1:719"})
    EXPECT_EQ(with("FAKE_CUDA_FAIL", call,
                   [](const cuda::DeviceSample& first, const cuda::DeviceSample& second) {
                     require(first.problem.find("GPU 0") != std::string::npos, first.problem);
                     require(second.problem.empty() && !second.to_host_us.empty(),
                             "the other one: " + second.problem);
                   }),
              "")
        << call;
}

} // namespace
} // namespace shmemctl::test
