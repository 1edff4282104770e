#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "src/base/process.h"
#include "src/runtime/bootstrap/blocking_calls.h"
#include "src/runtime/bootstrap/chunks.h"
#include "tests/support/expect_error.h"
#include "tests/support/soon.h"

namespace shmemctl {
namespace {

using test::soon;

using test::expect_error;

/// A call that does not return until it is released.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false, passed = false;

  void pass() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return open; });
    passed = true;
    changed.notify_all();
  }
  void release_and_wait() {
    std::unique_lock lock(mutex);
    open = true;
    changed.notify_all();
    changed.wait(lock, [this] { return passed; });
  }
};

TEST(BlockingCalls, OneThreadMakesAllCalls) {
  BlockingCalls calls;
  JobHealth health;
  std::thread::id first, second;
  calls.run(
      "first", [&] { first = std::this_thread::get_id(); }, soon(), health);
  calls.run(
      "second", [&] { second = std::this_thread::get_id(); }, soon(), health);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, std::this_thread::get_id());
}

TEST(BlockingCalls, ManyCalls) {
  BlockingCalls calls;
  JobHealth health;
  int count = 0;
  for (int at = 0; at < 10000; ++at)
    calls.run(
        "count", [&] { ++count; }, soon(), health);
  EXPECT_EQ(count, 10000);
}

TEST(BlockingCalls, ExceptionsPropagate) {
  BlockingCalls calls;
  JobHealth health;
  EXPECT_THROW(calls.run(
                   "fail", [] { throw std::out_of_range("x"); }, soon(), health),
               std::out_of_range);
  EXPECT_FALSE(calls.abandoned());
  calls.run(
      "again", [] {}, soon(), health);
}

TEST(BlockingCalls, ADeadlineAbandonsTheCall) {
  const auto gate = std::make_shared<Gate>();
  JobHealth health;
  {
    BlockingCalls calls;
    expect_error(ExitCode::deadline, {"PE 7", "shmem_init"}, [&] {
      calls.run(
          "shmem_init", [gate] { gate->pass(); }, soon(0.05), health, [] { return 7; });
    });
    EXPECT_TRUE(calls.abandoned());
    EXPECT_THROW(calls.run(
                     "more", [] {}, soon(), health),
                 std::logic_error);
  }
  gate->release_and_wait(); // the thread lives on without its owner
}

TEST(BlockingCalls, AJobFailureAbandonsTheCall) {
  class Failed final : public JobHealth {
  public:
    void check() const override {
      throw Error(ExitCode::unavailable, "PE 1", "reach", "it died", "see it");
    }
  };
  const auto gate = std::make_shared<Gate>();
  Failed health;
  {
    BlockingCalls calls;
    expect_error(ExitCode::unavailable, {"PE 1"}, [&] {
      calls.run(
          "wait", [gate] { gate->pass(); }, soon(600), health);
    });
    EXPECT_TRUE(calls.abandoned());
  }
  gate->release_and_wait();
}

TEST(Pieces, CoverEverythingOnce) {
  for (const std::size_t total : {0, 1, 7, 8, 9, 64}) {
    std::size_t next = 0, count = 0;
    for_each_chunk(total, 8, [&](std::size_t offset, std::size_t bytes) {
      EXPECT_EQ(offset, next);
      EXPECT_LE(bytes, 8U);
      next += bytes;
      ++count;
    });
    EXPECT_EQ(next, total);
    EXPECT_EQ(count, std::max<std::size_t>(1, (total + 7) / 8)) << total;
  }
}

TEST(SignalDispositions, HandlersArePutBack) {
  struct sigaction own {
  }, now{};
  own.sa_handler = SIG_IGN;
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &own, &before), 0);
  {
    const SignalDispositions keep;
    std::signal(SIGUSR1, [](int) {});
    std::signal(SIGTERM, SIG_IGN);
  }
  ::sigaction(SIGUSR1, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  ::sigaction(SIGTERM, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
  ::sigaction(SIGUSR1, &before, nullptr);
}

} // namespace
} // namespace shmemctl
