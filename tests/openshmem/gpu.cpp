// What programs with GPUs ask of the host, over a fake CUDA driver, whose GPUs run no kernels: a
// kernel is looked at by what it would be given. Silent, exit status 0. Other words as its argument
// make the mistake of that name.
#include <cstring>
#include <string>

#include "check.h"
#include <shmemctl/device/src/abi/device_job.h>
#include <shmemx.h>

using shmemctl::DeviceJob;

namespace {

int me, n;

DeviceJob current_job() {
  DeviceJob job;
  shmemx_gpu_job(&job, sizeof job);
  return job;
}

void test_what_there_is() {
  CHECK(shmemx_gpu_device() == me % 2);
  CHECK(shmemx_gpu_why_not() == nullptr);
  CHECK(std::string(shmemx_gpu_path(me)) == "its own memory");
  CHECK(shmemx_gpu_stream() != nullptr);
  shmemx_gpu_wait(shmemx_gpu_stream());
  shmemx_gpu_check();
}

void test_memory() {
  CHECK(shmemx_gpu_malloc(0) == nullptr);
  CHECK(shmemx_gpu_align(24, 8) == nullptr);
  CHECK(shmemx_gpu_calloc(std::size_t{1} << 60, 64) == nullptr);
  shmemx_gpu_free(nullptr);
  auto* aligned = static_cast<char*>(shmemx_gpu_align(4096, 100));
  CHECK(aligned != nullptr && reinterpret_cast<std::uintptr_t>(aligned) % 4096 == 0);
  shmemx_gpu_free(aligned);
  const std::uint64_t noise[64] = {1, 2, 3};
  auto* used = static_cast<std::uint64_t*>(shmemx_gpu_malloc(sizeof noise));
  shmem_putmem(used, noise, sizeof noise, me);
  shmem_quiet();
  shmemx_gpu_free(used);
  auto* zeros = static_cast<std::uint64_t*>(shmemx_gpu_calloc(64, 8));
  CHECK(zeros == used);
  std::uint64_t seen[64];
  shmem_getmem(seen, zeros, sizeof seen, me);
  for (const std::uint64_t word : seen)
    CHECK(word == 0);
  shmemx_gpu_free(zeros);
}

void test_the_host_reaches_it() {
  auto* words = static_cast<std::uint64_t*>(shmemx_gpu_calloc(4, 8));
  const int next = (me + 1) % n, previous = (me + n - 1) % n;
  const std::uint64_t payload[2] = {100u + static_cast<unsigned>(me), 7};
  shmem_putmem_signal(words, payload, sizeof payload, words + 3, 5, SHMEM_SIGNAL_SET, next);
  shmem_barrier_all();
  std::uint64_t seen[4];
  shmem_getmem(seen, words, sizeof seen, me);
  CHECK(seen[0] == 100u + static_cast<unsigned>(previous) && seen[1] == 7 && seen[3] == 5);
  CHECK(shmemx_gpu_ptr(words, me) == words);
  // There the fake driver's memory is the same, and processors reach it.
  const auto* theirs = static_cast<std::uint64_t*>(shmemx_gpu_ptr(words, next));
  CHECK(theirs != nullptr && theirs[0] == 100u + static_cast<unsigned>(me));
  CHECK(shmemx_gpu_ptr(&next, next) == nullptr);
  shmem_barrier_all();
  shmemx_gpu_free(words);
}

void test_what_kernels_get() {
  auto* block = static_cast<std::byte*>(shmemx_gpu_malloc(1 << 20));
  const DeviceJob job = current_job();
  CHECK(job.pe == me && job.n_pes == n);
  CHECK(block >= job.heap && block + (1 << 20) <= job.heap + job.heap_bytes);
  CHECK(job.report != nullptr && job.cells != nullptr && job.all_mapped);
  // Patient, as the host's waits of a program are, unless it is told not to be.
  const char* seconds = std::getenv("SHMEMCTL_TIMEOUT");
  CHECK(job.timeout_ns == (seconds ? std::stoull(seconds) : 86400u) * 1000000000u);
  const char* checked = std::getenv("SHMEMCTL_CHECK");
  CHECK(job.checked == (checked && *checked == '1' ? 1u : 0u));
  CHECK((job.pending != nullptr) == (job.checked != 0));
  CHECK(job.teams[0].in_use == 1);
  shmem_team_t even;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, nullptr, 0, &even);
  CHECK((even == SHMEM_TEAM_INVALID) == (me % 2 != 0));
  CHECK(shmemx_gpu_team(SHMEM_TEAM_WORLD) == 0);
  if (even != SHMEM_TEAM_INVALID) {
    const shmemctl::TeamState& state = current_job().teams[shmemx_gpu_team(even)];
    CHECK(state.in_use == 1 && state.n_pes == (n + 1) / 2);
    shmem_team_destroy(even);
  }
  shmem_barrier_all();
  shmemx_gpu_free(block);
}

