// What programs of NVSHMEM ask of the host, over a fake CUDA driver, whose GPUs run no kernels:
// what kernels would be given is looked at. Silent, exit status 0. Other words as its argument make
// the mistake of that name, or choose another way to start.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <dlfcn.h>

#include <nvshmem.h>
#include <nvshmemx.h>
#include <shmemctl/device/src/abi/device_job.h>

using shmemctl::DeviceJob;

// The fake driver knows the streams that it has made: this PE's own one, of shmemx.h.
extern "C" cudaStream_t shmemx_gpu_stream(void);

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: PE %d: %s\n", __FILE__, __LINE__, nvshmem_my_pe(), #condition); \
      nvshmem_global_exit(1);                                                                      \
    }                                                                                              \
  } while (0)

namespace {

int me, n;

int next_pe() {
  return (me + 1) % n;
}
int previous_pe() {
  return (me + n - 1) % n;
}

/// A value of that type that tells PE and position.
template <class T>
T value_of(int pe, int position) {
  return static_cast<T>(static_cast<float>(7 * pe + position + 1));
}
template <class T>
bool same(const T& left, const T& right) {
  return std::memcmp(&left, &right, sizeof left) == 0;
}

void test_what_there_is() {
  char name[NVSHMEM_MAX_NAME_LEN];
  nvshmem_info_get_name(name);
  CHECK(std::string(name) == NVSHMEM_VENDOR_STRING &&
        std::string(name).find("shmemctl") != std::string::npos);
  int major = 0, minor = 0, patch = 0;
  nvshmem_info_get_version(&major, &minor);
  CHECK(major == NVSHMEM_MAJOR_VERSION && minor == NVSHMEM_MINOR_VERSION);
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  CHECK(10000 * major + 100 * minor + patch == NVSHMEM_VENDOR_VERSION);
  CHECK(nvshmemx_init_status() >= NVSHMEM_STATUS_IS_INITIALIZED);
  CHECK((nvshmemx_init_status() == NVSHMEM_STATUS_FULL_MPG) == (n > 2 && me != 1)); // two devices
  int level = -1;
  nvshmem_query_thread(&level);
  CHECK(level == NVSHMEM_THREAD_SERIALIZED);
}

void test_memory() {
  CHECK(nvshmem_malloc(0) == nullptr);
  CHECK(nvshmem_align(24, 8) == nullptr);
  CHECK(nvshmem_calloc(std::size_t{1} << 60, 64) == nullptr);
  nvshmem_free(nullptr);
  void* const aligned = nvshmem_align(4096, 100);
  CHECK(aligned && reinterpret_cast<std::uintptr_t>(aligned) % 4096 == 0);
  void* const usual = nvshmem_malloc(100);
  CHECK(usual && reinterpret_cast<std::uintptr_t>(usual) % 512 == 0);
  nvshmem_free(usual);
  nvshmem_free(aligned);
  const std::uint64_t noise[64] = {1, 2, 3};
  auto* const used = static_cast<std::uint64_t*>(nvshmem_malloc(sizeof noise));
  nvshmem_putmem(used, noise, sizeof noise, me);
  nvshmem_quiet();
  nvshmem_free(used);
  auto* const zeros = static_cast<std::uint64_t*>(nvshmem_calloc(64, 8));
  CHECK(zeros == used);
  std::uint64_t seen[64];
  nvshmem_getmem(seen, zeros, sizeof seen, me);
  for (const std::uint64_t word : seen)
    CHECK(word == 0);
  CHECK(nvshmem_ptr(zeros, me) == zeros);
  CHECK((nvshmem_ptr(zeros, next_pe()) != nullptr));
  CHECK(nvshmem_ptr(&me, me) == nullptr);
  CHECK(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, zeros) == nullptr);
  nvshmem_free(zeros);
}

constexpr int count = 24;

