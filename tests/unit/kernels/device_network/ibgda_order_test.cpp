// Signals and fences of kernels over an HCA that does not keep the order of WRITEs, and the
// failures of code that assumes that it does.
#include <atomic>

#include "tests/support/order_litmus.h"
#include "tests/unit/kernels/device_network/ibgda_world.h"

namespace shmemctl::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
constexpr std::uint64_t order_rounds = 20;
#else
constexpr std::uint64_t order_rounds = 100;
#endif

constexpr ThreadQueue::Address flag_address{region::heap, OrderLitmus::flag_at},
    data_address{region::heap, OrderLitmus::data_at};

/// How a kernel sends a message.
using KernelSend = std::function<bool(ThreadQueue&, const std::byte* source, std::size_t size_bytes,
                                      std::uint64_t round)>;

bool put_and_signal(ThreadQueue& queue, const std::byte* source, std::size_t size_bytes,
                    std::uint64_t round) {
  return queue.put_signal(data_address, source, size_bytes, flag_address, round, false, false);
}
bool put_and_add(ThreadQueue& queue, const std::byte* source, std::size_t size_bytes,
                 std::uint64_t) {
  return queue.put_signal(data_address, source, size_bytes, flag_address, 1, true, false);
}
bool put_fence_value(ThreadQueue& queue, const std::byte* source, std::size_t size_bytes,
                     std::uint64_t round) {
  return queue.put(data_address, source, size_bytes, false) && queue.fence() &&
         queue.put_value(flag_address, round, 8);
}
bool put_fence_atomic(ThreadQueue& queue, const std::byte* source, std::size_t size_bytes,
                      std::uint64_t round) {
  return queue.put(data_address, source, size_bytes, false) && queue.fence() &&
         queue.atomic(flag_address, AtomicOp::set, 8, round, 0, nullptr);
}

std::uint64_t late_by(TransportPe& me, const QueuePe& pe, const OrderLitmus& litmus,
                      const KernelSend& send) {
  ThreadWait wait;
  return late_messages(
      me, litmus,
      [&](std::uint64_t round, const std::byte* source) {
        ThreadQueue queue = pe.queue(1, 0, wait);
        if (!send(queue, source, litmus.size_bytes, round))
          throw std::runtime_error("a kernel's queue has failed");
      },
      [&] {
        ThreadQueue queue = pe.queue(1, 0, wait);
        EXPECT_TRUE(queue.quiet());
      });
}

Texts any_order(Texts more = {}) {
  more.insert({"EMULATED_HCA_PLACEMENT", "any"});
  return more;
}

TEST(QueueOrder, SignalsAndFencesHoldOnAnHcaThatReorders) {
  run_kernels(
      [](TransportPe& me, QueuePe& pe) {
        EXPECT_FALSE(pe.keeps_order(1 - me.pe));
        for (const std::size_t size_bytes : {std::size_t{8}, std::size_t{4096}, std::size_t{65536}})
          for (const KernelSend& send : {KernelSend(put_and_signal), KernelSend(put_and_add),
                                         KernelSend(put_fence_value), KernelSend(put_fence_atomic)})
            EXPECT_EQ(late_by(me, pe, {size_bytes, order_rounds}, send), 0u) << size_bytes;
      },
      any_order());
}

/// An atomic, then after a fence a value: the atomic's effect is visible first.
TEST(QueueOrder, OperationsAfterAFenceSeeEarlierAtomics) {
  run_kernels(
      [](TransportPe& me, QueuePe& pe) {
        constexpr std::uint64_t counter_at = 512;
        std::uint64_t wrong = 0;
        ThreadWait wait;
        for (std::uint64_t round = 1; round <= order_rounds; ++round)
          if (me.pe == 0) {
            ThreadQueue queue = pe.queue(1, 0, wait);
            ASSERT_TRUE(queue.atomic({region::heap, counter_at}, AtomicOp::add, 8, 3, 0, nullptr) &&
                        queue.fence() && queue.put_value(flag_address, round, 8));
            detail::await(
                me, [&] { return detail::seen_word(me, OrderLitmus::answer_at) == round; },
                "the answer");
          } else {
            detail::await(
                me, [&] { return detail::seen_word(me, OrderLitmus::flag_at) == round; },
                "the flag");
            wrong += detail::seen_word(me, counter_at) == 3 * round ? 0 : 1;
            ThreadQueue queue = pe.queue(0, 0, wait);
            ASSERT_TRUE(queue.put_value({region::heap, OrderLitmus::answer_at}, round, 8) &&
                        queue.quiet());
          }
        EXPECT_EQ(wrong, 0u);
      },
      any_order());
}

