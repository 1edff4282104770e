// Calls by NVSHMEM's names on threads of the host: what each returns and does, one by one.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "tests/support/host_kernels.h"
#include "tests/support/nvshmem_on_host.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t calls_heap_bytes = std::size_t{1} << 20;

/// One thread of each PE.
void on_each_pe(HostKernels& kernels, const std::function<void(std::byte*)>& kernel) {
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    kernel(job.heap);
  });
}
template <class T>
T* words_at(std::byte* heap, std::size_t offset_bytes) {
  return reinterpret_cast<T*>(heap + offset_bytes);
}

TEST(NvshmemCalls, PesAndTeams) {
  HostKernels kernels(5, calls_heap_bytes);
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    EXPECT_EQ(nvshmem_my_pe(), job.pe);
    EXPECT_EQ(nvshmem_n_pes(), 5);
    EXPECT_EQ(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD), job.pe);
    EXPECT_EQ(nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD), 5);
    EXPECT_EQ(nvshmem_team_my_pe(HostKernels::even), job.pe % 2 == 0 ? job.pe / 2 : -1);
    EXPECT_EQ(nvshmem_team_n_pes(HostKernels::even), 3);
    for (const int nobody : {NVSHMEM_TEAM_INVALID + 0, 9, limits::max_teams, INT_MAX}) {
      EXPECT_EQ(nvshmem_team_my_pe(nobody), -1) << nobody;
      EXPECT_EQ(nvshmem_team_n_pes(nobody), -1) << nobody;
      EXPECT_EQ(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 0, nobody), -1) << nobody;
      EXPECT_EQ(nvshmem_team_translate_pe(nobody, 0, NVSHMEM_TEAM_WORLD), -1) << nobody;
    }
    // Strided: PEs 0, 2, 4. A list: PEs 4, 0.
    EXPECT_EQ(nvshmem_team_translate_pe(HostKernels::even, 2, NVSHMEM_TEAM_WORLD), 4);
    EXPECT_EQ(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 2, HostKernels::even), 1);
    EXPECT_EQ(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 3, HostKernels::even), -1);
    EXPECT_EQ(nvshmem_team_translate_pe(HostKernels::even, 3, NVSHMEM_TEAM_WORLD), -1);
    EXPECT_EQ(nvshmem_team_translate_pe(HostKernels::even, -1, NVSHMEM_TEAM_WORLD), -1);
    EXPECT_EQ(nvshmem_team_translate_pe(HostKernels::ends, 0, HostKernels::even), 2);
    EXPECT_EQ(nvshmem_team_translate_pe(HostKernels::even, 0, HostKernels::ends), 1);
    EXPECT_EQ(nvshmem_team_translate_pe(HostKernels::even, 1, HostKernels::ends), -1);
  });
}

TEST(NvshmemCalls, AddressesOfPeers) {
  HostKernels kernels(3, calls_heap_bytes);
  kernels.unmap(2);
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    int elsewhere = 0;
    EXPECT_EQ(nvshmem_ptr(job.heap + 8, job.pe), job.heap + 8);
    if (job.pe == 0) {
      EXPECT_EQ(nvshmem_ptr(job.heap + 8, 1), kernels.job(1).heap + 8);
      EXPECT_EQ(nvshmem_ptr(job.heap + 8, 2), nullptr) << "not mapped";
    }
    for (const int nobody : {-1, 3})
      EXPECT_EQ(nvshmem_ptr(job.heap, nobody), nullptr);
    EXPECT_EQ(nvshmem_ptr(&elsewhere, 1), nullptr);
    EXPECT_EQ(nvshmem_ptr(job.heap + calls_heap_bytes, job.pe), nullptr);
    EXPECT_EQ(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, job.heap), nullptr);
  });
}

TEST(NvshmemCalls, NamesAndVersions) {
  char name[NVSHMEM_MAX_NAME_LEN];
  std::memset(name, 'x', sizeof name);
  nvshmem_info_get_name(name);
  EXPECT_STREQ(name, NVSHMEM_VENDOR_STRING);
  int major = 0, minor = 0, patch = 0;
  nvshmem_info_get_version(&major, &minor);
  EXPECT_EQ(major, NVSHMEM_MAJOR_VERSION);
  EXPECT_EQ(minor, NVSHMEM_MINOR_VERSION);
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  EXPECT_EQ(major * 10000 + minor * 100 + patch, NVSHMEM_VENDOR_VERSION);
}

