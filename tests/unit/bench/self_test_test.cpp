#include "src/bench/self_test.h"

#include <gtest/gtest.h>

#include "tests/support/fork_job.h"

namespace shmemctl::bench {
namespace {

using test::ForkJob;
using test::PeResult;
using test::run_fork_job;

std::string run_self_test(Runtime& runtime) {
  const SelfTestResult result = self_test(runtime);
  std::string text = result.passed ? "passed\n" : "failed\n";
  for (const SelfTestRow& row : result.rows)
    text += row.what + ": injected " + std::to_string(row.injected) + " reported " +
            std::to_string(row.reported.value_or(-1)) + " " + row.unit + ", error " +
            std::to_string(row.error * 100) + "%\n";
  return text;
}

TEST(SelfTest, KnownDelaysRatesAndAWrongByteAreReported) {
  for (const int n_pes : {1, 2})
    for (const PeResult& result : run_fork_job({.n_pes = n_pes, .body = run_self_test})) {
      EXPECT_EQ(result.exit_code, 0) << result.text;
      EXPECT_EQ(result.text.substr(0, 7), "passed\n") << result.text;
      if (getenv("SHOW"))
        std::printf("%s\n", result.text.c_str());
    }
}

} // namespace
} // namespace shmemctl::bench
