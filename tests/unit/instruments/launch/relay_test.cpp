// Lines of many streams merged into one sink: complete, in order, unchanged.
#include "src/instruments/launch/relay.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "src/base/text.h"
#include "src/instruments/launch/spawn.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

/// Streams fed by this test, into a file.
class Relay {
public:
  explicit Relay(std::size_t streams, bool label = false, bool at_once = false,
                 bool one_error = false)
      : file_(::open((folder_.path() + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)),
        sink_(file_.get()) {
    for (std::size_t i = 0; i < streams; ++i) {
      Pipe pipe = Pipe::make();
      ::fcntl(pipe.write_end.get(), F_SETPIPE_SZ, 1 << 20);
      writers_.push_back(std::move(pipe.write_end));
      streams_.push_back(std::make_unique<OutputStream>(
          std::move(pipe.read_end), sink_,
          OutputStream::Style{label ? "[" + std::to_string(i) + "] " : "", at_once, one_error}));
    }
  }
  void write(std::size_t stream, const std::string& text) {
    ASSERT_EQ(::write(writers_[stream].get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
    while (streams_[stream]->wants_read() && streams_[stream]->read()) {
    }
  }
  void end(std::size_t stream) {
    writers_[stream].reset();
    while (streams_[stream]->read()) {
    }
    for (const auto& other : streams_)
      other->pass_on();
  }
  std::string text() const { return folder_.read("out"); }
  OutputStream& stream(std::size_t i) { return *streams_[i]; }
  OutputSink& sink() { return sink_; }

private:
  TemporaryFolder folder_;
  FileDescriptor file_;
  OutputSink sink_;
  std::vector<FileDescriptor> writers_;
  std::vector<std::unique_ptr<OutputStream>> streams_;
};

TEST(Relay, LinesWaitForTheirEnd) {
  Relay relay(2);
  relay.write(0, "one ");
  relay.write(1, "two\n");
  relay.write(0, "line\nrest");
  EXPECT_EQ(relay.text(), "two\none line\n");
  relay.end(0);
  EXPECT_EQ(relay.text(), "two\none line\nrest");
}

TEST(Relay, UnfinishedLastLinesDoNotRunTogether) {
  Relay relay(2);
  relay.write(0, "a");
  relay.write(1, "b");
  relay.end(0);
  relay.end(1);
  EXPECT_EQ(relay.text(), "a\nb");
}

TEST(Relay, AtOncePassesEveryByteOn) {
  Relay relay(1, false, true);
  relay.write(0, "prompt? ");
  EXPECT_EQ(relay.text(), "prompt? ");
}

TEST(Relay, LabelsBeginEveryLine) {
  Relay relay(2, true);
  relay.write(0, "a\n\nb\nc");
  relay.write(1, "d\n");
  relay.end(0);
  relay.end(1);
  EXPECT_EQ(relay.text(), "[0] a\n[0] \n[0] b\n[1] d\n[0] c");
}

TEST(Relay, BytesAreNotChanged) {
  Relay relay(1);
  std::string bytes;
  for (int i = 0; i < 256; ++i)
    bytes += static_cast<char>(i);
  relay.write(0, bytes + std::string("\0\0\xff\xfe", 4));
  relay.end(0);
  EXPECT_EQ(relay.text(), bytes + std::string("\0\0\xff\xfe", 4));
}

TEST(Relay, VeryLongLineIsPassedOnInPiecesAndNotMixed) {
  Relay relay(3, true);
  const std::string piece(OutputStream::longest_line_bytes, 'x');
  relay.write(0, piece);
  EXPECT_GT(relay.text().size(), 0U) << "memory stays bounded";
  relay.write(1, "other\n");
  relay.write(0, piece);
  relay.write(0, "\nnext\n");
  relay.end(1);
  relay.end(2);
  relay.end(0);
  EXPECT_EQ(relay.text(), "[0] " + piece + piece + "\n[0] next\n[1] other\n");
}

TEST(Relay, AStreamThatEndsInsideAVeryLongLineReleasesTheOthers) {
  Relay relay(2);
  const std::string piece(OutputStream::longest_line_bytes, 'x');
  relay.write(0, piece);
  relay.write(1, "other\n");
  EXPECT_EQ(relay.text(), piece);
  relay.end(0);
  EXPECT_EQ(relay.text(), piece + "\nother\n");
}

TEST(Relay, RandomPiecesKeepEveryStreamsText) {
  std::mt19937 random(7);
  constexpr std::size_t streams = 5;
  Relay relay(streams, true);
  std::vector<std::string> sent(streams);
  for (int step = 0; step < 3000; ++step) {
    const std::size_t stream = random() % streams;
    std::string text(random() % 40, static_cast<char>('a' + stream));
    for (char& c : text)
      if (random() % 9 == 0)
        c = '\n';
    sent[stream] += text;
    relay.write(stream, text);
  }
  for (std::size_t i = 0; i < streams; ++i) {
    relay.write(i, "\n");
    sent[i] += "\n";
    relay.end(i);
  }
  std::map<std::string, std::string> got;
  for (const std::string& line : split(relay.text(), '\n'))
    if (!line.empty())
      got[line.substr(0, 4)] += line.substr(4) + "\n";
  for (std::size_t i = 0; i < streams; ++i)
    EXPECT_EQ(got["[" + std::to_string(i) + "] "], sent[i]);
}

TEST(Relay, LastWordsAreTheLastLineWithText) {
  Relay relay(1);
  relay.write(0, "first\nshmemctl: error: PE 3 was lost\nshmemctl: fix: look at it\n\n  \n");
  EXPECT_EQ(relay.stream(0).last_words(), "PE 3 was lost");
  relay.write(0, std::string(100'000, 'y') + "\nthe end\x1b[0m");
  EXPECT_EQ(relay.stream(0).last_words(), "the end\\x1b[0m");
}

TEST(Relay, ABlockedReaderBlocksNoStream) {
  Pipe slow = Pipe::make();
  OutputSink sink(slow.write_end.get());
  Pipe pipe = Pipe::make();
  ::fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
  OutputStream stream(std::move(pipe.read_end), sink, {});
  const std::string line = std::string(999, 'z') + "\n";
  std::size_t sent = 0;
  while (::write(pipe.write_end.get(), line.data(), line.size()) ==
         static_cast<ssize_t>(line.size())) {
    sent += line.size();
    while (stream.wants_read() && stream.read()) {
    }
    ASSERT_LT(sent, std::size_t{4} << 20) << "memory is not bounded";
  }
  EXPECT_TRUE(sink.full());
  EXPECT_TRUE(sink.wants_write());
  // The descriptor that others may share is still blocking.
  EXPECT_EQ(::fcntl(slow.write_end.get(), F_GETFL) & O_NONBLOCK, 0);
  // Now it reads: everything arrives.
  std::size_t got = 0;
  std::string part(1 << 16, '\0');
  pipe.write_end.reset();
  while (got < sent) {
    const ssize_t count = ::read(slow.read_end.get(), part.data(), part.size());
    ASSERT_GT(count, 0);
    got += static_cast<std::size_t>(count);
    sink.flush();
    while (stream.wants_read() && stream.read()) {
    }
    sink.flush();
  }
}

TEST(Relay, AClosedReaderBreaksTheSink) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe gone = Pipe::make();
  OutputSink sink(gone.write_end.get());
  gone.read_end.reset();
  Pipe pipe = Pipe::make();
  OutputStream stream(std::move(pipe.read_end), sink, {});
  ASSERT_EQ(::write(pipe.write_end.get(), "x\n", 2), 2);
  stream.read();
  EXPECT_TRUE(sink.broken());
  EXPECT_EQ(sink.error_number(), EPIPE);
  std::signal(SIGPIPE, SIG_DFL);
}

TEST(Relay, AnErrorOfSeveralStreamsIsPassedOnOnce) {
  const std::string error = "shmemctl: error: no case is called putt\n",
                    fix = "shmemctl: fix: put\n";
  Relay relay(3, false, false, true);
  relay.write(0, error + fix);
  relay.write(1, "mine\n" + error + fix + "shmemctl: warning: x\n");
  relay.write(2, "shmemctl: error: another\n" + fix);
  relay.write(2, error + fix);
  relay.write(0, error + fix);
  EXPECT_EQ(relay.text(), error + fix + "mine\nshmemctl: warning: x\nshmemctl: error: another\n" +
                              fix + error + fix)
      << "its own again is no other's, and a fix goes with its error";
}

TEST(Relay, KnowsWhetherAnErrorWasPassedOn) {
  Relay relay(2, false, false, true);
  relay.write(0, "shmemctl: warning: x\nshmemctl: fix: y\n");
  EXPECT_FALSE(relay.sink().shows_error());
  relay.write(1, "shmemctl: error: x\n");
  EXPECT_TRUE(relay.sink().shows_error());
}

TEST(Relay, WhatIsNotAskedForIsNotLeftOut) {
  Relay relay(2);
  relay.write(0, "shmemctl: error: x\n");
  relay.write(1, "shmemctl: error: x\n");
  EXPECT_EQ(relay.text(), "shmemctl: error: x\nshmemctl: error: x\n");
}

TEST(Relay, RefusedOutputIsDroppedForAWhileBeforeWritersGetEpipe) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full)
    GTEST_SKIP() << "this system has no /dev/full";
  OutputSink sink(full.get());
  Pipe pipe = Pipe::make();
  OutputStream stream(std::move(pipe.read_end), sink, {});
  const std::string line(1000, 'x');
  ASSERT_EQ(::write(pipe.write_end.get(), (line + "\n").data(), 1001), 1001);
  EXPECT_TRUE(stream.read());
  EXPECT_TRUE(sink.broken());
  EXPECT_FALSE(sink.given_up());
  for (int i = 0; i < 100000 && !sink.given_up(); ++i) {
    ASSERT_EQ(::write(pipe.write_end.get(), (line + "\n").data(), 1001), 1001);
    EXPECT_TRUE(stream.read());
  }
  EXPECT_TRUE(sink.given_up());
}

TEST(Relay, ADescriptorOpenForReadingRefusesOutput) {
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC)); // a stdout that was closed
  OutputSink sink(null.get());
  Pipe pipe = Pipe::make();
  OutputStream stream(std::move(pipe.read_end), sink, {});
  ASSERT_EQ(::write(pipe.write_end.get(), "x\n", 2), 2);
  EXPECT_TRUE(stream.read());
  EXPECT_EQ(sink.error_number(), EBADF);
}

} // namespace
} // namespace shmemctl
