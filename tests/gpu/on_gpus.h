// Jobs whose PEs are processes with a real GPU each. Skipped, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/fork_job.h"

namespace shmemctl::test {

/// Why there is none; "" if there is. Asked in a child: CUDA does not survive a fork.
inline const std::string& why_no_gpu() {
  static const std::string why = [] {
    ForkJob job;
    job.n_pes = 1;
    job.gpu = GpuUse::if_available;
    job.environment = {{"SHMEMCTL_SYMMETRIC_SIZE", "2M"}};
    job.body = [](Runtime& runtime) {
      return runtime.gpu() ? std::string() : runtime.no_gpu_reason();
    };
    return run_fork_job(job)[0].text;
  }();
  return why;
}

class OnGpus : public ::testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    if (!why_no_gpu().empty())
      GTEST_SKIP() << why_no_gpu();
  }
  static ForkJob job_with_heap(const std::string& heap, int n_pes,
                               std::function<std::string(Runtime&)> body) {
    ForkJob job;
    job.n_pes = n_pes;
    job.gpu = GpuUse::required;
    job.environment = {
        {"SHMEMCTL_SYMMETRIC_SIZE", "64M"}, {"SHMEMCTL_HEAP_CHUNK", "4M"}, {"SHMEMCTL_HEAP", heap}};
    job.body = std::move(body);
    return job;
  }
  static void expect_all_well(const std::vector<PeResult>& results) {
    for (std::size_t pe = 0; pe < results.size(); ++pe) {
      EXPECT_EQ(results[pe].exit_code, 0) << "PE " << pe << ": " << results[pe].text;
      if (!results[pe].text.empty())
        std::printf("PE %zu: %s\n", pe, results[pe].text.c_str());
    }
  }
};

} // namespace shmemctl::test
