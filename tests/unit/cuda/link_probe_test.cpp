// Copies between GPUs over the made-up driver, and over the real one where there is one. What they
// take is not judged here.
#include <gtest/gtest.h>

#include "src/cuda/link_probe.h"
#include "tests/support/set_variable.h"
#include "tests/unit/cuda/drivers.h"

namespace shmemctl::test {
namespace {

constexpr cuda::LinkPlan small{std::size_t{4} << 20, 2, 3};

class LinkProbe : public OverDrivers {};
INSTANTIATE_TEST_SUITE_P(Over, LinkProbe, both_drivers(), name_of_driver);

TEST_P(LinkProbe, EveryOrderedPairIsMeasuredAndItsBytesArrive) {
  const cuda::LinkSurvey survey = cuda::survey_links(driver, small);
  const std::size_t count = driver->devices().size();
  EXPECT_EQ(survey.problem, "");
  EXPECT_EQ(survey.copy_bytes, small.copy_bytes);
  ASSERT_EQ(survey.gpus.size(), count);
  ASSERT_EQ(survey.samples.size(), count * (count - 1));
  for (const cuda::LinkSample& sample : survey.samples) {
    EXPECT_NE(sample.source, sample.target);
    EXPECT_EQ(sample.problem, "");
    EXPECT_EQ(sample.wrong, "");
    if (!sample.refused.empty())
      continue; // a real machine may have such pairs
    ASSERT_EQ(sample.copy_us.size(), static_cast<std::size_t>(small.rounds));
    for (const double time_us : sample.copy_us)
      EXPECT_GT(time_us, 0);
  }
}

/// The made-up driver with a failure; its devices' memory is free again behind it.
cuda::LinkSurvey survey_with(const char* failure) {
  const SetVariable wish("FAKE_CUDA_FAIL", failure);
  const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
  EXPECT_TRUE(driver);
  cuda::LinkSurvey survey = cuda::survey_links(driver, small);
  EXPECT_EQ(held_by_fake(), nothing_held);
  return survey;
}

// The made-up driver counts the calls of the whole process: each wish is about a call that no test
// before has reached.
std::string at_next(const std::string& function, int ahead, int code) {
  const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
  void* library = ::dlopen(SHMEMCTL_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
  auto* calls = reinterpret_cast<int (*)(const char*)>(::dlsym(library, "fake_cuda_calls"));
  return function + ":" + std::to_string(calls(function.c_str()) + ahead) + ":" +
         std::to_string(code);
}

TEST(LinkProbeFaults, ARefusalIsThePairsOwn) {
  // Two devices let themselves in to two pieces each; the fifth is GPU 0 at GPU 1.
  const std::string wish = at_next("cuMemSetAccess", 5, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  const cuda::LinkSurvey survey = survey_with(wish.c_str());
  ASSERT_EQ(survey.samples.size(), 2u);
  EXPECT_NE(survey.samples[0].refused.find("cuMemSetAccess: "), std::string::npos)
      << survey.samples[0].refused;
  EXPECT_TRUE(survey.samples[0].copy_us.empty());
  EXPECT_EQ(survey.samples[1].refused, "");
  EXPECT_EQ(survey.samples[1].copy_us.size(), 3u);
}

TEST(LinkProbeFaults, AGpuWithoutMemoryIsAProblemOfItsPairs) {
  const std::string wish = at_next("cuMemCreate", 3, CUDA_ERROR_OUT_OF_MEMORY);
  const cuda::LinkSurvey survey = survey_with(wish.c_str());
  ASSERT_EQ(survey.samples.size(), 2u);
  for (const cuda::LinkSample& sample : survey.samples) {
    EXPECT_EQ(sample.refused, "");
    EXPECT_NE(sample.problem.find("cannot allocate 4M of memory of GPU 1"), std::string::npos)
        << sample.problem;
  }
}

TEST(LinkProbeFaults, ACopyThatFailsIsAProblemOfItsPair) {
  const std::string wish = at_next("cuMemcpyAsync", 1, CUDA_ERROR_NVLINK_UNCORRECTABLE);
  const cuda::LinkSurvey survey = survey_with(wish.c_str());
  ASSERT_EQ(survey.samples.size(), 2u);
  EXPECT_NE(survey.samples[0].problem, "");
  EXPECT_TRUE(survey.samples[0].copy_us.empty());
  EXPECT_EQ(survey.samples[1].problem, "");
}

} // namespace
} // namespace shmemctl::test
