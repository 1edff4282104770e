// The C interface on PEs that are threads. Plain accesses to what others have written are
// intentional: they race unless the interface orders them.
#include <thread>

#include "tests/unit/runtime/shmem/thread_pes.h"

namespace shmemctl::test {
namespace {

TEST(Locks, ProtectPlainMemory) {
  for (int n_pes = 1; n_pes <= 8; ++n_pes)
    run_program(n_pes, [&] {
      long* lock = allocate<long>(3);
      long* counter = allocate<long>(1);
      auto* shared = static_cast<long*>(shmem_ptr(counter, 0));
      for (int i = 0; i < 200; ++i) {
        long* mine = lock + 1;
        if (i % 3 == 0)
          while (shmem_test_lock(mine) != 0) {
          }
        else
          shmem_set_lock(mine);
        ++*shared;
        shmem_clear_lock(mine);
      }
      shmem_barrier_all();
      EXPECT_EQ(*shared, 200L * n_pes);
      EXPECT_TRUE(lock[0] == 0 && lock[1] == 0 && lock[2] == 0);
      shmem_barrier_all();
    });
}

/// First come, first served: the holder lets the others queue up one after the other.
TEST(Locks, InTheOrderOfArrival) {
  run_program(5, [] {
    const int me = shmem_my_pe(), n = shmem_n_pes();
    long* lock = allocate<long>(1);
    long* queued = allocate<long>(1);
    int* order = allocate<int>(8);
    int* length = allocate<int>(1);
    if (me == 0)
      shmem_set_lock(lock);
    shmem_barrier_all();
    if (me != 0) {
      // Each releases the lock while its successor is still joining the queue.
      shmem_long_wait_until(queued, SHMEM_CMP_EQ, me - 1);
      std::thread watcher([&, world = &api::current()] {
        api::set_thread_world(world);
        while (true) {
          bool last = false;
          for (int pe = 0; pe < n; ++pe) {
            const long word = shmem_long_atomic_fetch(lock, pe);
            last = last || static_cast<std::uint32_t>(word) == static_cast<std::uint32_t>(me) + 1;
          }
          if (last)
            break;
          std::this_thread::yield();
        }
        for (int pe = 0; pe < n; ++pe)
          shmem_long_atomic_set(queued, me, pe);
        api::set_thread_world(nullptr);
      });
      shmem_set_lock(lock);
      watcher.join();
    } else {
      shmem_long_wait_until(queued, SHMEM_CMP_EQ, n - 1);
    }
    auto* list = static_cast<int*>(shmem_ptr(order, 0));
    auto* end = static_cast<int*>(shmem_ptr(length, 0));
    list[(*end)++] = me;
    shmem_clear_lock(lock);
    shmem_barrier_all();
    for (int i = 0; i < n; ++i)
      EXPECT_EQ(list[i], i);
    shmem_barrier_all();
  });
}

TEST(Signals, CarryTheirPayload) {
  run_program(4, [] {
    const int me = shmem_my_pe(), next = (me + 1) % 4;
    auto* signal = allocate<std::uint64_t>(1);
    auto* data = allocate<double>(500);
    auto* ready = allocate<std::uint64_t>(1);
    std::vector<double> own(500);
    for (std::uint64_t round = 1; round <= 50; ++round) {
      for (std::size_t i = 0; i < own.size(); ++i)
        own[i] = static_cast<double>(round * 1000 + i);
      shmem_put_signal_nbi(data, own.data(), own.size(), signal, round, SHMEM_SIGNAL_SET, next);
      shmem_quiet();
      EXPECT_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_GE, round), round);
      for (std::size_t i = 0; i < own.size(); ++i)
        ASSERT_EQ(data[i], static_cast<double>(round * 1000 + i));
      shmem_uint64_atomic_set(ready, round, (me + 3) % 4);
      shmem_wait_until(ready, SHMEM_CMP_GE, round);
    }
  });
}

TEST(Waits, SeeEarlierStores) {
  run_program(4, [] {
    const int me = shmem_my_pe(), n = shmem_n_pes();
    int* flags = allocate<int>(4);
    int* values = allocate<int>(4);
    for (int pe = 0; pe < n; ++pe) {
      const int value = 100 + me;
      shmem_int_put(values + me, &value, 1, pe);
      shmem_fence();
      shmem_int_atomic_set(flags + me, 1, pe);
    }
    std::vector<int> done(4);
    for (int left = n; left > 0; --left) {
      const std::size_t who = shmem_wait_until_any(flags, 4, done.data(), SHMEM_CMP_EQ, 1);
      ASSERT_LT(who, 4u);
      EXPECT_EQ(values[who], 100 + static_cast<int>(who));
      done[who] = 1;
    }
    EXPECT_EQ(shmem_test_all(flags, 4, nullptr, SHMEM_CMP_NE, 0), 1);
    shmem_barrier_all();
  });
}

