// Which PE prints what ends the job, and that the others hear of it.
#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/runtime/failure_detector.h"
#include "src/runtime/failure_detector_tree.h"
#include "tests/support/failure_detector_world.h"

namespace shmemctl {
namespace {

using namespace test;

/// What each PE has printed.
class Prints {
public:
  std::function<ErrorPrinter(int pe)> printer_of() {
    return [this](int pe) {
      return [this, pe](const Error& error) {
        const std::lock_guard lock(mutex_);
        all_.emplace_back(pe, error.message());
      };
    };
  }
  std::vector<std::pair<int, std::string>> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::pair<int, std::string>> all_;
};

/// As the runtime raises it on a PE.
Error heap_error(int pe, const std::string& cause = "no space") {
  return {ExitCode::unavailable, "heap in phase heap",
          "reserve memory",      cause,
          "free memory",         {pe % 2 == 0 ? "a" : "b", pe, "", std::nullopt}};
}

class FailureDetectorPrint : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, FailureDetectorPrint, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tcp" : "Unix"; });

TEST_P(FailureDetectorPrint, PeZeroPrintsTheErrorOfThePeThatFailed) {
  for (const int failing : {0, 1, 6, 14}) {
    Prints prints;
    FailureDetectors detectors = make_failure_detectors(15, GetParam(), prints.printer_of());
    const Error error = heap_error(failing);
    EXPECT_TRUE(detectors[static_cast<std::size_t>(failing)]->announce(error, "heap"));
    EXPECT_TRUE(detectors[static_cast<std::size_t>(failing)]->await_printed(&error));
    for (const auto& failure_detector : detectors) {
      ASSERT_TRUE(failure_of(*failure_detector));
      EXPECT_TRUE(failure_detector->await_printed(nullptr));
    }
    ASSERT_EQ(prints.all().size(), 1U);
    EXPECT_EQ(prints.all()[0], std::pair(0, error.message()));
  }
}

TEST_P(FailureDetectorPrint, AnErrorWithoutAPeGetsTheOneThatFailed) {
  Prints prints;
  FailureDetectors detectors = make_failure_detectors(3, GetParam(), prints.printer_of());
  const Error error(ExitCode::usage, "bench put", "", "no PE 9", "pass --pair 0,1");
  detectors[1]->announce(error, "running");
  EXPECT_TRUE(detectors[1]->await_printed(&error));
  ASSERT_EQ(prints.all().size(), 1U);
  EXPECT_EQ(prints.all()[0].second, "bench put (host b, PE 1): no PE 9");
}

TEST_P(FailureDetectorPrint, AnErrorOfTheCommandLineGetsNoPe) {
  Prints prints;
  FailureDetectors detectors = make_failure_detectors(3, GetParam(), prints.printer_of());
  const Error error =
      Error(ExitCode::usage, "bench put", "", "no PE 9", "pass --pair 0,1").on_all_pes();
  detectors[1]->announce(error, "running"); // before PE 0 has come as far
  EXPECT_TRUE(detectors[1]->await_printed(&error));
  ASSERT_EQ(prints.all().size(), 1U);
  EXPECT_EQ(prints.all()[0], std::pair(0, std::string("bench put: no PE 9")));
}

TEST_P(FailureDetectorPrint, OneOfManyThatFailAlike) {
  for (int round = 0; round < 10; ++round) {
    constexpr int n_pes = 7;
    Prints prints;
    FailureDetectors detectors = make_failure_detectors(n_pes, GetParam(), prints.printer_of());
    std::array<bool, n_pes> printed{};
    std::vector<std::thread> pes;
    for (int pe = 0; pe < n_pes; ++pe)
      pes.emplace_back([&, pe] {
        const auto at = static_cast<std::size_t>(pe);
        const Error mine = heap_error(pe);
        const bool first = detectors[at]->announce(mine, "heap");
        printed.at(at) = detectors[at]->await_printed(first ? &mine : nullptr);
      });
    for (std::thread& pe : pes)
      pe.join();
    EXPECT_EQ(prints.all().size(), 1U);
    for (const bool one : printed)
      EXPECT_TRUE(one);
  }
}

TEST_P(FailureDetectorPrint, AnotherErrorIsNotTakenForPrinted) {
  Prints prints;
  FailureDetectors detectors = make_failure_detectors(4, GetParam(), prints.printer_of());
  detectors[2]->announce(heap_error(2), "heap");
  const Error other = heap_error(3, "no huge pages"), same = heap_error(3);
  ASSERT_TRUE(failure_of(*detectors[3]));
  EXPECT_TRUE(detectors[3]->await_printed(&same));
  EXPECT_FALSE(detectors[3]->await_printed(&other));
}

TEST_P(FailureDetectorPrint, ALostPeIsNamedByOneOfTheOthers) {
  for (const std::size_t lost : {std::size_t{0}, std::size_t{1}, std::size_t{5}}) {
    Prints prints;
    FailureDetectors detectors = make_failure_detectors(7, GetParam(), prints.printer_of());
    detectors[lost].reset();
    for (const auto& failure_detector : detectors)
      if (failure_detector) {
        ASSERT_TRUE(failure_of(*failure_detector));
        EXPECT_TRUE(failure_detector->await_printed(nullptr));
      }
    ASSERT_EQ(prints.all().size(), 1U);
    EXPECT_EQ(prints.all()[0].first, lost == 0 ? 1 : 0);
    EXPECT_NE(prints.all()[0].second.find("PE " + std::to_string(lost) + " (host "),
              std::string::npos);
  }
}

TEST_P(FailureDetectorPrint, WithoutWordFromPeZeroThePesPrintThemselves) {
  Prints prints;
  FailureDetectors detectors = make_failure_detectors(3, GetParam(), prints.printer_of());
  detectors[0]->exclude_self();
  const Error error = heap_error(2);
  detectors[2]->announce(error, "heap");
  EXPECT_FALSE(detectors[2]->await_printed(&error));
  EXPECT_FALSE(detectors[1]->await_printed(nullptr));
  EXPECT_TRUE(prints.all().empty());
}

/// A signal to all PEs ends them without a word; one to a single PE is told by a main thread.
TEST_P(FailureDetectorPrint, AnInterruptedPeIsNamedWhenThePrintingPeWaits) {
  Prints prints;
  FailureDetectors detectors = make_failure_detectors(3, GetParam(), prints.printer_of());
  detectors[1]->announce(
      Error(ExitCode::interrupted, "run", "finish", "interrupted by SIGTERM", "run it again"), "");
  for (const auto& failure_detector : detectors)
    ASSERT_TRUE(failure_of(*failure_detector));
  EXPECT_TRUE(prints.all().empty());
  EXPECT_TRUE(detectors[0]->await_printed(nullptr));
  EXPECT_TRUE(detectors[2]->await_printed(nullptr));
  ASSERT_EQ(prints.all().size(), 1U);
  EXPECT_NE(prints.all()[0].second.find("PE 1 (host b) was interrupted by SIGTERM"),
            std::string::npos);
}

/// What printed_once() says on each PE about an error that it has printed, or knows to be printed.
std::array<bool, 4> printed_once_on_four(Prints& prints, bool with_printer, int absent = -1) {
  std::array<bool, 4> printed{};
  run_bootstrap_threads(4, [&](Bootstrap& bootstrap) {
    const int pe = bootstrap.rank();
    if (pe == absent)
      return;
    const ErrorPrinter printer = with_printer ? prints.printer_of()(pe) : ErrorPrinter();
    printed.at(static_cast<std::size_t>(pe)) =
        printed_once(bootstrap, printer, heap_error(3)).printed();
  });
  return printed;
}

TEST(PrintedOnce, PeZeroPrintsAndTheOthersKnow) {
  Prints prints;
  EXPECT_EQ(printed_once_on_four(prints, true), (std::array{true, true, true, true}));
  ASSERT_EQ(prints.all().size(), 1U);
  EXPECT_EQ(prints.all()[0], std::pair(0, heap_error(3).message()));
}

TEST(PrintedOnce, WhoeverDoesNotKnowPrintsItself) {
  Prints prints;
  EXPECT_EQ(printed_once_on_four(prints, true, 2), (std::array{true, false, false, false}));
  EXPECT_EQ(prints.all().size(), 1U);
  Prints none;
  EXPECT_EQ(printed_once_on_four(none, true, 0), (std::array{false, false, false, false}));
  EXPECT_TRUE(none.all().empty());
}

TEST(PrintedOnce, WithoutAPrinterNobodyWaits) {
  Prints prints;
  EXPECT_EQ(printed_once_on_four(prints, false, 2), (std::array{false, false, false, false}));
  EXPECT_TRUE(prints.all().empty());
}

TEST(FailureDetectorPrints, WithoutAPrinterEveryPePrintsItself) {
  FailureDetectors detectors = make_failure_detectors(3);
  const Error error = heap_error(1);
  detectors[1]->announce(error, "heap");
  ASSERT_TRUE(failure_of(*detectors[0]));
  EXPECT_FALSE(detectors[1]->await_printed(&error));
  EXPECT_FALSE(detectors[0]->await_printed(nullptr));
}

} // namespace
} // namespace shmemctl
