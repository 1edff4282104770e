// Every interleaving of the send queue's own code, for small queues.
#include <gtest/gtest.h>
#include <iostream>

#include "tests/unit/runtime/proxy/model_size.h"
#include "tests/unit/transports/mlx5/send_queue_model.h"

namespace shmemctl::test {
namespace {

std::string text_of(const Exploration& exploration) {
  std::string text = exploration.violation;
  for (const std::string& step : exploration.trace)
    text += "\n  " + step;
  return text;
}

template <unsigned Bits, unsigned Words, class Memory>
void expect_right_by(const QueueModelSetting& setting, std::size_t min_states) {
  QueueMachine<RightQueue<Bits, Words, Memory>> machine(setting);
  const Exploration found = Explorer(machine).run();
  std::cout << found.states << " states, " << found.transitions << " transitions, "
            << found.terminals << " ends\n";
  EXPECT_EQ(found.violation, "") << text_of(found);
  EXPECT_GT(found.states, min_states);
  EXPECT_GE(found.terminals, 1u);
}

/// All properties hold in all states, and there are enough states for that to be meaningful.
template <unsigned Bits = 3, unsigned Words = 1>
void expect_right(QueueModelSetting setting, std::size_t min_states) {
  for (const CqMode mode : {CqMode::ring, CqMode::collapsed}) {
    setting.mode = mode;
    expect_right_by<Bits, Words, QueueModelMemory>(setting, min_states);
  }
  // Kernels' queues have one completion for all.
  expect_right_by<Bits, Words, GpuQueueModelMemory>(setting, min_states);
}

TEST(Mlx5Model, OneProducerWrapsAroundManyTimes) {
  expect_right<3, 2>({.scripts = {"ppppq"}}, 500);
  // Ten WQEBBs: the device's index wraps.
  expect_right<4>({.scripts = {"PPPPPq"}, .wqebbs_log2 = 2, .signal_log2 = 0}, 500);
  expect_right({.scripts = {"llllllq"}, .signal_log2 = 1}, 100);
  expect_right({.scripts = {"bbbq"}, .signal_log2 = 0}, 500);
}

TEST(Mlx5Model, TwoProducers) {
  expect_right<3, 2>({.scripts = {"p", "p"}}, 3'000);
}

TEST(Mlx5Model, WqesReservedTogether) {
  expect_right<4>({.scripts = {"b", "p"}, .wqebbs_log2 = 2, .signal_log2 = 1}, 1'000);
  expect_right<4>({.scripts = {"P", "P"}, .wqebbs_log2 = 2, .signal_log2 = 1}, 1'000);
}

TEST(Mlx5Model, DeferredDoorbells) {
  expect_right({.scripts = {"lf", "p"}}, 1'000);
  expect_right({.scripts = {"p", "l"}, .ring_log2 = 0}, 1'000);
  expect_right({.scripts = {"lf", "lf"}}, 1'000);
}

TEST(Mlx5Model, Reads) {
  expect_right({.scripts = {"r", "l"}}, 1'000);
}

/// Many more states.
class LargeMlx5Model : public testing::Test {
protected:
  void SetUp() override {
    if (!thorough)
      GTEST_SKIP() << "only in optimised builds without sanitizers: it would take minutes";
  }
};

TEST_F(LargeMlx5Model, TwoProducersInAQueueOfTwo) {
  expect_right({.scripts = {"pp", "p"}}, 20'000);
}

TEST_F(LargeMlx5Model, Quiet) {
  expect_right({.scripts = {"pq", "p"}}, 20'000);
  expect_right({.scripts = {"lq", "q"}, .signal_log2 = 1}, 20'000);
}

TEST_F(LargeMlx5Model, Reads) {
  expect_right({.scripts = {"r", "r"}}, 20'000);
  expect_right({.scripts = {"lr", "s"}, .signal_log2 = 1}, 20'000);
}

TEST_F(LargeMlx5Model, ThreeProducers) {
  expect_right<4>({.scripts = {"p", "lf", "p"}, .wqebbs_log2 = 2, .signal_log2 = 1}, 10'000);
}

} // namespace
} // namespace shmemctl::test
