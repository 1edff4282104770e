#include "src/base/watchdog.h"

#include <future>
#include <gtest/gtest.h>

namespace shmemctl {

TEST(Watchdog, TellsTheLastPhaseWhenTheDeadlinePasses) {
  std::promise<std::string> expired;
  Watchdog watchdog(std::chrono::milliseconds(50),
                    [&expired](const std::string& phase) { expired.set_value(phase); });
  watchdog.phase("reading NVML");
  std::future<std::string> phase = expired.get_future();
  ASSERT_EQ(phase.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(phase.get(), "reading NVML");
}

TEST(Watchdog, IsSilentIfTheWorkEndsInTime) {
  bool expired = false;
  {
    Watchdog watchdog(std::chrono::hours(1), [&expired](const std::string&) { expired = true; });
    watchdog.phase("working");
  }
  EXPECT_FALSE(expired);
}

} // namespace shmemctl