TEST(ActiveSets, EveryShape) {
  for (int n_pes = 1; n_pes <= 8; ++n_pes)
    run_program(n_pes, [&] {
      const int me = shmem_my_pe();
      long* areas = allocate<long>(2 * SHMEM_SYNC_SIZE);
      auto* source = allocate<std::uint64_t>(64);
      auto* dest = allocate<std::uint64_t>(64);
      int* numbers = allocate<int>(100);
      int* sums = allocate<int>(100);
      int* work = allocate<int>(100);
      for (int log_stride = 0; (1 << log_stride) <= n_pes; ++log_stride)
        for (int start = 0; start < n_pes; ++start) {
          const int size = (n_pes - start + (1 << log_stride) - 1) >> log_stride;
          const int distance = me - start;
          const bool member = distance >= 0 && distance % (1 << log_stride) == 0;
          if (member) {
            const auto mine = static_cast<std::size_t>(distance >> log_stride);
            const auto members = static_cast<std::size_t>(size);
            for (std::size_t i = 0; i < 64; ++i)
              source[i] = static_cast<std::uint64_t>(me) * 1000 + i;
            shmem_fcollect64(dest, source, 3, start, log_stride, size, areas);
            for (std::size_t i = 0; i < members; ++i)
              EXPECT_EQ(dest[i * 3 + 2],
                        (static_cast<std::size_t>(start) + (i << log_stride)) * 1000 + 2);
            shmem_alltoall64(dest, source, 2, start, log_stride, size, areas + SHMEM_SYNC_SIZE);
            EXPECT_EQ(dest[0], static_cast<std::size_t>(start) * 1000 + mine * 2);
            for (int i = 0; i < 100; ++i)
              numbers[i] = me + i;
            shmem_int_sum_to_all(sums, numbers, 100, start, log_stride, size, work, areas);
            int expected = 0;
            for (int i = 0; i < size; ++i)
              expected += start + (i << log_stride) + 99;
            EXPECT_EQ(sums[99], expected);
            for (int i = 0; i < 5; ++i)
              shmem_barrier(start, log_stride, size, areas + SHMEM_SYNC_SIZE);
          }
          shmem_barrier_all();
          for (int i = 0; i < 2 * SHMEM_SYNC_SIZE; ++i)
            EXPECT_EQ(areas[i], SHMEM_SYNC_VALUE);
          shmem_barrier_all();
        }
    });
}

TEST(ActiveSets, OthersTakeNoPart) {
  run_program(4, [] {
    long* area = allocate<long>(2 * SHMEM_SYNC_SIZE);
    int* numbers = allocate<int>(2);
    numbers[0] = 1;
    // Also called by PEs that are not in it, as old programs do.
    shmem_int_sum_to_all(numbers + 1, numbers, 1, 1, 1, 2, nullptr, area);
    EXPECT_EQ(numbers[1], shmem_my_pe() % 2 == 1 ? 2 : 0);
    shmem_barrier(0, 0, 3, area + SHMEM_SYNC_SIZE); // other members, another area
    shmem_barrier_all();
  });
}

TEST(Threads, ShareTheDefaultContext) {
  run_program(
      3,
      [] {
        const int next = (shmem_my_pe() + 1) % 3;
        long* words = allocate<long>(4);
        long* count = allocate<long>(1);
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
          threads.emplace_back([&, t, world = &api::current()] {
            api::set_thread_world(world);
            shmem_ctx_t ctx = SHMEM_CTX_INVALID;
            EXPECT_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx), 0);
            for (long i = 1; i <= 100; ++i) {
              shmem_atomic_inc(count, next);
              shmem_p(ctx, words + t, i, next);
              shmem_ctx_quiet(ctx);
              shmem_wait_until(words + t, SHMEM_CMP_GE, i);
            }
            shmem_ctx_destroy(ctx);
            api::set_thread_world(nullptr);
          });
        for (std::thread& thread : threads)
          thread.join();
        shmem_barrier_all();
        EXPECT_EQ(*count, 400);
        shmem_barrier_all();
      },
      SHMEM_THREAD_MULTIPLE);
}

TEST(Memory, ReallocIgnoresForeignPointers) {
  run_program(2, [] {
    char* block = allocate<char>(100);
    block[0] = 'a';
    EXPECT_EQ(shmem_realloc(block + 1, 10), nullptr);
    EXPECT_EQ(block[0], 'a');
    shmem_free(block);
    EXPECT_EQ(shmem_realloc(block, 10), nullptr);
  });
}

TEST(Errors, NameTheMistake) {
  long on_stack = 0;
  expect_failure([&] { shmem_long_p(&on_stack, 1, 0); }, ExitCode::usage, "not in a symmetric");
  expect_failure([] { shmem_long_p(allocate<long>(1), 1, 1); }, ExitCode::usage, "PE 1");
  expect_failure([] { shmem_ctx_long_p(SHMEM_CTX_INVALID, allocate<long>(1), 1, 0); },
                 ExitCode::usage, "SHMEM_CTX_INVALID");
  expect_failure([] { shmem_long_wait_until(allocate<long>(1), 99, 1); }, ExitCode::usage,
                 "comparison 99");
  expect_failure([&] { shmem_set_lock(&on_stack); }, ExitCode::usage,
                 "lock: not in a symmetric object");
  expect_failure(
      [] {
        auto* word = allocate<std::uint64_t>(1);
        shmem_putmem_signal(nullptr, nullptr, 0, word, 1, 7, 0);
      },
      ExitCode::usage, "signal operator 7");
  expect_failure([] { shmem_barrier(0, 0, 2, allocate<long>(SHMEM_SYNC_SIZE)); }, ExitCode::usage,
                 "active set (0, 0, 2)");
  expect_failure([] { shmem_barrier(-1, 0, 1, nullptr); }, ExitCode::usage, "active set");
  expect_failure([] { shmem_barrier(0, 40, 2, nullptr); }, ExitCode::usage, "active set");
  EXPECT_EXIT(shmem_my_pe(), testing::ExitedWithCode(2), "not initialized");
}

} // namespace
} // namespace shmemctl::test