/// Each call of the type's, with the next PE: what arrives is the previous one's.
#define TEST_RMA(T, N)                                                                             \
  void test_rma_##N() {                                                                            \
    auto* const block = static_cast<T*>(nvshmem_calloc(8 * count, sizeof(T)));                     \
    auto* const signal = static_cast<std::uint64_t*>(nvshmem_calloc(2, 8));                        \
    T own[count], seen[8 * count];                                                                 \
    for (int i = 0; i < count; ++i)                                                                \
      own[i] = value_of<T>(me, i);                                                                 \
    nvshmem_##N##_put(block, own, count, next_pe());                                               \
    nvshmem_##N##_put_nbi(block + count, own, count, next_pe());                                   \
    nvshmem_##N##_iput(block + 2 * count, own, 2, 3, count / 3, next_pe());                        \
    nvshmem_##N##_put_signal(block + 3 * count, own, count, signal, 5, NVSHMEM_SIGNAL_SET,         \
                             next_pe());                                                           \
    nvshmem_##N##_put_signal_nbi(block + 4 * count, own, count, signal + 1, 6, NVSHMEM_SIGNAL_SET, \
                                 next_pe());                                                       \
    nvshmem_##N##_p(block + 5 * count, own[3], next_pe());                                         \
    CHECK(nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 5) == 5);                              \
    CHECK(nvshmem_signal_wait_until(signal + 1, NVSHMEM_CMP_NE, 0) == 6);                          \
    nvshmem_barrier_all();                                                                         \
    nvshmem_getmem(seen, block, sizeof seen, me);                                                  \
    for (int i = 0; i < count; ++i) {                                                              \
      const T there = value_of<T>(previous_pe(), i);                                               \
      CHECK(same(seen[i], there) && same(seen[count + i], there));                                 \
      CHECK(same(seen[3 * count + i], there) && same(seen[4 * count + i], there));                 \
    }                                                                                              \
    for (int i = 0; i < count / 3; ++i)                                                            \
      CHECK(same(seen[2 * count + 2 * i], value_of<T>(previous_pe(), 3 * i)) &&                    \
            same(seen[2 * count + 2 * i + 1], static_cast<T>(0.0f)));                              \
    CHECK(same(seen[5 * count], value_of<T>(previous_pe(), 3)));                                   \
    T got[count];                                                                                  \
    nvshmem_##N##_get(got, block, count, next_pe());                                               \
    CHECK(same(got[count - 1], own[count - 1]));                                                   \
    nvshmem_##N##_get_nbi(got, block + count, count, next_pe());                                   \
    nvshmem_quiet();                                                                               \
    CHECK(same(got[0], own[0]));                                                                   \
    nvshmem_##N##_iget(got, block, 3, 2, count / 3, next_pe());                                    \
    CHECK(same(got[3], own[2]) && same(got[6], own[4]));                                           \
    CHECK(same(nvshmem_##N##_g(block + 1, next_pe()), own[1]));                                    \
    CHECK(same(nvshmemx_##N##_g_on_stream(block + 2, next_pe(), shmemx_gpu_stream()), own[2]));    \
    nvshmem_barrier_all();                                                                         \
    nvshmem_free(signal);                                                                          \
    nvshmem_free(block);                                                                           \
  }
NVSHMEM_COMPAT_RMA_TYPES(TEST_RMA)

void test_each_type() {
#define RUN(T, N) test_rma_##N();
  NVSHMEM_COMPAT_RMA_TYPES(RUN)
#undef RUN
}

void test_sizes() {
  auto* const block = static_cast<unsigned char*>(nvshmem_calloc(1024, 1));
  unsigned char own[64], seen[1024];
  for (int i = 0; i < 64; ++i)
    own[i] = static_cast<unsigned char>(100 * me + i + 1);
#define MOVE(bits, bytes)                                                                          \
  nvshmem_put##bits(block, own, 64 / bytes, next_pe());                                            \
  nvshmem_put##bits##_nbi(block + 64, own, 64 / bytes, next_pe());                                 \
  nvshmem_iput##bits(block + 128, own, 2, 1, 2, next_pe());                                        \
  nvshmem_barrier_all();                                                                           \
  nvshmem_get##bits(seen, block, 192 / bytes, me);                                                 \
  for (int i = 0; i < 64; ++i)                                                                     \
    CHECK(seen[i] == static_cast<unsigned char>(100 * previous_pe() + i + 1) &&                    \
          seen[64 + i] == seen[i]);                                                                \
  for (int i = 0; i < bytes; ++i)                                                                  \
    CHECK(seen[128 + i] == seen[i] && seen[128 + 2 * bytes + i] == seen[bytes + i]);               \
  nvshmem_get##bits##_nbi(seen + 256, block + 64, 64 / bytes, next_pe());                          \
  nvshmem_quiet();                                                                                 \
  CHECK(std::memcmp(seen + 256, own, 64) == 0);                                                    \
  nvshmem_iget##bits(seen, block, 1, 2, 2, next_pe());                                             \
  CHECK(std::memcmp(seen, own, bytes) == 0 &&                                                      \
        std::memcmp(seen + bytes, own + 2 * bytes, bytes) == 0);                                   \
  nvshmem_barrier_all();
  NVSHMEM_COMPAT_SIZES(MOVE)
#undef MOVE
  nvshmem_free(block);
}

/// Words that this PE sets by itself, since no other one does anything meanwhile.
#define TEST_WAITS(T, N)                                                                           \
  void test_waits_##N() {                                                                          \
    auto* const words = static_cast<T*>(nvshmem_calloc(4, sizeof(T)));                             \
    const T values[4] = {1, 2, 3, 4};                                                              \
    nvshmem_##N##_put(words, values, 4, me);                                                       \
    nvshmem_quiet();                                                                               \
    nvshmem_##N##_wait_until(words + 2, NVSHMEM_CMP_EQ, 3);                                        \
    CHECK(nvshmem_##N##_test(words, NVSHMEM_CMP_EQ, 1) == 1);                                      \
    CHECK(nvshmem_##N##_test(words, NVSHMEM_CMP_NE, 1) == 0);                                      \
    CHECK(nvshmem_##N##_test(words, NVSHMEM_CMP_GT, 0) == 1);                                      \
    CHECK(nvshmem_##N##_test(words, NVSHMEM_CMP_GE, 2) == 0);                                      \
    CHECK(nvshmem_##N##_test(words, NVSHMEM_CMP_LT, 1) == 0);                                      \
    CHECK(nvshmem_##N##_test(words, NVSHMEM_CMP_LE, 1) == 1);                                      \
    const int status[4] = {0, 1, 0, 0};                                                            \
    T each[4] = {1, 9, 3, 4};                                                                      \
    std::size_t indices[4] = {};                                                                   \
    nvshmem_##N##_wait_until_all(words, 4, nullptr, NVSHMEM_CMP_GE, 1);                            \
    nvshmem_##N##_wait_until_all_vector(words, 4, status, NVSHMEM_CMP_EQ, each);                   \
    CHECK(nvshmem_##N##_wait_until_any(words, 4, status, NVSHMEM_CMP_GE, 2) == 2);                 \
    CHECK(nvshmem_##N##_wait_until_any_vector(words, 4, status, NVSHMEM_CMP_EQ, each) == 0);       \
    CHECK(nvshmem_##N##_wait_until_any(words, 0, nullptr, NVSHMEM_CMP_EQ, 2) == SIZE_MAX);         \
    CHECK(nvshmem_##N##_wait_until_some(words, 4, indices, status, NVSHMEM_CMP_GT, 2) == 2 &&      \
          indices[0] == 2 && indices[1] == 3);                                                     \
    CHECK(nvshmem_##N##_wait_until_some_vector(words, 4, indices, status, NVSHMEM_CMP_EQ, each) == \
              3 &&                                                                                 \
          indices[1] == 2);                                                                        \
    CHECK(nvshmem_##N##_test_all(words, 4, nullptr, NVSHMEM_CMP_LE, 3) == 0);                      \
    CHECK(nvshmem_##N##_test_all_vector(words, 4, status, NVSHMEM_CMP_EQ, each) == 1);             \
    CHECK(nvshmem_##N##_test_all_vector(words, 4, nullptr, NVSHMEM_CMP_EQ, each) == 0);            \
    CHECK(nvshmem_##N##_test_any(words, 4, nullptr, NVSHMEM_CMP_EQ, 9) == SIZE_MAX);               \
    CHECK(nvshmem_##N##_test_any_vector(words, 4, nullptr, NVSHMEM_CMP_LT, each) == 1);            \
    CHECK(nvshmem_##N##_test_some(words, 4, indices, nullptr, NVSHMEM_CMP_EQ, 9) == 0);            \
    CHECK(nvshmem_##N##_test_some_vector(words, 4, indices, nullptr, NVSHMEM_CMP_LT, each) == 1 && \
          indices[0] == 1);                                                                        \
    nvshmem_free(words);                                                                           \
  }
NVSHMEM_COMPAT_WAIT_TYPES(TEST_WAITS)

void test_waits() {
#define RUN(T, N) test_waits_##N();
  NVSHMEM_COMPAT_WAIT_TYPES(RUN)
#undef RUN
}

void test_signals() {
  auto* const signal = static_cast<std::uint64_t*>(nvshmem_calloc(1, 8));
  CHECK(nvshmem_signal_fetch(signal) == 0);
  nvshmem_barrier_all();
  nvshmemx_signal_op(signal, 40u + static_cast<unsigned>(me), NVSHMEM_SIGNAL_SET, next_pe());
  const std::uint64_t expected = 40u + static_cast<unsigned>(previous_pe());
  CHECK(nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, expected) == expected);
  CHECK(nvshmem_signal_fetch(signal) == expected);
  nvshmem_fence();
  nvshmem_barrier_all();
  nvshmem_free(signal);
}

void check_team(nvshmem_team_t team, int my_pe, int n_pes) {
  CHECK(nvshmem_team_my_pe(team) == my_pe);
  CHECK(nvshmem_team_n_pes(team) == n_pes);
}

/// The node of a PE: `shmemctl run` gives neighbours to the same one.
int node_of(int pe, int nodes) {
  return pe * nodes / n;
}
/// PEs take turns on two devices.
void test_predefined_teams(int nodes) {
  int on_my_node = 0, index = 0, same_index = 0, nodes_before = 0;
  for (int pe = 0; pe < n; ++pe) {
    on_my_node += node_of(pe, nodes) == node_of(me, nodes) ? 1 : 0;
    index += node_of(pe, nodes) == node_of(me, nodes) && pe < me ? 1 : 0;
  }
  for (int node = 0; node < nodes; ++node) {
    int pes = 0;
    for (int pe = 0; pe < n; ++pe)
      pes += node_of(pe, nodes) == node ? 1 : 0;
    same_index += pes > index ? 1 : 0;
    nodes_before += pes > index && node < node_of(me, nodes) ? 1 : 0;
  }
  check_team(NVSHMEM_TEAM_WORLD, me, n);
  check_team(NVSHMEMX_TEAM_NODE, index, on_my_node);
  check_team(NVSHMEMX_TEAM_SAME_MYPE_NODE, nodes_before, same_index);
  const int on_my_gpu = n / 2 + (me % 2 < n % 2 ? 1 : 0);
  check_team(NVSHMEMI_TEAM_SAME_GPU, me / 2, on_my_gpu);
  const int gpus = n < 2 ? n : 2;
  check_team(NVSHMEMI_TEAM_GPU_LEADERS, me < gpus ? me : -1, me < gpus ? gpus : -1);
  // Memory of the other node's GPUs is not mapped.
  check_team(NVSHMEM_TEAM_SHARED, index, on_my_node);
  CHECK((nvshmem_team_sync(NVSHMEMI_TEAM_GPU_LEADERS) == 0) == (me < gpus));
  check_team(NVSHMEM_TEAM_INVALID, -1, -1);
  check_team(1, -1, -1); // of the runtime, not of NVSHMEM
  check_team(3, -1, -1);
  CHECK(nvshmem_team_sync(NVSHMEM_TEAM_INVALID) != 0);
  CHECK(nvshmem_barrier(NVSHMEM_TEAM_INVALID) != 0);
  CHECK(nvshmem_team_sync(NVSHMEMX_TEAM_NODE) == 0);
  CHECK(nvshmem_team_sync(NVSHMEMX_TEAM_SAME_MYPE_NODE) == 0);
  CHECK(nvshmem_sync(NVSHMEM_TEAM_SHARED) == 0);
  nvshmem_sync_all();
}

void test_teams() {
  nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
  config.num_contexts = 3;
  nvshmem_team_t even = 77;
  CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, &config,
                                   NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS, &even) == 0);
  CHECK((even == NVSHMEM_TEAM_INVALID) == (me % 2 != 0));
  if (even != NVSHMEM_TEAM_INVALID) {
    CHECK(even >= NVSHMEM_TEAMS_MIN);
    check_team(even, me / 2, (n + 1) / 2);
    CHECK(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, me, even) == me / 2);
    CHECK(nvshmem_team_translate_pe(even, me / 2, NVSHMEM_TEAM_WORLD) == me);
    CHECK(nvshmem_team_translate_pe(even, (n + 1) / 2, NVSHMEM_TEAM_WORLD) == -1);
    nvshmem_team_config_t seen = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    nvshmem_team_get_config(even, &seen);
    CHECK(seen.num_contexts == 3);
    CHECK(nvshmem_barrier(even) == 0);
    nvshmem_team_destroy(even);
    check_team(even, -1, -1);
  }
  CHECK(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 0, NVSHMEM_TEAM_INVALID) == -1);
  nvshmem_team_t wrong = 77;
  CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n + 1, nullptr, 0, &wrong) != 0);
  CHECK(wrong == NVSHMEM_TEAM_INVALID);
  nvshmem_team_t x = 77, y = 77;
  CHECK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &x, nullptr, 0, &y) == 0);
  check_team(x, me % 2, me / 2 * 2 + 2 <= n ? 2 : n % 2);
  check_team(y, me / 2, (n + (me % 2 == 0 ? 1 : 0)) / 2);
  nvshmem_team_destroy(x);
  nvshmem_team_destroy(y);
  nvshmem_team_destroy(NVSHMEM_TEAM_WORLD);
  check_team(NVSHMEM_TEAM_WORLD, me, n);
  nvshmem_barrier_all();
}

/// All PEs in reverse, and all but the first, which has no part in the second.
void test_teams_by_id() {
  auto* const id =
      static_cast<nvshmemx_team_uniqueid_t*>(nvshmem_calloc(1, sizeof(nvshmemx_team_uniqueid_t)));
  nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
  const long mask = NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID;
  nvshmem_team_t team = 77;
  CHECK(nvshmemx_team_init(&team, &config, mask, n, me) != 0); // no id
  CHECK(team == NVSHMEM_TEAM_INVALID);
  for (int first = 0; first < 2 && first < n; ++first) {
    const int root = n - 1;
    if (me == root) {
      CHECK(nvshmemx_team_get_uniqueid(&config.uniqueid) == 0);
      CHECK(config.uniqueid != NVSHMEM_TEAM_UNIQUID_INITIALIZER);
      for (int pe = 0; pe < n; ++pe)
        nvshmem_uint64_put(id, &config.uniqueid, 1, pe);
    }
    nvshmem_barrier_all();
    config.uniqueid = nvshmem_uint64_g(id, me);
    nvshmem_barrier_all();
    if (me < first)
      continue;
    CHECK(nvshmemx_team_init(&team, &config, 0, n - first, root - me) != 0);
    CHECK(nvshmemx_team_init(&team, nullptr, mask, n - first, root - me) != 0);
    CHECK(nvshmemx_team_init(&team, &config, mask, n + 1, root - me) != 0);
    CHECK(nvshmemx_team_init(&team, &config, mask, n - first, n - first) != 0);
    CHECK(team == NVSHMEM_TEAM_INVALID);
    CHECK(nvshmemx_team_init(&team, &config, mask, n - first, root - me) == 0);
    CHECK(team >= NVSHMEM_TEAMS_MIN);
    check_team(team, root - me, n - first);
    for (int i = 0; i < n - first; ++i)
      CHECK(nvshmem_team_translate_pe(team, i, NVSHMEM_TEAM_WORLD) == root - i);
    CHECK(nvshmem_barrier(team) == 0);
    nvshmem_team_destroy(team);
    check_team(team, -1, -1);
  }
  nvshmem_free(id);
}

/// As the fake driver reads a CUmodule.
struct Variable {
  const char* name;
  void* address;
  std::size_t size;
};

void test_what_kernels_get() {
  static DeviceJob first, second;
  Variable module = {"nvshmemi_device_job", &first, sizeof first};
  Variable library = {"nvshmemi_device_job", &second, sizeof second};
  Variable other = {"something_else", &second, sizeof second};
  CHECK(nvshmemx_cumodule_init(reinterpret_cast<CUmodule>(&other)) != NVSHMEMX_SUCCESS);
  CHECK(nvshmemx_cumodule_init(reinterpret_cast<CUmodule>(&module)) == NVSHMEMX_SUCCESS);
  CHECK(first.pe == me && first.n_pes == n && first.all_mapped && second.heap == nullptr);
  CHECK(nvshmemx_culibrary_init(reinterpret_cast<CUlibrary>(&library)) == NVSHMEMX_SUCCESS);
  CHECK(second.heap == first.heap && second.heap_bytes == first.heap_bytes);
  CHECK(nvshmemx_culibrary_finalize(reinterpret_cast<CUlibrary>(&library)) == NVSHMEMX_SUCCESS);
  // Another module, unloaded without a call, had the handle: the job goes to the new one's
  // variable.
  static DeviceJob third;
  module.address = &third;
  CHECK(nvshmemx_cumodule_init(reinterpret_cast<CUmodule>(&module)) == NVSHMEMX_SUCCESS);
  CHECK(third.heap == first.heap);
  module.address = &first;
  CHECK(nvshmemx_cumodule_init(reinterpret_cast<CUmodule>(&module)) == NVSHMEMX_SUCCESS);
  const std::uint64_t before = first.heap_bytes;
  const char* const heap = std::getenv("SHMEMCTL_HEAP");
  if (heap && std::string(heap) == "ipc") // does not grow
    return;
  auto* const block = static_cast<std::byte*>(nvshmem_malloc(before + 1)); // the heap grows
  CHECK(block && first.heap_bytes > before && second.heap_bytes == before);
  CHECK(block >= first.heap && block + before < first.heap + first.heap_bytes);
  if (std::getenv("FAKE_CUDA_STRICT")) { // processors do not reach what follows
    nvshmem_free(block);
    nvshmemx_cumodule_finalize(reinterpret_cast<CUmodule>(&module));
    return;
  }
  const shmemctl::TeamState& world = first.teams[NVSHMEM_TEAM_WORLD];
  CHECK(world.in_use == 1 && world.n_pes == n);
  const shmemctl::TeamState& same = first.teams[NVSHMEMX_TEAM_SAME_MYPE_NODE];
  CHECK(same.in_use == 1 && same.my_pe == nvshmem_team_my_pe(NVSHMEMX_TEAM_SAME_MYPE_NODE));
  nvshmem_free(block);
  CHECK(nvshmemx_cumodule_finalize(reinterpret_cast<CUmodule>(&module)) == NVSHMEMX_SUCCESS);
}

void test_all(int nodes) {
  test_what_there_is();
  test_memory();
  test_each_type();
  test_sizes();
  test_waits();
  test_signals();
  test_predefined_teams(nodes);
  test_teams();
  test_teams_by_id();
  test_what_kernels_get();
}

/// With PEs whose memory is not mapped. There a quiet waits for kernels, too, and would launch one.
void test_over_nodes() {
  constexpr int words = 1000;
  auto* const data = static_cast<int*>(nvshmem_calloc(words, sizeof(int)));
  auto* const signals = static_cast<std::uint64_t*>(nvshmem_calloc(2, 8));
  for (int pe = 0; pe < n; ++pe)
    CHECK((nvshmem_ptr(data, pe) != nullptr) ==
          (nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe, NVSHMEM_TEAM_SHARED) >= 0));
  std::vector<int> own(words), seen(words);
  for (int i = 0; i < words; ++i)
    own[static_cast<std::size_t>(i)] = value_of<int>(me, i);
  nvshmem_int_put_signal(data, own.data(), words, signals, 5, NVSHMEM_SIGNAL_SET, next_pe());
  CHECK(nvshmem_signal_wait_until(signals, NVSHMEM_CMP_EQ, 5) == 5);
  nvshmem_int_get(seen.data(), data, words, me);
  for (int i = 0; i < words; ++i)
    CHECK(seen[static_cast<std::size_t>(i)] == value_of<int>(previous_pe(), i));
  nvshmemx_signal_op(signals + 1, 7, NVSHMEM_SIGNAL_SET, next_pe());
  CHECK(nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_GE, 1) == 7);
  nvshmem_sync_all(); // all have got theirs
  nvshmem_int_get(seen.data(), data, words, next_pe());
  CHECK(seen == own);
  CHECK(nvshmem_int_g(data + 3, next_pe()) == own[3]);
  // The first PE has no part in the team.
  nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
  config.uniqueid = 1;
  nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
  if (me > 0) {
    CHECK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, n - 1,
                             n - 1 - me) == 0);
    check_team(team, n - 1 - me, n - 1);
    CHECK(nvshmem_team_sync(team) == 0);
    nvshmem_team_destroy(team);
  }
  nvshmem_free(signals);
  nvshmem_free(data);
}

/// Without a launcher: the first process passes the id on as a file.
void start_by_id(int rank, int size, const std::string& file) {
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (rank == 0) {
    nvshmemx_get_uniqueid(&id);
    std::ofstream(file + ".new", std::ios::binary).write(reinterpret_cast<char*>(&id), sizeof id);
    std::rename((file + ".new").c_str(), file.c_str());
  }
  for (std::ifstream stream; rank != 0 && !stream.is_open();
       std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    stream.open(file, std::ios::binary);
    if (stream.is_open())
      stream.read(reinterpret_cast<char*>(&id), sizeof id);
  }
  nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_uniqueid_args(rank, size, &id, &attr);
  attr.args.cuda_device_id = (rank + 1) % 2;
  nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr);
}

/// As programs do that are not linked with Open MPI: a communicator is the address of its variable.
void* open_mpi_world() {
  void* const library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  auto* const initialise =
      library ? reinterpret_cast<int (*)(int*, char***)>(dlsym(library, "MPI_Init")) : nullptr;
  if (!initialise || initialise(nullptr, nullptr) != 0) {
    std::fputs("no libmpi.so.40\n", stderr);
    std::exit(77);
  }
  return dlsym(library, "ompi_mpi_comm_world");
}

void end_mpi() {
  void* const library = dlopen("libmpi.so.40", RTLD_NOW);
  reinterpret_cast<int (*)()>(dlsym(library, "MPI_Finalize"))();
}

void start_by_mpi() {
  static void* const world = open_mpi_world();
  nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
  attr.mpi_comm = const_cast<void**>(&world);
  nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr);
}

/// A function of the fake driver, whose contexts are its devices' numbers from 1.
template <class Function>
Function* driver_function(const char* name) {
  void* const library = dlopen(std::getenv("SHMEMCTL_CUDA_LIBRARY"), RTLD_NOW);
  const auto get = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t, void*)>(
      library ? dlsym(library, "cuGetProcAddress_v2") : nullptr);
  void* function = nullptr;
  if (!get || get(name, &function, CUDA_VERSION, 0, nullptr) != CUDA_SUCCESS)
    std::exit(77);
  return reinterpret_cast<Function*>(function);
}

void set_device(int device) {
  driver_function<CUresult(unsigned)>("cuInit")(0);
  const auto context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device + 1));
  driver_function<CUresult(CUcontext)>("cuCtxSetCurrent")(context);
}

