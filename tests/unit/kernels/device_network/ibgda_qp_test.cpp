// Kernels that post to the HCA's queues: threads in a kernel's place, the emulated HCA.
#include "tests/support/expect_error.h"
#include "tests/unit/kernels/device_network/ibgda_world.h"

namespace shmemctl::test {
namespace {

constexpr unsigned n_threads = 4;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
constexpr std::uint64_t rounds = 100;
#else
constexpr std::uint64_t rounds = 300;
#endif

using Pe = QueuePe;

std::uint64_t word_at(const std::byte* place) {
  std::uint64_t word = 0;
  std::memcpy(&word, place, sizeof word);
  return word;
}

/// Each thread has a KiB there, from the second one on; the first word is shared.
void every_operation(const TransportPe& me, const Pe& pe, std::uint32_t number) {
  ThreadWait wait;
  ThreadQueue queue = pe.queue(1 - me.pe, number, wait);
  const std::uint64_t mine = (1 + number) * 1024;
  std::byte* const registered = me.heap + (std::size_t{1} << 20) + number * 1024;
  std::uint64_t old = 0;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::byte away[200];
    for (std::size_t i = 0; i < sizeof away; ++i)
      away[i] = static_cast<std::byte>(round + i + number);
    std::memcpy(registered, away, sizeof away);
    const bool blocking = round % 2 == 0;
    // Inline, by key, and in chunks of two WQEBBs.
    ASSERT_TRUE(queue.put(heap_address(mine), away, 21, false));
    ASSERT_TRUE(queue.put(heap_address(mine + 64), registered, sizeof away, blocking));
    ASSERT_TRUE(queue.put(heap_address(mine + 320), away, sizeof away, blocking));
    ASSERT_TRUE(queue.put_value(heap_address(mine + 32), round, 8));
    // A get executes after earlier puts, if the QP keeps that order.
    ASSERT_TRUE(pe.keeps_order(1 - me.pe) || queue.quiet());
    ASSERT_TRUE(queue.get_value(heap_address(mine + 32), 8, old));
    ASSERT_EQ(old, round);
    std::byte back[200] = {};
    ASSERT_TRUE(queue.get(back, heap_address(mine + 320), sizeof back, blocking));
    ASSERT_EQ(std::memcmp(back, away, sizeof back), 0);
    std::memset(registered, 0, 256);
    ASSERT_TRUE(queue.get(registered, heap_address(mine + 64), sizeof back, true));
    ASSERT_EQ(std::memcmp(registered, away, sizeof back), 0);
    ASSERT_TRUE(queue.atomic(heap_address(mine + 40), AtomicOp::add, 8, 2, 0, &old));
    ASSERT_EQ(old, (round - 1) * 2);
    ASSERT_TRUE(queue.atomic(heap_address(mine + 48), AtomicOp::add, 4, 3, 0, &old));
    ASSERT_EQ(old, static_cast<std::uint32_t>((round - 1) * 3));
    ASSERT_TRUE(queue.atomic(heap_address(0), AtomicOp::add, 8, 1, 0, nullptr));
    ASSERT_TRUE(queue.fence());
    ASSERT_TRUE(queue.put_signal(heap_address(mine + 576), away, 8, heap_address(mine + 600), 1,
                                 round % 3 == 0, blocking));
    ASSERT_TRUE(queue.atomic(heap_address(mine + 600), AtomicOp::swap, 8, 0, 0, &old));
    ASSERT_EQ(old, 1u);
  }
  ASSERT_TRUE(queue.quiet());
}

void many_threads(TransportPe& me, Pe& pe) {
  EXPECT_EQ(pe.part->paths_by_pe()[static_cast<std::size_t>(me.pe)].path, DevicePath::load_store);
  EXPECT_EQ(pe.part->paths_by_pe()[static_cast<std::size_t>(1 - me.pe)].path, DevicePath::ibgda);
  run_kernel(n_threads, [&](std::uint32_t number) { every_operation(me, pe, number); });
  me.barrier();
  EXPECT_EQ(word_at(me.heap), n_threads * rounds);
}

TEST(QpClient, EveryOperationByManyThreads) {
  run_kernels(many_threads);
}

TEST(QpClient, AQueueThatIsOftenFull) {
  run_kernels(many_threads, {{"QP_DEPTH", "128"}});
}

/// Two warps of four lanes each: lanes with the same operation at the same time are posted
/// together, those with other sizes separately.
void warps(TransportPe& me, Pe& pe) {
  constexpr std::uint32_t n_qp_sets = 4, n_warps = 2;
  constexpr std::uint64_t few_rounds = rounds / 10;
  std::vector<std::unique_ptr<LaneThreads>> all;
  for (std::uint32_t warp = 0; warp < n_warps; ++warp)
    all.push_back(std::make_unique<LaneThreads>(n_qp_sets));
  const auto to = static_cast<std::uint32_t>(1 - me.pe);
  run_kernel(n_warps * n_qp_sets, [&](std::uint32_t number) {
    LaneThreads::mine = all[number / n_qp_sets].get();
    LaneThreads::lane = number % n_qp_sets;
    ThreadWait wait;
    LaneQueue queue(pe.network, to, 0, number, wait);
    const std::uint64_t mine = (1 + number) * 1024;
    std::byte away[60];
    for (std::uint64_t round = 1; round <= few_rounds; ++round) {
      std::memset(away, static_cast<int>(round + number), sizeof away);
      ASSERT_TRUE(queue.put_value(heap_address(mine), round, 8));
      ASSERT_TRUE(queue.put(heap_address(mine + 64), away, number % 2 == 0 ? 20 : 60, false));
      // The reply arrives after what the same lane has put before, if the QP keeps that order.
      std::uint64_t old = 0;
      ASSERT_TRUE(pe.keeps_order(1 - me.pe) ||
                  ThreadQueue(pe.network, to, 0, number, wait).quiet());
      ASSERT_TRUE(queue.get_value(heap_address(mine), 8, old));
      ASSERT_EQ(old, round);
      ASSERT_TRUE(queue.atomic(heap_address(0), AtomicOp::add, 8, 1, 0, nullptr));
    }
    ASSERT_TRUE(ThreadQueue(pe.network, to, 0, number, wait).quiet());
  });
  me.barrier();
  EXPECT_EQ(word_at(me.heap), n_warps * n_qp_sets * few_rounds);
  for (std::uint32_t number = 0; number < n_warps * n_qp_sets; ++number) {
    const std::byte* const at = me.heap + (1 + number) * 1024;
    EXPECT_EQ(word_at(at), few_rounds);
    for (std::size_t i = 0; i < (number % 2 == 0 ? 20u : 60u); ++i)
      ASSERT_EQ(at[64 + i], static_cast<std::byte>(few_rounds + number));
  }
}
TEST(QpClient, LanesOfAWarpPostTogether) {
  run_kernels(warps, {{"QP_DEPTH", "128"}});
}
/// More callers than queues, and more queues than callers.
TEST(QpClient, EveryOperationOnSeveralQueues) {
  for (const char* queues : {"1", "3", "8"})
    run_kernels(
        [&](TransportPe& me, Pe& pe) {
          EXPECT_EQ(device::qps_to(pe.network, static_cast<std::uint32_t>(1 - me.pe)),
                    static_cast<std::uint32_t>(std::atoi(queues)));
          many_threads(me, pe);
        },
        {{"IBGDA_NUM_RC_PER_PE", queues}});
}

TEST(QpClient, CallersHaveQueuesInTurn) {
  run_kernels(
      [](TransportPe& me, Pe& pe) {
        const auto to = static_cast<std::uint32_t>(1 - me.pe);
        for (std::uint32_t caller = 0; caller < 7; ++caller) {
          EXPECT_EQ(device::qp_of(pe.network, to, caller), caller % 3);
          EXPECT_EQ(device::atomic_qp_of(pe.network, to, caller), caller % 3) << "one NIC";
        }
        EXPECT_FALSE(device::has_one_qp(pe.network, to));
        // Each has its own QP: the others do not see what it has posted.
        ThreadWait wait;
        EXPECT_TRUE(pe.queue(1 - me.pe, 1, wait).put_value(heap_address(64), 5, 8));
        EXPECT_FALSE(pe.queue(1 - me.pe, 0, wait).used());
        EXPECT_TRUE(pe.queue(1 - me.pe, 1, wait).used());
        EXPECT_TRUE(pe.queue(1 - me.pe, 4, wait).quiet());
        me.barrier();
        EXPECT_EQ(word_at(me.heap + 64), 5u);
      },
      {{"IBGDA_NUM_RC_PER_PE", "3"}, {"IBGDA_RC_MAP_BY", "warp"}});
}

/// Over two HCAs: puts use both, atomics the first.
TEST(QpClient, SeveralNics) {
  TransportWorldOptions wanted;
  wanted.options = emulated(
      {{"DEVICE_PATH", "ibgda"}, {"IBGDA_NUM_RC_PER_PE", "2"}, {"IBGDA_ENABLE_MULTI_PORT", "1"}});
  wanted.mapped_memory = true;
  const auto make = [](const TransportSetup& setup) -> std::unique_ptr<Transport> {
    auto settings = ibgda::read_settings(*setup.options);
    settings.emulated_devices = 2;
    return std::make_unique<ibgda::IbgdaTransport>(setup, settings);
  };
  const auto body = [](TransportPe& me) {
    {
      Pe pe(me);
      const auto to = static_cast<std::uint32_t>(1 - me.pe);
      EXPECT_EQ(device::qps_to(pe.network, to), 4u);
      EXPECT_FALSE(device::has_one_qp(pe.network, to));
      for (std::uint32_t caller = 0; caller < 8; ++caller) {
        EXPECT_EQ(device::qp_of(pe.network, to, caller), caller % 4);
        EXPECT_EQ(device::atomic_qp_of(pe.network, to, caller) % 2, 0u) << "its first NIC";
      }
      run_kernel(n_threads, [&](std::uint32_t number) {
        ThreadWait wait;
        for (std::uint64_t round = 1; round <= rounds; ++round) {
          ThreadQueue puts = pe.queue(1 - me.pe, number, wait);
          ThreadQueue atomics = pe.atomic_queue(1 - me.pe, number, wait);
          ASSERT_TRUE(puts.put_value(heap_address((1 + number) * 64), round, 8));
          ASSERT_TRUE(atomics.atomic(heap_address(0), AtomicOp::add, 8, 1, 0, nullptr));
          ASSERT_TRUE(puts.quiet() && atomics.quiet());
        }
      });
      me.barrier();
      EXPECT_EQ(word_at(me.heap), n_threads * rounds);
      for (std::uint32_t number = 0; number < n_threads; ++number)
        EXPECT_EQ(word_at(me.heap + (1 + number) * 64), rounds);
      me.barrier();
      pe.part->stop();
    }
    me.barrier();
  };
  EXPECT_EQ(run_transport_world(make, body, wanted), "");
}

TEST(QpClient, AtomicsOfBothSizes) {
  run_kernels([](TransportPe& me, Pe& pe) {
    ThreadWait wait;
    ThreadQueue queue = pe.queue(1 - me.pe, 0, wait);
    for (const std::uint8_t size : {std::uint8_t{4}, std::uint8_t{8}}) {
      const std::uint64_t at = size == 4 ? 8 : 16;
      std::uint64_t word = 0;
      const auto run = [&](AtomicOp op, std::uint64_t operand, std::uint64_t compare,
                           std::uint64_t then) {
        std::uint64_t old = 77;
        ASSERT_TRUE(queue.atomic(heap_address(at), op, size, operand, compare, &old));
        EXPECT_EQ(old, word) << static_cast<int>(op) << " of " << static_cast<int>(size);
        word = then;
      };
      run(AtomicOp::set, 0xf0f0, 0, 0xf0f0);
      run(AtomicOp::add, 0x10, 0, 0xf100);
      run(AtomicOp::bit_and, 0xff00, 0, 0xf100);
      run(AtomicOp::bit_or, 0x00ff, 0, 0xf1ff);
      run(AtomicOp::bit_xor, 0xffff, 0, 0x0e00);
      run(AtomicOp::compare_swap, 5, 1, 0x0e00);
      run(AtomicOp::compare_swap, 5, 0x0e00, 5);
      run(AtomicOp::swap, 9, 0, 9);
      run(AtomicOp::fetch, 0, 0, 9);
    }
  });
}

/// The host's own operations go on, on their own queues.
TEST(QpClient, HostAndKernelsAtTheSameTime) {
  run_kernels([](TransportPe& me, Pe& pe) {
    run_kernel(3, [&](std::uint32_t number) {
      ThreadWait wait;
      ThreadQueue queue = pe.queue(1 - me.pe, number, wait);
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        if (number < 2) {
          ASSERT_TRUE(queue.atomic(heap_address(0), AtomicOp::add, 8, 1, 0, nullptr));
        } else {
          me.transport->post_atomic(5, heap_at(1 - me.pe, 0), {AtomicOp::add, 8, 1});
        }
      }
      if (number < 2)
        ASSERT_TRUE(queue.quiet());
      else
        me.transport->quiet(5);
    });
    me.barrier();
    EXPECT_EQ(word_at(me.heap), 3 * rounds);
  });
}

