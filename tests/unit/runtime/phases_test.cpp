// Phases: order, times, undo in reverse, and the state after a failure.
#include "src/runtime/phases.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "src/base/error.h"

namespace shmemctl {
namespace {

struct Trace {
  std::vector<std::string> lines;
  Phases::Step step(const std::string& line) {
    return [this, line] { lines.push_back(line); };
  }
};

Phases::Step failing(const std::string& what) {
  return [what] { throw Error(ExitCode::unavailable, what, "open", "no", "replace it"); };
}

TEST(Phases, AreUndoneInReverse) {
  Trace trace;
  Phases phases;
  phases.run("a", trace.step("+a"), trace.step("-a"));
  phases.run("b", trace.step("+b"));
  phases.run("c", trace.step("+c"), trace.step("-c"));
  phases.undo_all();
  phases.undo_all();
  EXPECT_EQ(trace.lines, (std::vector<std::string>{"+a", "+b", "+c", "-c", "-a"}));
}

TEST(Phases, AFailureUndoesTheEarlierOnesOnly) {
  Trace trace;
  Phases phases;
  phases.run("a", trace.step("+a"), trace.step("-a"));
  phases.run("b", trace.step("+b"), trace.step("-b"));
  try {
    phases.run("heap", failing("heap"), trace.step("-heap"));
    FAIL() << "the error was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.subject(), "heap");
  }
  EXPECT_EQ(trace.lines, (std::vector<std::string>{"+a", "+b", "-b", "-a"}));
  EXPECT_EQ(phases.current(), "heap");
  ASSERT_EQ(phases.times().size(), 3U);
  EXPECT_EQ(phases.times()[2].name, "heap");
}

TEST(Phases, TheDestructorUndoes) {
  Trace trace;
  {
    Phases phases;
    phases.run("a", trace.step("+a"), trace.step("-a"));
  }
  EXPECT_EQ(trace.lines, (std::vector<std::string>{"+a", "-a"}));
}

TEST(Phases, AnUndoThatThrowsDoesNotStopTheOthers) {
  Trace trace;
  Phases phases;
  phases.run("a", {}, trace.step("-a"));
  phases.run("b", {}, failing("b"));
  phases.run("c", {}, [] { throw 1; });
  phases.run("d", {}, trace.step("-d"));
  phases.undo_all();
  EXPECT_EQ(trace.lines, (std::vector<std::string>{"-d", "-a"}));
}

TEST(Phases, AreAnnouncedBeforeTheyAreEntered) {
  Trace trace;
  Phases phases([&](const std::string& name) { trace.lines.push_back("announce " + name); });
  phases.run("a", [&] {
    EXPECT_EQ(phases.current(), "a");
    trace.lines.emplace_back("+a");
  });
  EXPECT_EQ(phases.current(), "");
  EXPECT_EQ(trace.lines, (std::vector<std::string>{"announce a", "+a"}));
}

TEST(Phases, AnAnnouncementThatThrowsIsAFailureOfThePhase) {
  Trace trace;
  int calls = 0;
  Phases phases([&](const std::string&) {
    if (++calls == 2)
      throw Error(ExitCode::deadline, "job", "go on", "late", "wait");
  });
  phases.run("a", {}, trace.step("-a"));
  EXPECT_THROW(phases.run("b", trace.step("+b"), trace.step("-b")), Error);
  EXPECT_EQ(trace.lines, std::vector<std::string>{"-a"});
}

TEST(Phases, EachOneIsTimed) {
  Phases phases;
  phases.run("quick", {});
  const auto start = std::chrono::steady_clock::now();
  phases.run("slow", [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  const std::chrono::duration<double, std::milli> limit = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(phases.times().size(), 2U);
  EXPECT_GE(phases.times()[0].time_ms, 0);
  EXPECT_GE(phases.times()[1].time_ms, 20);
  EXPECT_LE(phases.times()[1].time_ms, limit.count());
}

TEST(Phases, RunAgainAfterUndo) {
  Trace trace;
  Phases phases;
  phases.run("a", {}, trace.step("-a"));
  phases.undo_all();
  phases.run("b", {}, trace.step("-b"));
  phases.undo_all();
  EXPECT_EQ(trace.lines, (std::vector<std::string>{"-a", "-b"}));
}

} // namespace
} // namespace shmemctl