void make_mistake(const std::string& which) {
  auto* const words = static_cast<std::uint64_t*>(nvshmem_calloc(4, 8));
  std::uint64_t value = 0;
  if (which == "pe")
    nvshmem_putmem(words, &value, 8, n);
  if (which == "address")
    nvshmem_putmem(&value, words, 8, 0);
  if (which == "dest")
    nvshmem_uint64_sum_reduce(NVSHMEM_TEAM_WORLD, nullptr, words, 1);
  if (which == "comparison")
    nvshmem_uint64_wait_until(words, 6, 1);
  if (which == "signal")
    nvshmemx_signal_op(words, 1, 8, 0);
  if (which == "root")
    nvshmemx_int_broadcast_on_stream(NVSHMEM_TEAM_WORLD, nullptr, nullptr, 1, n, nullptr);
  if (which == "stream-pe")
    nvshmemx_putmem_on_stream(words, words, 8, -1, nullptr);
  if (which == "module") {
    DeviceJob job;
    Variable module = {"nvshmemi_device_job", &job, sizeof job - 8};
    nvshmemx_cumodule_init(reinterpret_cast<CUmodule>(&module));
  }
  if (which == "device") {
    set_device((me + 1) % 2);
    nvshmem_malloc(8);
  }
  if (which == "again") {
    nvshmem_finalize();
    nvshmem_init();
  }
  if (which == "after") {
    nvshmem_finalize();
    nvshmem_my_pe();
  }
}

