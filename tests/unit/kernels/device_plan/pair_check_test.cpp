// The pair check by kernels, on threads of the host: no failures in a correct job, and each fault
// is detected by the PE that it concerns.
#include <gtest/gtest.h>

#include "kernels/device/pair_check.cuh"
#include "tests/support/host_kernels.h"

namespace shmemctl::test {
namespace {

using kernel_check::Layout;
using kernel_check::Result;
using kernel_check::Step;

constexpr int n_pes = 3;

class KernelPairs : public ::testing::Test {
protected:
  void SetUp() override {
    for (int pe = 0; pe < n_pes; ++pe)
      for (int peer = 0; peer < n_pes; ++peer)
        area(pe)[layout.flags(peer)] = std::byte{7};
  }

  std::byte* area(int pe) { return world.job(pe).heap; }
  std::uint64_t& word(int pe, std::uint64_t offset) {
    return *reinterpret_cast<std::uint64_t*>(area(pe) + offset);
  }
  const Result& result(int pe, int peer, int op) {
    return *reinterpret_cast<const Result*>(area(pe) + layout.result(peer, op));
  }
  void step(Step which) {
    world.run({n_pes, 4}, [&](const DeviceJob& job) {
      device::PairCheck(job, job.heap, layout, timeout_ns, static_cast<int>(device::blockIdx.x))
          .run(which);
    });
  }
  void all_steps() {
    for (const Step each : {Step::prepare, Step::act, Step::await, Step::verify})
      step(each);
  }
  /// The number of failed results.
  int count_bad() {
    int bad = 0;
    for (int pe = 0; pe < n_pes; ++pe)
      for (int peer = 0; peer < n_pes; ++peer)
        for (int op = 0; op < kernel_check::n_ops; ++op)
          bad += result(pe, peer, op).state != Result::well;
    return bad;
  }

  Layout layout{n_pes};
  HostKernels world{n_pes, Layout{n_pes}.size_bytes()};
  std::uint64_t timeout_ns = 60'000'000'000;
};

TEST_F(KernelPairs, AllIsWell) {
  for (int round = 0; round < 2; ++round) {
    all_steps();
    EXPECT_EQ(count_bad(), 0);
  }
  // It did what it reports: words and payloads have arrived.
  EXPECT_EQ(word(2, layout.swapped(1)), kernel_check::swap_value);
  EXPECT_EQ(word(2, layout.signal(1, 0)), kernel_check::signal_value);
  EXPECT_EQ(static_cast<std::uint8_t>(area(2)[layout.data(Layout::put_arrives, 1, 1) + 16384]),
            kernel_check::pattern_byte(kernel_check::put, 1, 2, 16385, 16384));
}

TEST_F(KernelPairs, AByteOfAPutThatIsWrong) {
  for (const Step each : {Step::prepare, Step::act, Step::await})
    step(each);
  std::byte& spoilt = area(2)[layout.data(Layout::put_arrives, 1, 1) + 4711];
  const std::byte right = spoilt;
  spoilt = ~spoilt;
  step(Step::verify);
  EXPECT_EQ(count_bad(), 1);
  const Result& seen = result(2, 1, kernel_check::put);
  EXPECT_EQ(seen.state, Result::wrong);
  EXPECT_EQ(seen.size_bytes, 16385u);
  EXPECT_EQ(seen.offset_bytes, 4711u);
  EXPECT_EQ(seen.expected, static_cast<std::uint64_t>(right));
  EXPECT_EQ(seen.found, static_cast<std::uint64_t>(~right));
}

TEST_F(KernelPairs, WhatAGetBringsIsCompared) {
  step(Step::prepare);
  area(0)[layout.data(Layout::get_leaves, 2, 0)] ^= std::byte{1}; // PE 2 gets it from PE 0
  for (const Step each : {Step::act, Step::await, Step::verify})
    step(each);
  EXPECT_EQ(count_bad(), 1);
  EXPECT_EQ(result(2, 0, kernel_check::get).state, Result::wrong);
  EXPECT_EQ(result(2, 0, kernel_check::get).size_bytes, 8u);
}

TEST_F(KernelPairs, ASignalThatDoesNotComeIsGivenUp) {
  for (const Step each : {Step::prepare, Step::act})
    step(each);
  word(1, layout.signal(0, 1)) = 0;
  timeout_ns = 50'000'000;
  step(Step::await);
  step(Step::verify);
  EXPECT_EQ(count_bad(), 1);
  const Result& seen = result(1, 0, kernel_check::put_signal);
  EXPECT_EQ(seen.state, Result::nothing_arrived);
  EXPECT_EQ(seen.size_bytes, 16385u);
  EXPECT_EQ(seen.expected, kernel_check::signal_value);
  EXPECT_EQ(seen.found, 0u);
}

TEST_F(KernelPairs, ASignalThatArrivesBeforeItsPayload) {
  for (const Step each : {Step::prepare, Step::act})
    step(each);
  area(1)[layout.data(Layout::signal_arrives, 0, 0)] ^= std::byte{0x80};
  step(Step::await);
  EXPECT_EQ(count_bad(), 1);
  EXPECT_EQ(result(1, 0, kernel_check::put_signal).state, Result::wrong);
}

TEST_F(KernelPairs, AtomicsThatAreNot) {
  step(Step::prepare);
  word(1, layout.added(0)) += 1; // PE 0 sees it, and so does PE 1
  word(1, layout.swapped(2)) ^= 4;
  for (const Step each : {Step::act, Step::await, Step::verify})
    step(each);
  EXPECT_EQ(count_bad(), 4);
  EXPECT_EQ(result(0, 1, kernel_check::fetch_add).state, Result::wrong);
  EXPECT_EQ(result(1, 0, kernel_check::fetch_add).state, Result::wrong_at_target);
  EXPECT_EQ(result(2, 1, kernel_check::compare_swap).state, Result::wrong);
  EXPECT_EQ(result(2, 1, kernel_check::compare_swap).expected, kernel_check::first_word(2, 1));
  EXPECT_EQ(result(1, 2, kernel_check::compare_swap).found, kernel_check::first_word(2, 1) ^ 4u);
}

TEST_F(KernelPairs, PairsThatDoNotReachEachOtherAreLeftOut) {
  world.unmap(2);
  for (const int pe : {0, 1}) {
    area(pe)[layout.flags(2)] = std::byte{0};
    area(2)[layout.flags(pe)] = std::byte{0};
  }
  for (const Step each : {Step::prepare, Step::act})
    step(each);
  EXPECT_EQ(word(2, layout.swapped(1)), kernel_check::first_word(1, 2));
  step(Step::await);
  step(Step::verify);
  EXPECT_EQ(count_bad(), 0);
  for (int pe = 0; pe < n_pes; ++pe)
    EXPECT_EQ(world.report(pe).state, WaitReport::none);
}

TEST_F(KernelPairs, WithoutAtomicsTheWordsStay) {
  for (int pe = 0; pe < n_pes; ++pe)
    for (int peer = 0; peer < n_pes; ++peer)
      area(pe)[layout.flags(peer)] = std::byte{3};
  all_steps();
  EXPECT_EQ(count_bad(), 0);
  EXPECT_EQ(word(2, layout.added(1)), kernel_check::first_word(1, 2));
}

} // namespace
} // namespace shmemctl::test
