#include "src/instruments/launch/progress_pipe.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/instruments/launch/spawn.h"

namespace shmemctl {
namespace {

class ProgressPipe : public testing::Test {
protected:
  ProgressPipe() {
    for (const FileDescriptor* end : {&pipe_.read_end, &pipe_.write_end})
      ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  }
  Environment environment() const {
    return {{progress_variable, progress_value(pipe_.write_end.get())}};
  }
  Pipe pipe_ = Pipe::make();
};

TEST_F(ProgressPipe, TheLastLineArrives) {
  EXPECT_EQ(last_progress(pipe_.read_end.get()), "");
  send_progress(pipe_.write_end.get(), "bring-up");
  send_progress(pipe_.write_end.get(), "bench put 4K");
  send_progress(pipe_.write_end.get(), "");
  EXPECT_EQ(last_progress(pipe_.read_end.get()), "bench put 4K");
  EXPECT_EQ(last_progress(pipe_.read_end.get()), "");
  send_progress(pipe_.write_end.get(), std::string(5000, 'x') + "\ny");
  EXPECT_EQ(last_progress(pipe_.read_end.get()).find('\n'), std::string::npos);
}

TEST_F(ProgressPipe, AFullOneOrOneWithoutReaderDropsLines) {
  for (int i = 0; i < 10000; ++i)
    send_progress(pipe_.write_end.get(), std::string(200, 'x'));
  EXPECT_EQ(last_progress(pipe_.read_end.get()), std::string(200, 'x'));
  pipe_.read_end.reset();
  send_progress(pipe_.write_end.get(), "no reader"); // SIGPIPE would end this test
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

TEST_F(ProgressPipe, IsFoundByItsNumberAndNotInherited) {
  const int descriptor = pipe_.write_end.get();
  ::fcntl(descriptor, F_SETFD, 0);
  const FileDescriptor found = open_progress_pipe(environment());
  EXPECT_EQ(found.get(), descriptor);
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), FD_CLOEXEC);
  pipe_.write_end.release(); // `found` owns the descriptor now
}

/// The variable outlives the descriptor in programs that a PE starts.
TEST_F(ProgressPipe, AnotherFileOfThatNumberIsLeftAlone) {
  const Environment stale = environment();
  const int descriptor = pipe_.write_end.get();
  const Pipe other = Pipe::make();
  ASSERT_GE(::dup2(other.write_end.get(), descriptor), 0);
  EXPECT_FALSE(open_progress_pipe(stale));
  pipe_.write_end.reset();
  EXPECT_FALSE(open_progress_pipe(stale));
  for (const char* text : {"", "x", "1:2", "7", "99999999999999999999:1", ":", "5:"})
    EXPECT_FALSE(open_progress_pipe({{progress_variable, text}})) << text;
  EXPECT_FALSE(open_progress_pipe({}));
}

} // namespace
} // namespace shmemctl
