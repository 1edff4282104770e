// Wrong arguments of calls by NVSHMEM's names, in a job whose calls are checked: the report names
// the call, the argument and the thread, and the operation is left out. Transfers that a later call
// needs complete are reported as well.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <vector>

#include "tests/support/host_kernels.h"
#include "tests/support/nvshmem_on_host.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t checked_heap_bytes = std::size_t{1} << 20;

/// PE 0's report of a call that its thread makes; nothing has been written into any heap.
WaitReport report_of_call(const std::function<void(std::byte*)>& call) {
  HostKernels kernels(2, checked_heap_bytes);
  for (int pe = 0; pe < 2; ++pe)
    kernels.check_calls(pe);
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
  kernels.check_calls(0);
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
      kernels.check_calls(pe);
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

/// The thread and the block of the caller are named.
TEST(NvshmemChecks, TheThreadIsNamed) {
  HostKernels kernels(1, checked_heap_bytes);
  kernels.check_calls(0);
  kernels.run({3, 4}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    if (device::blockIdx.x == 2 && device::threadIdx.x == 3)
      nvshmem_int_p(checked_words<int>(job.heap, 0), 1, 1);
  });
  EXPECT_EQ(kernels.report(0).block, 2);
  EXPECT_EQ(kernels.report(0).thread, 3);
}

/// PE 0's report of what two PEs' threads do; the operations themselves are done.
WaitReport report_of_kernel(HostShape shape, const std::function<void(const DeviceJob&)>& kernel) {
  HostKernels kernels(2, checked_heap_bytes);
  for (int pe = 0; pe < 2; ++pe)
    kernels.check_calls(pe);
  kernels.run(shape, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    kernel(job);
  });
  EXPECT_EQ(kernels.report(1).state, WaitReport::none);
  return kernels.report(0);
}
void expect_not_complete(DeviceCall earlier, DeviceCall call, DeviceArgument argument,
                         std::size_t offset_bytes,
                         const std::function<void(std::byte*, int)>& calls) {
  std::uint64_t expected_address = 0;
  const WaitReport report = report_of_kernel({1, 1}, [&](const DeviceJob& job) {
    if (job.pe == 0) {
      expected_address = device::detail::address_of(job.heap + offset_bytes);
      calls(job.heap, job.pe);
    }
  });
  EXPECT_EQ(report.state, WaitReport::written);
  expect_call(report, WaitKind::not_complete, call, argument);
  EXPECT_EQ(report.expected, static_cast<std::uint64_t>(earlier));
  EXPECT_EQ(report.seen, expected_address);
}

/// A source that is overwritten, and a target that is read, before a quiet: the first byte that
/// both calls use is named.
TEST(NvshmemChecks, MemoryOfATransferThatMayNotBeComplete) {
  expect_not_complete(DeviceCall::get_nbi, DeviceCall::put, DeviceArgument::source, 64,
                      [](std::byte* heap, int) {
                        nvshmem_getmem_nbi(heap, heap + 4096, 128, 1);
                        nvshmem_putmem(heap + 8192, heap + 64, 256, 1);
                      });
  expect_not_complete(DeviceCall::get_nbi, DeviceCall::put_signal_nbi, DeviceArgument::source, 128,
                      [](std::byte* heap, int) {
                        nvshmemx_getmem_nbi_block(heap + 128, heap + 4096, 8, 1);
                        nvshmem_fence(); // orders, and completes nothing
                        nvshmemx_putmem_signal_nbi_warp(heap + 8192, heap, 136,
                                                        checked_words<std::uint64_t>(heap, 2048), 1,
                                                        NVSHMEM_SIGNAL_SET, 1);
                      });
  expect_not_complete(DeviceCall::put_nbi, DeviceCall::get, DeviceArgument::dest, 0,
                      [](std::byte* heap, int) {
                        nvshmem_putmem_nbi(heap + 4096, heap, 1, 1);
                        nvshmem_getmem(heap, heap + 8192, 64, 1);
                      });
  expect_not_complete(DeviceCall::put_signal_nbi, DeviceCall::put, DeviceArgument::dest, 512,
                      [](std::byte* heap, int me) {
                        nvshmem_putmem_signal_nbi(heap + 4096, heap + 512, 64,
                                                  checked_words<std::uint64_t>(heap, 2048), 1,
                                                  NVSHMEM_SIGNAL_SET, 1);
                        nvshmem_putmem(heap + 512, heap + 8192, 8, me); // into its own memory
                      });
  expect_not_complete(DeviceCall::get_nbi, DeviceCall::get_nbi, DeviceArgument::source, 0,
                      [](std::byte* heap, int me) {
                        nvshmem_getmem_nbi(heap, heap + 4096, 64, 1);
                        nvshmem_getmem_nbi(heap + 512, heap, 64, me);
                      });
  expect_not_complete(DeviceCall::get_nbi, DeviceCall::put, DeviceArgument::source, 0,
                      [](std::byte* heap, int) { // the second of three puts that are under way
                        nvshmem_getmem_nbi(heap + 512, heap + 4096, 64, 1);
                        nvshmem_getmem_nbi(heap, heap + 4096, 64, 1);
                        nvshmem_getmem_nbi(heap + 1024, heap + 4096, 64, 1);
                        nvshmem_putmem(heap + 8192, heap, 1, 1);
                      });
}