/// p and g of every type, to the bit.
TEST(NvshmemCalls, SingleValuesOfEachType) {
  HostKernels kernels(2, calls_heap_bytes);
  on_each_pe(kernels, [](std::byte* heap) {
    const int peer = 1 - nvshmem_my_pe();
    std::size_t at = 0;
#define NVSHMEM_TEST_X(T, N)                                                                       \
  {                                                                                                \
    T value;                                                                                       \
    std::memset(&value, 0x40 + nvshmem_my_pe(), sizeof value);                                     \
    nvshmem_##N##_p(words_at<T>(heap, at), value, peer);                                           \
    at += 16;                                                                                      \
  }
    NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_TEST_X)
#undef NVSHMEM_TEST_X
    nvshmem_barrier_all();
    at = 0;
#define NVSHMEM_TEST_X(T, N)                                                                       \
  {                                                                                                \
    T value;                                                                                       \
    std::memset(&value, 0x40 + peer, sizeof value);                                                \
    EXPECT_EQ(std::memcmp(heap + at, &value, sizeof value), 0) << #N "_p";                         \
    EXPECT_EQ(heap[at + sizeof value], std::byte{}) << #N "_p";                                    \
    std::memset(&value, 0x40 + nvshmem_my_pe(), sizeof value);                                     \
    const T got = nvshmem_##N##_g(words_at<T>(heap, at), peer);                                    \
    EXPECT_EQ(std::memcmp(&got, &value, sizeof value), 0) << #N "_g";                              \
    at += 16;                                                                                      \
  }
    NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_TEST_X)
#undef NVSHMEM_TEST_X
    nvshmem_barrier_all();
  });
}

