// Wrong arguments of calls by NVSHMEM's names, in a job whose calls are checked: the report names
// the call, the argument and the thread, and the operation is left out.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "tests/support/host_kernels.h"
#include "tests/support/nvshmem_on_host.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t checked_heap_bytes = std::size_t{1} << 20;

/// PE 0's report of a call that its thread makes; nothing has been written into any heap.
WaitReport report_of_call(const std::function<void(std::byte*)>& call) {
  HostKernels kernels(2, checked_heap_bytes);
  for (int pe = 0; pe < 2; ++pe)
    kernels.job(pe).checked = 1;
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    if (job.pe == 0)
      call(job.heap);
  });
  for (int pe = 0; pe < 2; ++pe)
    for (std::size_t i = 0; i < checked_heap_bytes; ++i)
      if (kernels.job(pe).heap[i] != std::byte{}) {
        ADD_FAILURE() << "byte " << i << " of PE " << pe << " was written";
        break;
      }
  EXPECT_EQ(kernels.report(0).state, WaitReport::written);
  EXPECT_EQ(kernels.report(1).state, WaitReport::none);
  return kernels.report(0);
}
void expect_call(const WaitReport& report, WaitKind kind, DeviceCall call,
                 DeviceArgument argument) {
  EXPECT_EQ(static_cast<int>(report.kind), static_cast<int>(kind));
  EXPECT_EQ(static_cast<int>(report.call), static_cast<int>(call));
  EXPECT_EQ(static_cast<int>(report.argument), static_cast<int>(argument));
  EXPECT_EQ(report.block, 0);
  EXPECT_EQ(report.thread, 0);
}
template <class T>
T* checked_words(std::byte* heap, std::size_t offset_bytes) {
  return reinterpret_cast<T*>(heap + offset_bytes);
}

TEST(NvshmemChecks, PesThatDoNotExist) {
  for (const int pe : {-1, 2, INT_MAX}) {
    const auto expect_no_pe = [&](DeviceCall call, const std::function<void(std::byte*)>& kernel) {
      const WaitReport report = report_of_call(kernel);
      expect_call(report, WaitKind::no_such_pe, call, DeviceArgument::pe);
      EXPECT_EQ(static_cast<std::int32_t>(report.seen), pe);
      EXPECT_EQ(report.expected, 2u);
    };
    const double value = 1;
    expect_no_pe(DeviceCall::put,
                 [&](std::byte* heap) { nvshmem_putmem(heap, &value, sizeof value, pe); });
    expect_no_pe(DeviceCall::put_nbi, [&](std::byte* heap) {
      nvshmemx_double_put_nbi_block(checked_words<double>(heap, 0), &value, 1, pe);
    });
    expect_no_pe(DeviceCall::get, [&](std::byte* heap) {
      double to = 0;
      nvshmem_getmem(&to, heap, 8, pe);
    });
    expect_no_pe(DeviceCall::get_nbi, [&](std::byte* heap) {
      double to = 0;
      nvshmemx_get64_nbi_warp(&to, heap, 1, pe);
    });
    expect_no_pe(DeviceCall::p,
                 [&](std::byte* heap) { nvshmem_int_p(checked_words<int>(heap, 0), 3, pe); });
    expect_no_pe(DeviceCall::g, [&](std::byte* heap) {
      EXPECT_EQ(nvshmem_int_g(checked_words<int>(heap, 0), pe), 0);
    });
    expect_no_pe(DeviceCall::iput, [&](std::byte* heap) {
      nvshmem_double_iput(checked_words<double>(heap, 0), &value, 1, 1, 1, pe);
    });
    expect_no_pe(DeviceCall::iget, [&](std::byte* heap) {
      double to = 0;
      nvshmem_double_iget(&to, checked_words<double>(heap, 0), 1, 1, 1, pe);
    });
    expect_no_pe(DeviceCall::put_signal, [&](std::byte* heap) {
      nvshmem_putmem_signal(heap, &value, 8, checked_words<std::uint64_t>(heap, 64), 1,
                            NVSHMEM_SIGNAL_SET, pe);
    });
    expect_no_pe(DeviceCall::put_signal_nbi, [&](std::byte* heap) {
      nvshmemx_putmem_signal_nbi_warp(heap, &value, 8, checked_words<std::uint64_t>(heap, 64), 1,
                                      NVSHMEM_SIGNAL_ADD, pe);
    });
    expect_no_pe(DeviceCall::signal_op, [&](std::byte* heap) {
      nvshmemx_signal_op(checked_words<std::uint64_t>(heap, 64), 1, NVSHMEM_SIGNAL_ADD, pe);
    });
    expect_no_pe(DeviceCall::atomic, [&](std::byte* heap) {
      EXPECT_EQ(nvshmem_uint_atomic_fetch_add(checked_words<unsigned>(heap, 0), 1, pe), 0u);
    });
  }
}