TEST(QpClient, WhatIsNotRegisteredIsRefused) {
  run_kernels([](TransportPe& me, Pe& pe) {
    ThreadWait wait;
    ThreadQueue queue = pe.queue(1 - me.pe, 0, wait);
    EXPECT_FALSE(queue.put_value(heap_address(me.heap_bytes), 1, 8));
    EXPECT_EQ(queue.problem().kind, WaitKind::not_registered);
    EXPECT_EQ(queue.problem().offset_bytes, me.heap_bytes);
    EXPECT_FALSE(queue.put({9, 0}, me.heap, 8, true));
    EXPECT_EQ(queue.problem().expected, 9u);
    std::uint64_t old = 0;
    EXPECT_FALSE(queue.get_value(heap_address(me.heap_bytes), 8, old));
    EXPECT_FALSE(queue.atomic(heap_address(me.heap_bytes), AtomicOp::add, 8, 1, 0, nullptr));
    EXPECT_TRUE(queue.quiet());
    WaitReport report{};
    report.kind = WaitKind::not_registered;
    report.peer = 1 - me.pe;
    report.expected = 9;
    EXPECT_NE(pe.part->error_of(report).message().find("region 9"), std::string::npos);
  });
}

/// An atomic with an unaligned address is an error of the device: every thread receives it, and the
/// host reports the cause.
TEST(QpClient, AFailureOfTheQueueReachesAllThreads) {
  run_kernels([](TransportPe& me, Pe& pe) {
    run_kernel(n_threads, [&](std::uint32_t number) {
      ThreadWait wait;
      ThreadQueue queue = pe.queue(1 - me.pe, number, wait);
      std::uint64_t old = 0;
      EXPECT_FALSE(queue.atomic(heap_address(4), AtomicOp::add, 8, 1, 0, &old));
      EXPECT_FALSE(queue.quiet());
      EXPECT_FALSE(queue.put(heap_address(64), me.heap, 8, true));
      EXPECT_EQ(queue.problem().kind, WaitKind::qp_failed);
      WaitReport report{};
      report.kind = queue.problem().kind;
      report.seen = queue.problem().seen;
      report.peer = 1 - me.pe;
      const Error error = pe.part->error_of(report);
      EXPECT_EQ(error.code(), ExitCode::unavailable);
      for (const char* word : {"syndrome", "queues of emulated-mlx5"})
        EXPECT_NE(error.message().find(word), std::string::npos) << error.message();
    });
  });
}