/// PE 1's kernel reports that it has waited too long, and the program notices nothing of its own.
void report_a_wait() {
  if (me == 1) {
    shmemctl::WaitReport& report = *current_job().report;
    report.peer = 0;
    report.block = 6;
    report.expected = 12;
    report.seen = 11;
    report.offset_bytes = 4096;
    report.kind = shmemctl::WaitKind::word;
    __atomic_store_n(&report.state, shmemctl::WaitReport::written, __ATOMIC_RELEASE);
  }
  for (volatile bool ever = true; ever;) {
  }
}

void make_mistake(const std::string& which) {
  DeviceJob job;
  if (which == "size")
    shmemx_gpu_job(&job, sizeof job - 8);
  if (which == "team")
    shmemx_gpu_team(SHMEM_TEAM_INVALID);
  if (which == "pe")
    shmemx_gpu_path(n);
  if (which == "root")
    shmemx_broadcastmem_on_stream(SHMEM_TEAM_WORLD, nullptr, nullptr, 8, n, nullptr);
  if (which == "type")
    shmemx_reduce_on_stream(SHMEM_TEAM_WORLD, nullptr, nullptr, 8, static_cast<shmemx_type_t>(12),
                            SHMEMX_SUM, nullptr);
  if (which == "operator")
    shmemx_reduce_on_stream(SHMEM_TEAM_WORLD, nullptr, nullptr, 8, SHMEMX_UINT64,
                            static_cast<shmemx_op_t>(7), nullptr);
  if (which == "bits")
    shmemx_reducescatter_on_stream(SHMEM_TEAM_WORLD, nullptr, nullptr, 8, SHMEMX_HALF, SHMEMX_XOR,
                                   nullptr);
  if (which == "comparison")
    shmemx_signal_wait_until_on_stream(nullptr, 0, 1, nullptr);
  if (which == "wait")
    report_a_wait();
}

/// A job that goes on without GPUs; uses them all the same if it is told to.
int run_without(bool use) {
  const shmemx_gpu_init_t wanted = {SHMEM_THREAD_MULTIPLE, SHMEMX_GPU_BY_TURNS, 1};
  CHECK(shmemx_gpu_init(&wanted) != 0);
  CHECK(shmemx_gpu_device() == -1);
  int level = 0;
  shmem_query_thread(&level);
  CHECK(level == SHMEM_THREAD_MULTIPLE);
  if (shmem_my_pe() == 0)
    std::puts(shmemx_gpu_why_not());
  if (use)
    shmemx_gpu_malloc(8);
  shmem_finalize();
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "optional" || mode == "used")
    return run_without(mode == "used");
  if (mode == "plain") {
    shmem_init();
    shmemx_gpu_malloc(8);
  }
  shmemx_gpu_init_t wanted = SHMEMX_GPU_INIT;
  if (mode.rfind("device", 0) == 0)
    wanted.device = std::atoi(argv[2]);
  if (mode == "level")
    wanted.thread_level = 4;
  CHECK(shmemx_gpu_init(mode.empty() ? nullptr : &wanted) == 0);
  me = shmem_my_pe();
  n = shmem_n_pes();
  if (mode == "device") {
    CHECK(shmemx_gpu_device() == wanted.device);
  } else if (!mode.empty()) {
    make_mistake(mode);
    return 0;
  } else {
    test_what_there_is();
    test_memory();
    test_the_host_reaches_it();
    test_what_kernels_get();
  }
  shmem_finalize();
  return 0;
}