TEST(NvshmemChecks, MemoryOutsideOfTheHeap) {
  const std::byte data[64]{};
  std::uint64_t elsewhere = 7;
  const auto expect_outside = [&](DeviceCall call, DeviceArgument argument,
                                  std::uint64_t size_bytes,
                                  const std::function<void(std::byte*)>& kernel) {
    const WaitReport report = report_of_call(kernel);
    expect_call(report, WaitKind::outside_heap, call, argument);
    EXPECT_EQ(report.expected, size_bytes);
  };
  // The last byte of a block counts, and sizes that overflow.
  for (const std::size_t size_bytes : {std::size_t{17}, SIZE_MAX - 8, SIZE_MAX})
    expect_outside(DeviceCall::put, DeviceArgument::dest, size_bytes, [&](std::byte* heap) {
      nvshmem_putmem(heap + checked_heap_bytes - 16, data, size_bytes, 1);
    });
  expect_outside(DeviceCall::get, DeviceArgument::source, 8, [&](std::byte*) {
    std::uint64_t to = 0;
    nvshmem_getmem(&to, &elsewhere, 8, 1);
  });
  expect_outside(DeviceCall::put, DeviceArgument::dest, 4,
                 [&](std::byte* heap) { nvshmem_putmem(heap - 1, data, 4, 1); });
  expect_outside(DeviceCall::iput, DeviceArgument::dest, 28, [&](std::byte* heap) {
    nvshmem_int_iput(checked_words<int>(heap, checked_heap_bytes - 24),
                     reinterpret_cast<const int*>(data), 3, 1, 3, 1);
  });
  expect_outside(DeviceCall::iget, DeviceArgument::source, 12, [&](std::byte* heap) {
    int to[2];
    nvshmem_int_iget(to, checked_words<int>(heap, 4), 1, -2, 2, 1); // backwards
  });
  expect_outside(DeviceCall::put_signal, DeviceArgument::signal_address, 8, [&](std::byte* heap) {
    nvshmem_putmem_signal(heap, data, 8, &elsewhere, 1, NVSHMEM_SIGNAL_SET, 1);
  });
  expect_outside(DeviceCall::signal_wait_until, DeviceArgument::signal_address, 8,
                 [&](std::byte*) { nvshmem_signal_wait_until(&elsewhere, NVSHMEM_CMP_EQ, 8); });
  expect_outside(DeviceCall::wait_until, DeviceArgument::word, 16, [&](std::byte* heap) {
    auto* const last = checked_words<std::uint64_t>(heap, checked_heap_bytes - 8);
    EXPECT_EQ(nvshmem_uint64_wait_until_any(last, 2, nullptr, NVSHMEM_CMP_EQ, 8), SIZE_MAX);
  });
  expect_outside(DeviceCall::test, DeviceArgument::word, 8, [&](std::byte*) {
    EXPECT_EQ(nvshmem_uint64_test(&elsewhere, NVSHMEM_CMP_EQ, 7), 0);
  });
  expect_outside(DeviceCall::atomic, DeviceArgument::dest, 8,
                 [&](std::byte*) { nvshmem_uint64_atomic_inc(&elsewhere, 1); });
  expect_outside(DeviceCall::fcollect, DeviceArgument::dest, 2 * 600000, [&](std::byte* heap) {
    EXPECT_NE(nvshmem_fcollectmem(NVSHMEM_TEAM_WORLD, heap, heap, 600000), 0);
  });
  expect_outside(DeviceCall::alltoall, DeviceArgument::source, 64, [&](std::byte* heap) {
    EXPECT_NE(nvshmem_alltoallmem(NVSHMEM_TEAM_WORLD, heap, data, 32), 0);
  });
  EXPECT_EQ(elsewhere, 7u);
}

