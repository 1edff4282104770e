#include "src/base/signal_name.h"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>

namespace shmemctl {

TEST(SignalName, IsTheCLibrarysForEverySignal) {
  for (int signal = -1; signal <= SIGRTMAX + 1; ++signal) {
    const char* const abbreviation = ::sigabbrev_np(signal);
    EXPECT_EQ(signal_name(signal), abbreviation ? std::string("SIG") + abbreviation
                                                : "signal " + std::to_string(signal));
  }
}

} // namespace shmemctl