/// A region that grows is in the next launch's table; this launch keeps its own.
TEST(QpClient, ANewTableAfterGrowth) {
  TransportWorldOptions wanted;
  wanted.options = emulated({{"DEVICE_PATH", "ibgda"}});
  wanted.mapped_memory = true;
  wanted.first_heap_bytes = 1 << 20;
  const auto body = [](TransportPe& me) {
    {
      Pe pe(me);
      const std::uint64_t beyond = std::uint64_t{2} << 20;
      ThreadWait wait;
      EXPECT_FALSE(pe.queue(1 - me.pe, 0, wait).put_value(heap_address(beyond), 7, 8));
      me.publish(region::heap, me.heap, me.heap_bytes);
      pe.part->refresh({});
      EXPECT_FALSE(pe.queue(1 - me.pe, 0, wait).put_value(heap_address(beyond), 7, 8));
      pe.network = pe.part->network();
      ThreadQueue queue = pe.queue(1 - me.pe, 0, wait);
      EXPECT_TRUE(queue.put_value(heap_address(beyond), 7, 8) && queue.quiet());
      me.barrier();
      EXPECT_EQ(word_at(me.heap + beyond), 7u);
      me.barrier();
    }
    me.barrier();
  };
  EXPECT_EQ(run_transport_world(make_ibgda_transport, body, wanted), "");
}