TEST(NvshmemChecks, NothingIsNowhere) {
  HostKernels kernels(1, checked_heap_bytes);
  kernels.job(0).checked = 1;
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    int elsewhere = 0;
    nvshmem_putmem(&elsewhere, nullptr, 0, 0);
    nvshmem_int_iput(&elsewhere, &elsewhere, 1, 1, 0, 0);
  });
  EXPECT_EQ(kernels.report(0).state, WaitReport::none);
}

TEST(NvshmemChecks, Alignment) {
  const auto expect_misaligned = [&](DeviceCall call, DeviceArgument argument, unsigned size_bytes,
                                     const std::function<void(std::byte*)>& kernel) {
    const WaitReport report = report_of_call(kernel);
    expect_call(report, WaitKind::misaligned, call, argument);
    EXPECT_EQ(report.expected, size_bytes);
    EXPECT_NE(report.seen % size_bytes, 0u);
  };
  // As a program would make one: from the bytes of the heap.
  const auto eight = [](std::byte* heap) { return checked_words<std::uint64_t>(heap, 4); };
  expect_misaligned(DeviceCall::atomic, DeviceArgument::dest, 8,
                    [&](std::byte* heap) { nvshmem_uint64_atomic_add(eight(heap), 1, 1); });
  expect_misaligned(DeviceCall::signal_op, DeviceArgument::signal_address, 8, [&](std::byte* heap) {
    nvshmemx_signal_op(eight(heap), 1, NVSHMEM_SIGNAL_SET, 1);
  });
  expect_misaligned(DeviceCall::wait_until, DeviceArgument::word, 2, [&](std::byte* heap) {
    nvshmem_short_wait_until(checked_words<short>(heap, 1), NVSHMEM_CMP_EQ, 1);
  });
}

TEST(NvshmemChecks, TeamsAndRoots) {
  for (const int team : {-1, 5, limits::max_teams, INT_MAX}) {
    const WaitReport barrier =
        report_of_call([&](std::byte*) { EXPECT_NE(nvshmem_barrier(team), 0); });
    expect_call(barrier, WaitKind::no_such_team, DeviceCall::barrier, DeviceArgument::team);
    EXPECT_EQ(static_cast<std::int32_t>(barrier.seen), team);
    expect_call(report_of_call([&](std::byte*) { EXPECT_NE(nvshmem_team_sync(team), 0); }),
                WaitKind::no_such_team, DeviceCall::sync, DeviceArgument::team);
    expect_call(report_of_call([&](std::byte* heap) {
                  EXPECT_NE(nvshmem_int_sum_reduce(team, checked_words<int>(heap, 0),
                                                   checked_words<int>(heap, 64), 4),
                            0);
                }),
                WaitKind::no_such_team, DeviceCall::reduce, DeviceArgument::team);
  }
  for (const int root : {-1, 2}) {
    const WaitReport report = report_of_call([&](std::byte* heap) {
      EXPECT_NE(nvshmem_broadcastmem(NVSHMEM_TEAM_WORLD, heap, heap + 64, 8, root), 0);
    });
    expect_call(report, WaitKind::no_such_pe, DeviceCall::broadcast, DeviceArgument::root);
    EXPECT_EQ(static_cast<std::int32_t>(report.seen), root);
  }
}

TEST(NvshmemChecks, ValuesThatACallDoesNotHave) {
  expect_call(report_of_call([](std::byte* heap) {
                nvshmem_int_wait_until(checked_words<int>(heap, 0), 6, 1);
              }),
              WaitKind::no_such_value, DeviceCall::wait_until, DeviceArgument::comparison);
  const WaitReport report = report_of_call([](std::byte* heap) {
    nvshmemx_signal_op(checked_words<std::uint64_t>(heap, 0), 1, NVSHMEM_CMP_EQ, 1);
  });
  expect_call(report, WaitKind::no_such_value, DeviceCall::signal_op, DeviceArgument::operation);
  EXPECT_EQ(report.seen, static_cast<std::uint64_t>(NVSHMEM_CMP_EQ));
}