TEST(NvshmemCalls, AtomicsOfEachType) {
  HostKernels kernels(2, calls_heap_bytes);
  on_each_pe(kernels, [](std::byte* heap) {
    const int peer = 1 - nvshmem_my_pe();
    std::size_t at = 0;
#define NVSHMEM_TEST_X(T, N)                                                                       \
  {                                                                                                \
    using Word = T;                                                                                \
    T* const word = words_at<T>(heap, at);                                                         \
    nvshmem_##N##_atomic_set(word, Word(5), peer);                                                 \
    EXPECT_EQ(nvshmem_##N##_atomic_swap(word, Word(9), peer), Word(5)) << #N;                      \
    EXPECT_EQ(nvshmem_##N##_atomic_fetch(word, peer), Word(9)) << #N;                              \
    at += 8;                                                                                       \
  }
    NVSHMEM_COMPAT_AMO_EXTENDED_TYPES(NVSHMEM_TEST_X)
#undef NVSHMEM_TEST_X
#define NVSHMEM_TEST_X(T, N)                                                                       \
  {                                                                                                \
    using Word = T;                                                                                \
    T* const word = words_at<T>(heap, at);                                                         \
    nvshmem_##N##_atomic_add(word, Word(6), peer);                                                 \
    nvshmem_##N##_atomic_inc(word, peer);                                                          \
    EXPECT_EQ(nvshmem_##N##_atomic_fetch_add(word, Word(3), peer), Word(7)) << #N;                 \
    EXPECT_EQ(nvshmem_##N##_atomic_fetch_inc(word, peer), Word(10)) << #N;                         \
    EXPECT_EQ(nvshmem_##N##_atomic_compare_swap(word, Word(10), Word(1), peer), Word(11)) << #N;   \
    EXPECT_EQ(nvshmem_##N##_atomic_compare_swap(word, Word(11), Word(1), peer), Word(11)) << #N;   \
    EXPECT_EQ(nvshmem_##N##_atomic_fetch(word, peer), Word(1)) << #N;                              \
    at += 8;                                                                                       \
  }
    NVSHMEM_COMPAT_AMO_TYPES(NVSHMEM_TEST_X)
#undef NVSHMEM_TEST_X
#define NVSHMEM_TEST_X(T, N)                                                                       \
  {                                                                                                \
    using Word = T;                                                                                \
    T* const word = words_at<T>(heap, at);                                                         \
    nvshmem_##N##_atomic_or(word, Word(12), peer);                                                 \
    EXPECT_EQ(nvshmem_##N##_atomic_fetch_and(word, Word(6), peer), Word(12)) << #N;                \
    EXPECT_EQ(nvshmem_##N##_atomic_fetch_xor(word, Word(5), peer), Word(4)) << #N;                 \
    EXPECT_EQ(nvshmem_##N##_atomic_fetch_or(word, Word(2), peer), Word(1)) << #N;                  \
    nvshmem_##N##_atomic_and(word, Word(2), peer);                                                 \
    nvshmem_##N##_atomic_xor(word, Word(6), peer);                                                 \
    EXPECT_EQ(nvshmem_##N##_atomic_fetch(word, peer), Word(4)) << #N;                              \
    at += 8;                                                                                       \
  }
    NVSHMEM_COMPAT_AMO_BITWISE_TYPES(NVSHMEM_TEST_X)
#undef NVSHMEM_TEST_X
  });
}

/// Every comparison of waits and tests, of each type: signed ones below zero.
TEST(NvshmemCalls, ComparisonsOfEachType) {
  HostKernels kernels(1, calls_heap_bytes);
  on_each_pe(kernels, [](std::byte* heap) {
#define NVSHMEM_TEST_X(T, N)                                                                       \
  {                                                                                                \
    using Word = T;                                                                                \
    T* const word = words_at<T>(heap, 64);                                                         \
    const T low = static_cast<Word>(Word(0) - Word(1)) < Word(0)                                   \
                      ? static_cast<Word>(Word(0) - Word(2))                                       \
                      : Word(3);                                                                   \
    const T high = static_cast<Word>(low + 1);                                                     \
    *word = low;                                                                                   \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_EQ, low), 1) << #N;                             \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_EQ, high), 0) << #N;                            \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_NE, low), 0) << #N;                             \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_NE, high), 1) << #N;                            \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_LT, high), 1) << #N;                            \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_LT, low), 0) << #N;                             \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_LE, low), 1) << #N;                             \
    *word = high;                                                                                  \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_LE, low), 0) << #N;                             \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_GT, low), 1) << #N;                             \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_GT, high), 0) << #N;                            \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_GE, high), 1) << #N;                            \
    EXPECT_EQ(nvshmem_##N##_test(word, NVSHMEM_CMP_GE, static_cast<Word>(high + 1)), 0) << #N;     \
    nvshmem_##N##_wait_until(word, NVSHMEM_CMP_GT, low);                                           \
  }
    NVSHMEM_COMPAT_WAIT_TYPES(NVSHMEM_TEST_X)
#undef NVSHMEM_TEST_X
  });
}

/// Of each type: PE 0 tests and waits for words that PE 1 stores one after the other.
TEST(NvshmemCalls, WaitsForSeveralWords) {
  HostKernels kernels(2, calls_heap_bytes);
  on_each_pe(kernels, [](std::byte* heap) {
    const int status[4] = {0, 1, 0, 0};
    const int nothing[4] = {1, 1, 1, 1};
    std::size_t at = 0;
#define NVSHMEM_TEST_X(T, N)                                                                       \
  {                                                                                                \
    using Word = T;                                                                                \
    T* const words = words_at<T>(heap, at);                                                        \
    at += 64;                                                                                      \
    T wanted[4] = {4, 0, 5, 6};                                                                    \
    std::size_t indices[4] = {9, 9, 9, 9};                                                         \
    if (nvshmem_my_pe() == 0) {                                                                    \
      EXPECT_EQ(nvshmem_##N##_wait_until_any(words, 4, nothing, NVSHMEM_CMP_EQ, Word(4)),          \
                SIZE_MAX);                                                                         \
      EXPECT_EQ(nvshmem_##N##_wait_until_any(words, 0, nullptr, NVSHMEM_CMP_EQ, Word(4)),          \
                SIZE_MAX);                                                                         \
      EXPECT_EQ(                                                                                   \
          nvshmem_##N##_wait_until_some(words, 4, indices, nothing, NVSHMEM_CMP_EQ, Word(4)), 0u); \
      EXPECT_EQ(nvshmem_##N##_test_any(words, 4, status, NVSHMEM_CMP_EQ, Word(4)), SIZE_MAX);      \
      EXPECT_EQ(nvshmem_##N##_test_some(words, 4, indices, status, NVSHMEM_CMP_EQ, Word(4)), 0u);  \
      EXPECT_EQ(nvshmem_##N##_test_all(words, 4, nothing, NVSHMEM_CMP_EQ, Word(4)), 1);            \
      EXPECT_EQ(nvshmem_##N##_test_all_vector(words, 4, status, NVSHMEM_CMP_EQ, wanted), 0);       \
      nvshmem_barrier_all();                                                                       \
      EXPECT_EQ(nvshmem_##N##_wait_until_any(words, 4, status, NVSHMEM_CMP_NE, Word(0)), 2u);      \
      EXPECT_EQ(nvshmem_##N##_wait_until_any_vector(words, 4, status, NVSHMEM_CMP_EQ, wanted),     \
                2u);                                                                               \
      EXPECT_EQ(nvshmem_##N##_wait_until_some(words, 4, indices, status, NVSHMEM_CMP_GE, Word(5)), \
                1u);                                                                               \
      EXPECT_EQ(indices[0], 2u);                                                                   \
      nvshmem_barrier_all();                                                                       \
      nvshmem_##N##_wait_until_all(words, 4, status, NVSHMEM_CMP_GT, Word(3));                     \
      nvshmem_##N##_wait_until_all_vector(words, 4, nullptr, NVSHMEM_CMP_EQ, wanted);              \
      EXPECT_EQ(                                                                                   \
          nvshmem_##N##_wait_until_some_vector(words, 4, indices, status, NVSHMEM_CMP_EQ, wanted), \
          3u);                                                                                     \
      EXPECT_EQ(indices[2], 3u);                                                                   \
      EXPECT_EQ(nvshmem_##N##_test_any(words, 4, status, NVSHMEM_CMP_EQ, Word(6)), 3u);            \
      EXPECT_EQ(nvshmem_##N##_test_any_vector(words, 4, status, NVSHMEM_CMP_EQ, wanted), 0u);      \
      EXPECT_EQ(nvshmem_##N##_test_some(words, 4, indices, status, NVSHMEM_CMP_LT, Word(6)), 2u);  \
      EXPECT_EQ(                                                                                   \
          nvshmem_##N##_test_some_vector(words, 4, indices, nullptr, NVSHMEM_CMP_EQ, wanted), 4u); \
      EXPECT_EQ(nvshmem_##N##_test_all(words, 4, nullptr, NVSHMEM_CMP_LE, Word(6)), 1);            \
      EXPECT_EQ(nvshmem_##N##_test_all_vector(words, 4, status, NVSHMEM_CMP_EQ, wanted), 1);       \
    } else {                                                                                       \
      nvshmem_barrier_all();                                                                       \
      nvshmem_##N##_p(words + 2, Word(5), 0);                                                      \
      nvshmem_barrier_all();                                                                       \
      nvshmem_##N##_p(words + 0, Word(4), 0);                                                      \
      nvshmem_##N##_p(words + 3, Word(6), 0);                                                      \
    }                                                                                              \
  }
    NVSHMEM_COMPAT_WAIT_TYPES(NVSHMEM_TEST_X)
#undef NVSHMEM_TEST_X
  });
}

TEST(NvshmemCalls, Signals) {
  HostKernels kernels(2, calls_heap_bytes);
  on_each_pe(kernels, [](std::byte* heap) {
    auto* const signal = words_at<std::uint64_t>(heap, 0);
    const int peer = 1 - nvshmem_my_pe();
    nvshmemx_signal_op(signal, 40, NVSHMEM_SIGNAL_SET, peer);
    EXPECT_EQ(nvshmem_signal_wait_until(signal, NVSHMEM_CMP_NE, 0), 40u);
    nvshmem_barrier_all();
    nvshmemx_signal_op(signal, 2, NVSHMEM_SIGNAL_ADD, peer);
    EXPECT_EQ(nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GT, 41), 42u);
    EXPECT_EQ(nvshmem_signal_fetch(signal), 42u);
  });
}

/// A barrier completes what any thread of the scope has put, at members and at others.
TEST(NvshmemCalls, BarriersCompletePutsThatWereNotWaitedFor) {
  HostKernels kernels(3, calls_heap_bytes);
  kernels.put_on_nodes({0, 1, 0});
  std::atomic<int> wrong{0};
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    auto* const words = words_at<std::uint64_t>(job.heap, 0);
    auto* const mine = words_at<std::uint64_t>(job.heap, 4096);
    const auto thread = device::threadIdx.x;
    mine[thread] = 100u * static_cast<unsigned>(job.pe) + thread + 1;
    for (int pe = 0; pe < 3; ++pe)
      nvshmem_uint64_put_nbi(words + 2 * job.pe + static_cast<int>(thread), mine + thread, 1, pe);
    nvshmemx_barrier_all_block();
    for (unsigned pe = 0; pe < 3; ++pe)
      for (unsigned i = 0; i < 2; ++i)
        wrong += words[2 * pe + i] != 100u * pe + i + 1;
    nvshmemx_team_sync_block(NVSHMEM_TEAM_WORLD);
    nvshmemx_sync_all_block();
  });
  EXPECT_EQ(wrong, 0);
}

TEST(NvshmemCalls, TheLargestValueAndItsPlace) {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 0}}) {
    HostKernels kernels(3, calls_heap_bytes);
    kernels.put_on_nodes(nodes);
    std::atomic<int> wrong{0};
    constexpr int count = 7;
    kernels.run({1, 2}, [&](const DeviceJob& job) {
      nvshmem::job_of_thread = &job;
      auto* const pairs = words_at<device::detail::ValueAndPlace>(job.heap, 0);
      for (int k = device::Block::rank(); k < count; k += device::Block::size()) // largest: k % 3
        pairs[k] = {-1.5 - (job.pe + 3 - k % 3) % 3, 10.0 * job.pe + k};
      EXPECT_EQ(nvshmem::maxloc_reduce<device::Block>(0, pairs, pairs, count), 0);
      for (int k = 0; k < count; ++k)
        wrong += pairs[k].value != -1.5 || pairs[k].place != 10.0 * (k % 3) + k;
      device::Block::sync();
    });
    EXPECT_EQ(wrong, 0);
  }
}

} // namespace
} // namespace shmemctl::test