/// Each of these may have completed the transfer, or brought the news of it; neighbours, reads of
/// what is read and the same side in other threads and launches are no fault.
TEST(NvshmemChecks, TransfersThatMayBeComplete) {
  const auto expect_silence = [](HostShape shape,
                                 const std::function<void(const DeviceJob&)>& kernel) {
    EXPECT_EQ(report_of_kernel(shape, kernel).state, WaitReport::none);
  };
  const std::vector<std::function<void(std::byte*)>> completing = {
      [](std::byte*) { nvshmem_quiet(); },
      [](std::byte*) { nvshmem_barrier_all(); },
      [](std::byte*) { nvshmem_sync_all(); },
      [](std::byte* heap) {
        nvshmem_int_wait_until(checked_words<int>(heap, 2048), NVSHMEM_CMP_EQ, 0);
      },
      [](std::byte* heap) {
        EXPECT_EQ(nvshmem_int_test(checked_words<int>(heap, 2048), NVSHMEM_CMP_EQ, 0), 1);
      },
      [](std::byte* heap) {
        EXPECT_EQ(nvshmem_signal_fetch(checked_words<std::uint64_t>(heap, 2048)), 0u);
      },
      [](std::byte* heap) { EXPECT_EQ(nvshmem_int_g(checked_words<int>(heap, 2048), 1), 0); },
      [](std::byte* heap) {
        EXPECT_EQ(nvshmem_int_atomic_fetch(checked_words<int>(heap, 2048), 1), 0);
      },
      [](std::byte* heap) {
        EXPECT_EQ(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, checked_words<int>(heap, 16384),
                                         checked_words<int>(heap, 16640), 1),
                  0);
      }};
  for (const auto& complete : completing)
    expect_silence({1, 1}, [&](const DeviceJob& job) {
      nvshmem_getmem_nbi(job.heap, job.heap + 4096, 64, 1 - job.pe);
      nvshmem_putmem_nbi(job.heap + 8192, job.heap + 512, 64, 1 - job.pe);
      complete(job.heap);
      nvshmem_putmem(job.heap + 8448, job.heap, 64, 1 - job.pe);
      nvshmem_getmem(job.heap + 512, job.heap + 4096, 64, 1 - job.pe);
    });
  expect_silence({1, 1}, [](const DeviceJob& job) {
    if (job.pe != 0)
      return;
    nvshmem_getmem_nbi(job.heap + 64, job.heap + 4096, 64, 1);
    nvshmem_putmem_nbi(job.heap + 8192, job.heap, 64, 1);       // memory before the source
    nvshmem_putmem_nbi(job.heap + 8192, job.heap + 128, 64, 1); // memory behind the source
    nvshmem_putmem_nbi(job.heap + 8192, job.heap, 32, 1);       // read twice
    nvshmem_getmem_nbi(job.heap + 64, job.heap + 4096, 64, 1);  // written twice
    nvshmem_putmem_nbi(job.heap, job.heap + 12288, 0, 0);       // nothing
    nvshmem_putmem_nbi(job.heap, job.heap + 12288, 64, 1);      // memory of the other PE
  });
  // One thread's quiet is for all, and transfers that other threads have under way are not checked.
  expect_silence({2, 3}, [](const DeviceJob& job) {
    const auto at =
        256 * static_cast<std::size_t>(device::Block::rank() + 3 * device::Grid::rank());
    nvshmem_getmem_nbi(job.heap + at, job.heap + 4096, 64, 1 - job.pe);
    device::Block::sync();
    if (device::Block::rank() == 1)
      nvshmem_quiet();
    device::Block::sync();
    nvshmem_putmem(job.heap + 8192 + at, job.heap + at, 64, 1 - job.pe);
  });
}

TEST(NvshmemChecks, TransfersOfAnotherLaunch) {
  HostKernels kernels(1, checked_heap_bytes);
  kernels.check_calls(0);
  for (int launch = 0; launch < 2; ++launch)
    kernels.run({1, 1}, [&](const DeviceJob& job) {
      nvshmem::job_of_thread = &job;
      if (launch == 0)
        nvshmem_getmem_nbi(job.heap, job.heap + 4096, 64, 0);
      else
        nvshmem_putmem(job.heap + 8192, job.heap, 64, 0);
    });
  EXPECT_EQ(kernels.report(0).state, WaitReport::none);
}

TEST(NvshmemChecks, ACollectiveOfWhatMayNotBeThere) {
  HostKernels kernels(2, checked_heap_bytes, 1.0);
  for (int pe = 0; pe < 2; ++pe)
    kernels.check_calls(pe);
  kernels.run({1, 2}, [](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    if (job.pe == 0)
      nvshmemx_getmem_nbi_block(job.heap, job.heap + 4096, 64, 1);
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, checked_words<int>(job.heap, 8192),
                                  checked_words<int>(job.heap, 0), 4);
  });
  expect_call(kernels.report(0), WaitKind::not_complete, DeviceCall::reduce,
              DeviceArgument::source);
  // PE 0's waits end once it has reported, so that PE 1 may wait in vain for its data.
  const WaitReport other = kernels.report(1);
  if (other.state != WaitReport::none) {
    EXPECT_EQ(static_cast<int>(other.kind), static_cast<int>(WaitKind::cell));
    EXPECT_EQ(other.peer, 0);
  }
}

TEST(NvshmemChecks, AKernelAsksForTheEnd) {
  const WaitReport report = report_of_call([](std::byte*) { nvshmem_global_exit(7); });
  EXPECT_EQ(static_cast<int>(report.kind), static_cast<int>(WaitKind::exit_asked));
  EXPECT_EQ(report.seen, 7u);
}

} // namespace
} // namespace shmemctl::test
