// kernels/cuda_error.h, here because builds without CUDA leave this folder out.
#include "kernels/cuda_error.h"

#include <gtest/gtest.h>

namespace shmemctl::test {
namespace {

TEST(CudaError, NothingIsSaidOfASuccess) {
  EXPECT_EQ(cuda_error_text(cudaSuccess), "");
  EXPECT_EQ(named_cuda_error(cudaSuccess), "");
}

TEST(CudaError, OthersHaveCudasSentence) {
  EXPECT_EQ(cuda_error_text(cudaErrorInvalidValue), cudaGetErrorString(cudaErrorInvalidValue));
  EXPECT_EQ(named_cuda_error(cudaErrorInvalidValue),
            std::string("cudaErrorInvalidValue: ") + cudaGetErrorString(cudaErrorInvalidValue));
  EXPECT_EQ(fix_of_cuda_error(cudaErrorInvalidValue, "do that"), "do that");
}

TEST(CudaError, AnOldDriverIsNamedWithTheOneThatIsNeeded) {
  constexpr int old = CUDART_VERSION / 1000 * 1000 - 1000 + 40;
  const std::string text = cuda_error_text(cudaErrorInsufficientDriver, old);
  EXPECT_EQ(text, std::string(cudaGetErrorString(cudaErrorInsufficientDriver)) + ": " +
                      why_no_kernels(old, CUDART_VERSION));
  EXPECT_NE(text.find("the driver supports CUDA"), std::string::npos) << text;
}

TEST(CudaError, NoDriverIsNotAnOldOne) {
  EXPECT_EQ(cuda_error_text(cudaErrorInsufficientDriver, 0),
            std::string(cudaGetErrorString(cudaErrorInsufficientDriver)) + ": there is no driver");
}

} // namespace
} // namespace shmemctl::test
