// What is probed for each GPU, over the fake driver, and over the real one if there is one. The
// duration of copies is not judged here.
#include <gtest/gtest.h>

#include "src/runtime/cuda/gpu_probe.h"
#include "tests/support/forked_pes.h"
#include "tests/support/set_variable.h"
#include "tests/unit/runtime/cuda/drivers.h"

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

/// A survey in a separate process, whose driver fails as requested; the exception of `look`, "" if
/// none. The driver holds no allocation afterwards.
template <class Look>
std::string with(const char* variable, const char* value, const Look& look) {
  ForkedPes one(1, [&](int) {
    const SetVariable fault(variable, value);
    const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
    require(driver != nullptr, "the fake driver opens");
    // Tests that ran before in this process have loaded the driver, and it has counted their calls.
    require(count_calls_of_fake_anew(), "it counts its calls anew");
    const cuda::DeviceSurvey survey = cuda::survey_devices(driver, small);
    require(survey.devices.size() == 2, "two GPUs");
    look(survey.devices[0], survey.devices[1]);
    require(held_by_fake() == nothing_held, held_by_fake());
  });
  return one.ends()[0];
}

TEST(GpuProbeFaults, ReportsMissingCapabilities) {
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
TEST(GpuProbeFaults, NamesAFailingGpu) {
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
// Copies between GPUs over the fake driver, and over the real one if there is one. Their duration
// is not judged here.

namespace {

constexpr cuda::LinkPlan small_links{std::size_t{4} << 20, 2, 3};

class LinkProbe : public OverDrivers {};
INSTANTIATE_TEST_SUITE_P(Over, LinkProbe, both_drivers(), name_of_driver);

TEST_P(LinkProbe, EveryOrderedPairIsMeasuredAndItsBytesArrive) {
  const cuda::LinkSurvey survey = cuda::survey_links(driver, small_links);
  const std::size_t count = driver->devices().size();
  EXPECT_EQ(survey.problem, "");
  EXPECT_EQ(survey.copy_bytes, small_links.copy_bytes);
  ASSERT_EQ(survey.gpus.size(), count);
  ASSERT_EQ(survey.samples.size(), count * (count - 1));
  for (const cuda::LinkSample& sample : survey.samples) {
    EXPECT_NE(sample.source, sample.target);
    EXPECT_EQ(sample.problem, "");
    EXPECT_EQ(sample.wrong, "");
    if (!sample.refused.empty())
      continue; // a real machine may have such pairs
    ASSERT_EQ(sample.copy_us.size(), static_cast<std::size_t>(small_links.rounds));
    for (const double time_us : sample.copy_us)
      EXPECT_GT(time_us, 0);
  }
}

/// A survey with a failure in a separate process, whose fake driver begins to count its calls.
/// Returns the exception of `look`, "" if none; the devices' memory is free again afterwards.
template <class Look>
std::string with_failure(const char* failure, const Look& look) {
  ForkedPes one(1, [&](int) {
    const SetVariable fault("FAKE_CUDA_FAIL", failure);
    const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
    require(driver != nullptr, "the fake driver opens");
    require(count_calls_of_fake_anew(), "it counts its calls anew");
    const cuda::LinkSurvey survey = cuda::survey_links(driver, small_links);
    require(survey.samples.size() == 2, "two pairs");
    look(survey.samples[0], survey.samples[1]);
    require(held_by_fake() == nothing_held, held_by_fake());
  });
  return one.ends()[0];
}

TEST(LinkProbeFaults, ARefusalIsThePairsOwn) {
  // Two devices get access to two of their own allocations each; the fifth is GPU 0 to GPU 1's.
  EXPECT_EQ(with_failure("cuMemSetAccess:5:217",
                         [](const cuda::LinkSample& refused, const cuda::LinkSample& other) {
                           require(refused.refused.rfind("cuMemSetAccess: ", 0) == 0,
                                   refused.refused);
                           require(refused.problem.empty(), refused.problem);
                           require(refused.copy_us.empty(), "no copy");
                           require(other.refused.empty(), other.refused);
                           require(other.copy_us.size() == 3, "three rounds");
                         }),
            "");
}

TEST(LinkProbeFaults, AGpuWithoutMemoryIsAProblemOfItsPairs) {
  EXPECT_EQ(with_failure("cuMemCreate:3:2",
                         [](const cuda::LinkSample& there, const cuda::LinkSample& back) {
                           for (const cuda::LinkSample* sample : {&there, &back}) {
                             require(sample->refused.empty(), sample->refused);
                             require(sample->problem.find("4M of memory of GPU "
                                                          "1") != std::string::npos,
                                     sample->problem);
                           }
                         }),
            "");
}

TEST(LinkProbeFaults, AFailingCopyIsAProblemOfItsPair) {
  EXPECT_EQ(with_failure("cuMemcpyAsync:1:220",
                         [](const cuda::LinkSample& failed, const cuda::LinkSample& other) {
                           require(!failed.problem.empty(), "a problem");
                           require(failed.copy_us.empty(), "no copy");
                           require(other.problem.empty(), other.problem);
                           require(other.copy_us.size() == 3, "three rounds");
                         }),
            "");
}

} // namespace
} // namespace shmemctl::test
