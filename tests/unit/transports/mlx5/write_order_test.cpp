// The memory orders of kernels' QPs (kernels/device/gpu_memory.cuh), each removed by itself, on
// memory without any other order: the model checker must find the failure.
#include <gtest/gtest.h>
#include <iostream>

#include "tests/unit/runtime/proxy/model_size.h"
#include "tests/unit/transports/mlx5/send_queue_model.h"

namespace shmemctl::test {
namespace {

using Base = ViewModelMemory;

template <class Memory>
Exploration explore(std::vector<std::string> scripts) {
  QueueModelSetting setting{.scripts = std::move(scripts), .mode = CqMode::collapsed};
  QueueMachine<RightQueue<3, 1, Memory>> machine(setting);
  Exploration found = Explorer(machine).run();
  std::cout << found.states << " states, " << found.transitions << " transitions, "
            << found.terminals << " ends" << (found.violation.empty() ? "" : ": ")
            << found.violation << "\n";
  return found;
}

void expect_right(const std::vector<std::string>& scripts) {
  const Exploration found = explore<Base>(scripts);
  EXPECT_EQ(found.violation, "");
  for (const std::string& step : found.trace)
    std::cout << "  " << step << "\n";
  EXPECT_GE(found.terminals, 1u);
}
template <class Memory>
void expect_found(const std::vector<std::string>& scripts, const std::string& words) {
  const Exploration found = explore<Memory>(scripts);
  EXPECT_NE(found.violation.find(words), std::string::npos);
}

TEST(Mlx5Orders, AreEnough) {
  expect_right({"r"});
  expect_right({"pq"});
  expect_right({"p", "p"});
}
/// One producer writes a WQE and leaves the doorbell to the next one: the device must see the whole
/// WQE. WQEs may be in host memory, and the two in different WQEBBs of a kernel.
TEST(Mlx5Orders, AWqeThatAnotherProducerRingsFor) {
  expect_right({"l", "p"});
}
TEST(Mlx5Orders, AreEnoughForLonger) {
  if (!thorough)
    GTEST_SKIP() << "only in optimised builds without sanitizers: it would take minutes";
  expect_right({"ppp"});
  expect_right({"r", "p"});
}

/// NETWORK_ACQUIRE in two parts: for the device's completions, and for what others know of them.
struct CompletionWithoutAcquire : Base {
  static std::uint64_t load_completion(const std::uint64_t* word) { return load(word); }
};
TEST(Mlx5Orders, TheCompletionIsAcquired) {
  expect_found<CompletionWithoutAcquire>({"r"}, "what a READ brought");
}
struct WordsWithoutAcquire : Base {
  static std::uint64_t load_acquire(const std::uint64_t* word) { return load(word); }
};
TEST(Mlx5Orders, WhatIsCompleteIsAcquired) {
  expect_found<WordsWithoutAcquire>({"r", "r"}, "what a READ brought");
}

/// NETWORK_RELEASE: for WQEs before they are published, and for completions that were seen.
struct TurnWithoutFence : Base {
  static void wqes_written() {}
};
TEST(Mlx5Orders, WqesAreReleased) {
  expect_found<TurnWithoutFence>({"p", "p"}, "next entry");
  expect_found<TurnWithoutFence>({"l", "p"}, "next entry");
}
struct CompletedWithoutRelease : Base {
  static void fetch_max_release(std::uint64_t* word, std::uint64_t value) {
    context().modify(place(word), false, false,
                     [&](std::uint64_t old) { return old < value ? value : old; });
  }
};
TEST(Mlx5Orders, WhatIsCompleteIsReleased) {
  expect_found<CompletedWithoutRelease>({"r", "r"}, "what a READ brought");
}

/// NETWORK_DOORBELL in two parts. The device sees an older doorbell, and a record that is ahead of
/// it.
struct RecordWithoutFence : Base {
  static void store_record(std::uint64_t* word, std::uint64_t value) { store(word, value); }
  /// One of scope .gpu, which the device may ignore.
  static void wqes_written() {}
};
TEST(Mlx5Orders, WqesAreBeforeTheRecord) {
  expect_found<RecordWithoutFence>({"pp"}, "next entry");
}
struct DoorbellWithoutRelease : Base {
  static void store_doorbell(std::uint64_t* word, std::uint64_t value, std::uint32_t) {
    store(word, value);
  }
};
TEST(Mlx5Orders, TheRecordIsBeforeTheDoorbell) {
  expect_found<DoorbellWithoutRelease>({"p"}, "deadlock");
}

} // namespace
} // namespace shmemctl::test
