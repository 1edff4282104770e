#include "src/base/status_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <iostream>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

#include "src/base/file_descriptor.h"
#include "src/base/log.h"

namespace shmemctl {
namespace {

using namespace std::chrono_literals;

/// Stands for a terminal of unknown size: what is written to it can be read.
class Terminal {
public:
  Terminal() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
      throw std::runtime_error("no pipe");
    read_end_ = FileDescriptor(ends[0]);
    write_end_ = FileDescriptor(ends[1]);
  }
  int descriptor() const { return write_end_.get(); }
  std::string text() const {
    std::string all;
    char buffer[4096];
    for (ssize_t size = 0; (size = ::read(read_end_.get(), buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<std::size_t>(size));
    return all;
  }
  /// Waits until it has been written to.
  bool wait() const {
    pollfd waiting{read_end_.get(), POLLIN, 0};
    return ::poll(&waiting, 1, 60'000) == 1;
  }

private:
  FileDescriptor read_end_, write_end_;
};

/// It may have been painted once more before.
bool ends_with_clearing(const std::string& text) {
  const std::string clearing = "\r\x1b[K";
  return text.size() >= clearing.size() &&
         text.compare(text.size() - clearing.size(), clearing.size(), clearing) == 0;
}

TEST(StatusLine, IsPaintedAfterASecondAndRemoved) {
  const Terminal terminal;
  const auto start = StatusLine::Clock::now();
  StatusLine line(terminal.descriptor(), start);
  line.paint(start + 5s);
  EXPECT_EQ(terminal.text(), "") << "there is nothing to say";
  line.say("bench put 4K");
  line.paint(start + 900ms);
  EXPECT_EQ(terminal.text(), "") << "too early";
  line.clear();
  EXPECT_EQ(terminal.text(), "") << "nothing to remove";
  line.paint(start + 12s);
  EXPECT_EQ(terminal.text(), "\rshmemctl: 12 s, bench put 4K\x1b[K");
  line.clear();
  line.clear();
  EXPECT_EQ(terminal.text(), "\r\x1b[K");
  line.paint(start + 13s);
  terminal.text();
  line.say("");
  line.paint(start + 14s);
  EXPECT_EQ(terminal.text(), "\r\x1b[K") << "nothing is said any more";
}

TEST(StatusLine, NeverWrapsAndNeverObeysWords) {
  const Terminal terminal;
  const auto start = StatusLine::Clock::now();
  StatusLine line(terminal.descriptor(), start);
  line.say("\x1b[2J" + std::string(70, 'x') + "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9");
  line.paint(start + 2s);
  const std::string text = terminal.text();
  ASSERT_GT(text.size(), 4U);
  const std::string shown = text.substr(1, text.size() - 4);
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
  EXPECT_LE(shown.size(), 79U);
  EXPECT_NE(static_cast<unsigned char>(shown.back()), 0xc3U) << "half a character";
}

/// What is printed while the line is shown is alone, and the line is removed in the end.
TEST(LiveStatus, MakesWayForOtherText) {
  const Terminal terminal;
  std::ostringstream printed;
  std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
  {
    LiveStatus status(terminal.descriptor());
    status.say("working");
    ASSERT_TRUE(terminal.wait());
    EXPECT_NE(terminal.text().find(" s, working\x1b[K"), std::string::npos);
    std::cout << "a row\n";
    EXPECT_EQ(printed.str(), "a row\n");
    EXPECT_NE(terminal.text().find("\r\x1b[K"), std::string::npos);
    ASSERT_TRUE(terminal.wait()) << "it is painted again";
    terminal.text();
    {
      const StatusPause pause;
      EXPECT_TRUE(ends_with_clearing(terminal.text()));
    }
    ASSERT_TRUE(terminal.wait());
    terminal.text();
    std::cout << "half a row"; // from here on the status line would follow that text
    terminal.text();
    pollfd unused{-1, 0, 0};
    ::poll(&unused, 1, 1200);
    EXPECT_EQ(terminal.text(), "");
    std::cout << '\n';
    ASSERT_TRUE(terminal.wait());
    terminal.text();
  }
  EXPECT_TRUE(ends_with_clearing(terminal.text()));
  EXPECT_EQ(std::cout.rdbuf(), printed.rdbuf());
  std::cout.rdbuf(before);
  EXPECT_EQ(printed.str(), "a row\nhalf a row\n");
}

TEST(LiveStatus, AFailedWriteStaysKnown) {
  const Terminal terminal;
  std::ostringstream printed;
  std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
  {
    LiveStatus status(terminal.descriptor());
    std::cout.setstate(std::ios_base::badbit);
  }
  EXPECT_TRUE(std::cout.bad());
  std::cout.rdbuf(before);
  EXPECT_FALSE(std::cout.bad());
}

TEST(LiveStatus, WithoutOneAPauseIsNothing) {
  const StatusPause first, second;
  SUCCEED();
}

} // namespace
} // namespace shmemctl