/// Without checks these end, too: nothing is compared.
TEST(NvshmemChecks, AComparisonThatDoesNotExistEndsAtOnce) {
  HostKernels kernels(1, checked_heap_bytes);
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    nvshmem_int_wait_until(checked_words<int>(job.heap, 0), 6, 1);
    EXPECT_EQ(nvshmem_int_test(checked_words<int>(job.heap, 0), -1, 0), 0);
  });
  EXPECT_EQ(kernels.report(0).state, WaitReport::none);
}

/// Members of a team that differ in the call, the size, or the root.
TEST(NvshmemChecks, MembersWhoseCallsDiffer) {
  const auto expect_differ = [](const CollectiveCall(&calls)[2],
                                const std::function<int(int, std::byte*)>& call) {
    HostKernels kernels(2, checked_heap_bytes);
    for (int pe = 0; pe < 2; ++pe)
      kernels.job(pe).checked = 1;
    std::atomic<int> succeeded{0};
    kernels.run({1, 2}, [&](const DeviceJob& job) {
      nvshmem::job_of_thread = &job;
      succeeded += call(job.pe, job.heap) == 0;
    });
    EXPECT_EQ(succeeded, 0);
    for (int pe = 0; pe < 2; ++pe) {
      const WaitReport& report = kernels.report(pe);
      EXPECT_EQ(report.state, WaitReport::written);
      EXPECT_EQ(static_cast<int>(report.kind), static_cast<int>(WaitKind::calls_differ));
      EXPECT_EQ(report.peer, 1 - pe);
      EXPECT_EQ(report.expected, calls[pe].word());
      EXPECT_EQ(report.seen, calls[1 - pe].word());
    }
  };
  expect_differ(
      {{DeviceCall::fcollect, 0, 8}, {DeviceCall::fcollect, 0, 16}}, [](int pe, std::byte* heap) {
        return nvshmemx_double_fcollect_block(NVSHMEM_TEAM_WORLD, checked_words<double>(heap, 0),
                                              checked_words<double>(heap, 512),
                                              static_cast<std::size_t>(pe) + 1);
      });
  expect_differ({{DeviceCall::broadcast, 0, 40000}, {DeviceCall::broadcast, 1, 40000}},
                [](int pe, std::byte* heap) {
                  return nvshmemx_broadcastmem_block(NVSHMEM_TEAM_WORLD, heap, heap + 50000, 40000,
                                                     pe);
                });
  expect_differ({{DeviceCall::reduce, 0, 400}, {DeviceCall::reducescatter, 0, 400}},
                [](int pe, std::byte* heap) {
                  auto* const dest = checked_words<float>(heap, 0);
                  auto* const source = checked_words<float>(heap, 4096);
                  return pe == 0 ? nvshmemx_float_sum_reduce_block(0, dest, source, 100)
                                 : nvshmemx_float_sum_reducescatter_block(0, dest, source, 100);
                });
}

TEST(NvshmemChecks, TheWordOfACallHoldsItsParts) {
  const CollectiveCall call{DeviceCall::maxloc_reduce, 65535, (std::uint64_t{1} << 40) - 1};
  const CollectiveCall again = CollectiveCall::of(call.word());
  EXPECT_EQ(static_cast<int>(again.call), static_cast<int>(call.call));
  EXPECT_EQ(again.root, call.root);
  EXPECT_EQ(again.size_bytes, call.size_bytes);
}

/// The thread and the block of who makes the call.
TEST(NvshmemChecks, TheThreadIsNamed) {
  HostKernels kernels(1, checked_heap_bytes);
  kernels.job(0).checked = 1;
  kernels.run({3, 4}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    if (device::blockIdx.x == 2 && device::threadIdx.x == 3)
      nvshmem_int_p(checked_words<int>(job.heap, 0), 1, 1);
  });
  EXPECT_EQ(kernels.report(0).block, 2);
  EXPECT_EQ(kernels.report(0).thread, 3);
}

TEST(NvshmemChecks, AKernelAsksForTheEnd) {
  const WaitReport report = report_of_call([](std::byte*) { nvshmem_global_exit(7); });
  EXPECT_EQ(static_cast<int>(report.kind), static_cast<int>(WaitKind::exit_asked));
  EXPECT_EQ(report.seen, 7u);
}

} // namespace
} // namespace shmemctl::test