/// A heap that the HCA cannot reach: reported, and served by the proxy.
TEST(QpClient, OverGpuMemoryThereAreNoQueues) {
  TransportWorldOptions wanted;
  wanted.options = emulated({{"DEVICE_PATH", "ibgda"}});
  wanted.mapped_memory = true;
  const auto body = [](TransportPe& me) {
    DeviceNetworkInputs inputs =
        inputs_of(me.pe, std::vector<Transport*>(static_cast<std::size_t>(me.n_pes), me.transport),
                  "ibgda", *me.health, std::make_shared<PlainKernelMemory>());
    inputs.ibgda = find_ibgda({me.transport});
    inputs.reachable = DeviceNetworkInputs::Reachable::all;
    DeviceNetworkPart part(std::move(inputs));
    const KernelPath& way = part.paths_by_pe()[static_cast<std::size_t>(1 - me.pe)];
    EXPECT_EQ(way.path, DevicePath::proxy);
    EXPECT_EQ(way.reason, "SHMEMCTL_DEVICE_PATH=ibgda, but the HCA reaches memory of the host "
                          "only: proxy over ibgda");
    part.stop();
    me.barrier();
  };
  EXPECT_EQ(run_transport_world(make_ibgda_transport, body, wanted), "");
}

TEST(QpClient, WithoutTheOptionThereIsNoLane) {
  run_mlx5(Variant::ibgda, [](TransportPe& me) {
    EXPECT_EQ(find_ibgda({me.transport}), nullptr);
    EXPECT_EQ(mlx5_of(me).queue_table().table().n_qp_sets, 2u);
  });
}

} // namespace
} // namespace shmemctl::test
