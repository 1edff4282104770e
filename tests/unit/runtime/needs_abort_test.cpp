// Who asks the launcher to end a job that has a process which will not end by itself.
#include <gtest/gtest.h>

#include "src/bootstrap/abort_at_end.h"
#include "src/runtime/lifeline.h"
#include "tests/support/fork_world.h"

namespace shmemctl {
namespace {

std::unique_ptr<Failure> failure_of(int pe, bool unresponsive) {
  auto failure = std::make_unique<Failure>();
  failure->pe = pe;
  failure->unresponsive = unresponsive;
  return failure;
}

TEST(NeedsAbort, OnePeAsksAndNeverTheOneThatIsStopped) {
  for (int culprit = 0; culprit < 4; ++culprit) {
    int asking = 0;
    for (int pe = 0; pe < 4; ++pe)
      if (pe != culprit && needs_abort(failure_of(culprit, true), pe))
        ++asking;
    EXPECT_EQ(asking, 1) << culprit;
  }
  EXPECT_TRUE(needs_abort(failure_of(2, true), 0)) << "PE 0 has the report to write before";
}

TEST(NeedsAbort, WhoeverEndsByItselfNeedsNone) {
  EXPECT_FALSE(needs_abort(nullptr, 0));
  for (int pe = 0; pe < 3; ++pe)
    EXPECT_FALSE(needs_abort(failure_of(1, false), pe));
}

/// Writes into the pipe that it is asked.
class AskedBootstrap final : public Bootstrap {
public:
  explicit AskedBootstrap(int out) : Bootstrap(0, 2), out_(out) {}
  const char* name() const override { return "asked"; }
  void allgather(const void*, void*, std::size_t, const Deadline&) override {}
  void alltoall(const void*, void*, std::size_t, const Deadline&) override {}
  void barrier(const Deadline&) override {}
  void broadcast(void*, std::size_t, int, const Deadline&) override {}
  void finish(const Deadline&) override {}
  void abort(ExitCode code, const std::string& message) noexcept override {
    const std::string text = message + " " + std::to_string(static_cast<int>(code));
    [[maybe_unused]] const ssize_t written = ::write(out_, text.data(), text.size());
  }

private:
  int out_;
};

/// After what main() does behind it, and once.
TEST(AbortAtEnd, TheLauncherIsAskedWhenTheProcessEnds) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(ends[0]);
    for (const char* words : {"PE 2 does not answer", "second"})
      abort_at_end(std::make_unique<AskedBootstrap>(ends[1]), ExitCode::deadline, words);
    [[maybe_unused]] const ssize_t written = ::write(ends[1], "report; ", 8);
    std::exit(124);
  }
  ::close(ends[1]);
  std::string said;
  char byte = 0;
  while (::read(ends[0], &byte, 1) == 1)
    said += byte;
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(said, "report; PE 2 does not answer 124");
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 124);
}

} // namespace
} // namespace shmemctl
