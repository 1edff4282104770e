#include "src/base/cuda_release.h"

#include <gtest/gtest.h>

namespace shmemctl::test {
namespace {

TEST(CudaRelease, VersionsAsTexts) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
  EXPECT_EQ(cuda_version_text(11040), "11.4");
}

TEST(CudaRelease, ADriverOfAnOlderMajorVersionRunsNoKernels) {
  EXPECT_EQ(why_no_kernels(12040, 13000),
            "the driver supports CUDA 12.4, and this binary's kernels, compiled by CUDA 13.0, need "
            "a driver of branch 580 or newer");
  EXPECT_NE(why_no_kernels(12090, 13010).find("branch 580"), std::string::npos);
  EXPECT_NE(why_no_kernels(11080, 12030).find("branch 525"), std::string::npos);
}

TEST(CudaRelease, WithinAMajorVersionAndUnderANewerOneTheyRun) {
  EXPECT_EQ(why_no_kernels(13000, 13000), "");
  EXPECT_EQ(why_no_kernels(13000, 13020), ""); // minor version compatibility
  EXPECT_EQ(why_no_kernels(12000, 12090), "");
  EXPECT_EQ(why_no_kernels(13000, 12040), "");
}

TEST(CudaRelease, TheFixNamesThePackageOfThatToolkit) {
  EXPECT_EQ(install_newer_driver(13010),
            "apt-get install -y cuda-compat-13-1  # or a driver of branch 580 or newer");
  EXPECT_EQ(install_newer_driver(12030),
            "apt-get install -y cuda-compat-12-3  # or a driver of branch 525 or newer");
}

} // namespace
} // namespace shmemctl::test