/// The same code, configured for a QP that keeps the order of WRITEs although it does not: a signal
/// by WRITE, and a fence that does not wait, are detected.
TEST(QueueOrder, AWriteInASignalsPlaceIsFound) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "drops an order on purpose, which is a data race";
#endif
  for (const KernelSend& send : {KernelSend(put_and_signal), KernelSend(put_fence_value)}) {
    std::atomic<std::uint64_t> late{0};
    run_kernels(
        [&](TransportPe& me, QueuePe& pe) {
          EXPECT_TRUE(pe.keeps_order(1 - me.pe)) << "it says so";
          late += late_by(me, pe, {65536, 5000, true}, send);
        },
        any_order({{"IB_WRITE_ORDER", "kept"}}));
    EXPECT_GT(late.load(), 0u);
  }
}

/// Counts doorbells.
struct CountingMemory : mlx5::HostMemory {
  static void store_doorbell(std::uint64_t* doorbell, std::uint64_t value,
                             std::uint32_t write_combining) {
    ++rung;
    mlx5::HostMemory::store_doorbell(doorbell, value, write_combining);
  }
  inline static std::atomic<int> rung{0};
};

TEST(QueueOrder, DataAndItsSignalRingOneDoorbell) {
  for (const char* placement : {"ordered", "any"})
    run_kernels(
        [](TransportPe& me, QueuePe& pe) {
          if (me.pe == 0) {
            ThreadWait wait;
            device::QpClient<CountingMemory, ThreadWait> queue(pe.network, 1, 0, 0, wait);
            for (const std::size_t size_bytes : {8, 200, 65536})
              for (const bool add : {false, true}) {
                CountingMemory::rung = 0;
                ASSERT_TRUE(queue.put_signal(data_address, me.heap + OrderLitmus::source_at,
                                             size_bytes, flag_address, 1, add, false));
                EXPECT_EQ(CountingMemory::rung.load(), 1) << size_bytes;
                ASSERT_TRUE(queue.quiet());
              }
          }
          me.barrier();
        },
        {{"EMULATED_HCA_PLACEMENT", placement}});
}

/// Over an HCA that keeps no order and has no atomics.
TEST(QueueOrder, WithoutAtomicsASignalWaitsForItsPayload) {
  TransportWorldOptions wanted;
  wanted.options = emulated({{"DEVICE_PATH", "ibgda"}});
  wanted.options["EMULATED_HCA_PLACEMENT"] = "any";
  wanted.mapped_memory = true;
  const auto make = [](const TransportSetup& setup) -> std::unique_ptr<Transport> {
    auto settings = ibgda::read_settings(*setup.options);
    settings.emulated_order.has_atomics = false;
    return std::make_unique<ibgda::IbgdaTransport>(setup, settings);
  };
  const auto body = [](TransportPe& me) {
    {
      QueuePe pe(me);
      for (const KernelSend& send : {KernelSend(put_and_signal), KernelSend(put_fence_value)})
        EXPECT_EQ(late_by(me, pe, {65536, order_rounds}, send), 0u);
      ThreadWait wait;
      ThreadQueue queue = pe.queue(1 - me.pe, 0, wait);
      std::uint64_t old = 0;
      EXPECT_FALSE(queue.atomic(flag_address, AtomicOp::add, 8, 1, 0, &old));
      EXPECT_EQ(queue.problem().kind, WaitKind::qp_failed);
      WaitReport report{};
      report.kind = queue.problem().kind;
      report.seen = queue.problem().seen;
      report.peer = 1 - me.pe;
      const Error error = pe.part->error_of(report);
      EXPECT_NE(error.message().find("not support atomics of that size"), std::string::npos)
          << error.message();
      EXPECT_FALSE(queue.put_signal(data_address, me.heap, 8, flag_address, 1, true, false));
      EXPECT_TRUE(queue.quiet()) << "nothing was posted that the device does not have";
      me.barrier();
      pe.part->stop();
    }
    me.barrier();
  };
  EXPECT_EQ(run_transport_world(make, body, wanted), "");
}

} // namespace
} // namespace shmemctl::test