int run_symmetric() {
  nvshmem_init();
  void* const block = nvshmem_malloc(64);
  CHECK(nvshmemx_buffer_register_symmetric(block, 64, 0) == nullptr);
  CHECK(nvshmemx_buffer_unregister_symmetric(block, 64) != NVSHMEMX_SUCCESS);
  CHECK(nvshmemx_buffer_register(block, 64) != NVSHMEMX_SUCCESS);
  CHECK(nvshmemx_buffer_register(&me, 0) != NVSHMEMX_SUCCESS);
  CHECK(nvshmemx_buffer_unregister(block) != NVSHMEMX_SUCCESS);
  nvshmemx_buffer_unregister_all();
  nvshmem_finalize();
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "grow") { // more than NVSHMEM_SYMMETRIC_SIZE
    nvshmem_init();
    void* const block = nvshmem_malloc(std::size_t{8} << 20);
    nvshmem_free(block);
    nvshmem_finalize();
    return block != nullptr ? 0 : 7;
  }
  if (mode == "before")
    nvshmem_barrier_all();
  if (mode == "buffers")
    return run_symmetric();
  if (mode == "no-attributes")
    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, nullptr);
  if (mode == "no-communicator" || mode == "two-ways" || mode == "no-id" || mode == "foreign-id") {
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (mode == "foreign-id")
      nvshmemx_set_attr_uniqueid_args(0, 1, &id, &attr);
    nvshmemx_init_attr(mode == "no-communicator" ? NVSHMEMX_INIT_WITH_MPI_COMM
                       : mode == "two-ways" ? NVSHMEMX_INIT_WITH_UNIQUEID | NVSHMEMX_INIT_WITH_SHMEM
                                            : NVSHMEMX_INIT_WITH_UNIQUEID,
                       &attr);
  }
  if (nvshmemx_init_status() != NVSHMEM_STATUS_NOT_INITIALIZED)
    return 1;
  if (mode == "uid") {
    start_by_id(std::atoi(argv[2]), std::atoi(argv[3]), argv[4]);
  } else if (mode == "current") {
    set_device(1);
    nvshmem_init();
  } else if (mode == "mpi") {
    start_by_mpi();
  } else if (mode == "openshmem") {
    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_SHMEM, nullptr);
  } else if (mode == "level") {
    int provided = -1;
    if (nvshmem_init_thread(4, &provided) == 0 ||
        nvshmem_init_thread(NVSHMEM_THREAD_MULTIPLE, &provided) != 0)
      return 1;
    CHECK(provided == NVSHMEM_THREAD_MULTIPLE);
  } else {
    nvshmem_init();
  }
  me = nvshmem_my_pe();
  n = nvshmem_n_pes();
  if (mode == "current") {
    CHECK(nvshmem_team_n_pes(NVSHMEMI_TEAM_SAME_GPU) == n); // not by turns
    CHECK(nvshmem_malloc(8) != nullptr);
  } else if (mode == "mpi" || mode == "openshmem") {
    CHECK(n == std::atoi(argv[2]));
    test_signals();
  } else if (mode == "uid") {
    // The device that each names is the other one than by turns.
    CHECK(me == std::atoi(argv[2]) && n == std::atoi(argv[3]));
    check_team(NVSHMEMI_TEAM_SAME_GPU, me / 2, n / 2 + (me % 2 < n % 2 ? 1 : 0));
    test_signals();
  } else if (mode == "nodes") {
    test_predefined_teams(std::atoi(argv[2]));
    test_over_nodes();
  } else if (!mode.empty() && mode != "level") {
    make_mistake(mode);
    return 0;
  } else if (mode.empty()) {
    nvshmemx_hostlib_init_attr(0, nullptr); // nested
    nvshmemx_hostlib_finalize();
    test_all(1);
  }
  nvshmem_finalize();
  if (mode == "mpi")
    end_mpi();
  return 0;
}
