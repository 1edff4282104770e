// What the engine uses: memory of the job, and the clock.
#include <gtest/gtest.h>

#include "tests/unit/instruments/bench/scripted_case.h"

namespace shmemctl::bench {
namespace {

using test::OnePe;
using test::ScriptedRun;

TEST(EngineMemory, ATooSmallHeapSaysWhatItTakes) {
  OnePe job(Environment{{"SHMEMCTL_SYMMETRIC_SIZE", "16M"}});
  ScriptedRun run;
  run.script.memory_bytes = std::size_t{100} << 20;
  try {
    run.run(job.runtime());
    FAIL() << "it fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(error.fix().find("--symmetric-size 128M"), std::string::npos) << error.fix();
  }
}

TEST(EngineTimer, TheClockIsMeasured) {
  const SteadyClock clock;
  const TimerQuality quality = measure_timer(clock);
  EXPECT_GT(quality.resolution_ns, 0);
  EXPECT_GT(quality.cost_ns, 0);
  EXPECT_LT(quality.error_ns(), 1e5);
  EXPECT_EQ(clock.name().rfind("CLOCK_MONOTONIC", 0), 0u);
  EXPECT_EQ(measure_timer(test::ManualClock()).cost_ns, 0);
}

} // namespace
} // namespace shmemctl::bench
