// What NVSHMEM's device API takes on the same GPUs, for scripts/compare_gpu.py: one line of JSON
// for each figure, by PE 0. Arguments: PE, number of PEs, a file for the unique id, seconds for
// each, and the groups of figures that are wanted.
//
// Launches are those of `shmemctl bench --initiator gpu`: 32 x 1024 threads for bandwidth, one
// thread, warp or block for latencies; messages follow each other without waiting and one quiet
// ends them. Figures of one pair are those of PE 0 and 1; where all send, PEs do so in pairs of
// neighbours. Times inside of kernels are the GPU's global timer's, those of grids and streams are
// events'. Each figure says what was compared behind it, at every PE that received.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include "nvshmem_kernels.cuh"

namespace {

constexpr int blocks = 32;
constexpr int runs = 7; ///< the first is left out

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

struct Job {
  int pe, n_pes;
  double seconds;
  char *source, *target;
  std::uint64_t* flag;
  std::uint64_t* ns; ///< of the host, mapped
  cudaStream_t stream;
  std::uint64_t number = 1;
};

/// @param compared in words; "": nothing
void print(const Job& job, const char* name, std::size_t size, double value, const char* unit,
           const char* compared = "") {
  if (job.pe == 0)
    std::printf("{\"name\": \"%s\", \"size_bytes\": %zu, \"value\": %.6g, \"unit\": \"%s\", "
                "\"compared\": \"%s\"}\n",
                name, size, value, unit, compared);
  std::fflush(stdout);
}

/// Whom a PE exchanges with; -1: the last one of an odd number has nobody.
int partner_of(const Job& job) {
  const int partner = job.pe ^ 1;
  return partner < job.n_pes ? partner : -1;
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Milliseconds of what `enqueue` puts into the stream, on this PE, behind a barrier.
template <class Enqueue>
float time_of(Job& job, const Enqueue& enqueue) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  nvshmem_barrier_all();
  require(cudaEventRecord(begin, job.stream), "record");
  enqueue();
  require(cudaEventRecord(end, job.stream), "record");
  require(cudaStreamSynchronize(job.stream), "kernel");
  float ms = 0;
  require(cudaEventElapsedTime(&ms, begin, end), "time");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  nvshmem_barrier_all();
  return ms;
}

/// Bytes [from, from + size) of a PE's source.
std::vector<unsigned char> source_of(int writer, std::size_t from, std::size_t size) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t at = from + i;
    bytes[i] = static_cast<unsigned char>((at * 31 + at / 251 + 7 * (writer + 1)) & 0xff);
  }
  return bytes;
}

/// What must be at `offset` of this PE's target.
void check(const Job& job, std::size_t offset, std::size_t size, int writer, std::size_t from) {
  std::vector<unsigned char> seen(size);
  require(cudaMemcpy(seen.data(), job.target + offset, size, cudaMemcpyDeviceToHost), "copy");
  const std::vector<unsigned char> expected = source_of(writer, from, size);
  const auto wrong = std::mismatch(seen.begin(), seen.end(), expected.begin()).first;
  if (wrong != seen.end()) {
    std::fprintf(stderr, "PE %d: wrong byte at %zu of %zu from PE %d\n", job.pe,
                 static_cast<std::size_t>(wrong - seen.begin()), size, writer);
    std::exit(1);
  }
}

/// @param both PEs in pairs put to each other
void bandwidth(Job& job, const char* name, std::size_t size, bool gets, int ctas, bool both) {
  require(cudaMemset(job.target, 0, size), "memset");
  nvshmem_barrier_all();
  // The same number on all PEs: from a guess of 400 GB/s.
  const int times = static_cast<int>(
      std::max(8.0, std::min(job.seconds / 8 * 400e9 / static_cast<double>(size), 1e5)));
  std::vector<double> rates;
  const int partner = partner_of(job);
  for (int run = 0; run < runs; ++run) {
    const int moves = run == 0 ? 8 : times;
    const float ms = time_of(job, [&] {
      if (job.pe == 0 || (both && partner >= 0))
        move<<<ctas, threads, 0, job.stream>>>(job.target, job.source, size, partner, moves, gets);
    });
    if (run > 0)
      rates.push_back(static_cast<double>(size) * moves / ms / 1e6);
  }
  if (both ? partner >= 0 : job.pe == (gets ? 0 : 1))
    check(job, 0, size, partner, 0);
  nvshmem_barrier_all();
  print(job, name, size, median_of(rates), "GB/s", "every byte of the first place of the messages");
}

int times_of(std::size_t size) {
  return size < std::size_t{1} << 20 ? 1000 : 100;
}

/// Inside of one kernel, of one thread, warp or block.
void latency(Job& job, const std::string& name, Call call, Scope scope, std::size_t size,
             int block = block_threads, int times = 2000, const char* compared = "") {
  const bool answered = call == Call::signal || call == Call::put_signal;
  const bool takes_part = call >= Call::barrier || job.pe < 2;
  Calls a{call,        scope,      job.target, job.source, job.flag, size, partner_of(job),
          job.pe == 0, takes_part, 0,          times,      job.ns};
  std::vector<double> each;
  for (int run = 0; run < runs; ++run) {
    a.first = job.number;
    void* arguments[] = {&a};
    const void* const kernel =
        scope == Scope::thread ? reinterpret_cast<const void*>(calls<Scope::thread>)
        : scope == Scope::warp ? reinterpret_cast<const void*>(calls<Scope::warp>)
                               : reinterpret_cast<const void*>(calls<Scope::block>);
    const int count = scope == Scope::thread ? 1 : scope == Scope::warp ? 32 : block;
    if (nvshmemx_collective_launch(kernel, dim3(1), dim3(count), arguments, 0, job.stream) != 0) {
      std::fprintf(stderr, "launch failed\n");
      std::exit(1);
    }
    require(cudaStreamSynchronize(job.stream), "kernel");
    job.number += static_cast<std::uint64_t>(a.times);
    if (run > 0)
      each.push_back(static_cast<double>(*job.ns) * 1e-3 / a.times / (answered ? 2 : 1));
    nvshmem_barrier_all();
  }
  print(job, name.c_str(), size, median_of(each), "us", compared);
}

/// Calls one after the other in the stream, launches included.
template <class Enqueue>
void on_stream(Job& job, const char* name, std::size_t size, const Enqueue& enqueue, int times,
               const char* compared = "") {
  std::vector<double> each;
  for (int run = 0; run < runs; ++run) {
    const float ms = time_of(job, [&] {
      for (int i = 0; i < times; ++i)
        enqueue();
    });
    if (run > 0)
      each.push_back(static_cast<double>(ms) * 1e3 / times);
  }
  print(job, name, size, median_of(each), "us", compared);
}

constexpr std::size_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;

void bandwidths(Job& job) {
  for (const std::size_t size : {64 * kib, mib, 16 * mib, largest}) {
    bandwidth(job, "put", size, false, blocks, false);
    bandwidth(job, "get", size, true, blocks, false);
  }
}

void latencies(Job& job, Scope scope, const std::string& suffix) {
  latency(job, "put-latency" + suffix, Call::put, scope, 8);
  latency(job, "get-latency" + suffix, Call::get, scope, 8);
  latency(job, "put-signal-pingpong" + suffix, Call::put_signal, scope, 8);
  latency(job, "barrier" + suffix, Call::barrier, scope, 0);
  if (scope != Scope::thread)
    return;
  latency(job, "p", Call::p, scope, 8);
  latency(job, "g", Call::g, scope, 8);
  latency(job, "atomic-fetch-add", Call::fetch_add, scope, 8);
  latency(job, "atomic-add", Call::add, scope, 8);
  latency(job, "signal-pingpong", Call::signal, scope, 0);
}

void collectives(Job& job) {
  for (const std::size_t size : {8 * kib, mib, 8 * mib}) {
    latency(job, "fcollect/kernel", Call::fcollect, Scope::block, size, collective_threads);
    latency(job, "alltoall/kernel", Call::alltoall, Scope::block, size, collective_threads);
  }
}

void streams(Job& job) {
  on_stream(
      job, "barrier/stream", 0, [&] { nvshmemx_barrier_all_on_stream(job.stream); }, times_of(0));
  for (const std::size_t size : {8 * kib, mib, 8 * mib}) {
    auto* const target = reinterpret_cast<float*>(job.target);
    const auto* const source = reinterpret_cast<const float*>(job.source);
    on_stream(
        job, "fcollect", size,
        [&] {
          nvshmemx_float_fcollect_on_stream(NVSHMEM_TEAM_WORLD, target, source,
                                            size / sizeof(float), job.stream);
        },
        times_of(size));
    on_stream(
        job, "alltoall", size,
        [&] {
          nvshmemx_float_alltoall_on_stream(NVSHMEM_TEAM_WORLD, target, source,
                                            size / sizeof(float), job.stream);
        },
        times_of(size));
  }
}

/// Behind an exchange: a block of each PE, which has cleared the target before.
void check_blocks(const Job& job, std::size_t size) {
  for (int writer = 0; writer < job.n_pes; ++writer)
    check(job, static_cast<std::size_t>(writer) * size, size, writer,
          static_cast<std::size_t>(job.pe) * size);
}
void clear(Job& job, std::size_t size) {
  require(cudaMemset(job.target, 0, size), "memset");
  nvshmem_barrier_all();
}

/// Of 1 MiB, 64 MiB and 1 GiB of each PE.
void exchange(Job& job) {
  const char* const compared = "every byte of the last exchange";
  for (const std::size_t of_a_pe : {mib, 64 * mib, gib}) {
    const std::size_t size = of_a_pe / static_cast<std::size_t>(job.n_pes) / 256 * 256;
    const int times =
        static_cast<int>(std::max<std::size_t>(3, std::min<std::size_t>(1000, gib / of_a_pe * 3)));
    auto* const target = reinterpret_cast<float*>(job.target);
    const auto* const source = reinterpret_cast<const float*>(job.source);
    clear(job, of_a_pe);
    on_stream(
        job, "alltoall/stream", size,
        [&] {
          nvshmemx_float_alltoall_on_stream(NVSHMEM_TEAM_WORLD, target, source,
                                            size / sizeof(float), job.stream);
        },
        times, compared);
    check_blocks(job, size);
    clear(job, of_a_pe);
    latency(job, "alltoall/kernel", Call::alltoall, Scope::block, size, collective_threads, times,
            compared);
    check_blocks(job, size);
  }
}

void sweep(Job& job) {
  bandwidth(job, "put/132", largest, false, 132, false);
  for (const int ctas : {4, 8, 12, 16, 24, 32})
    bandwidth(job, ("put-both/" + std::to_string(ctas)).c_str(), largest, false, ctas, true);
}

void bring_up(int pe, int n_pes, const std::string& file) {
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (pe == 0) {
    if (nvshmemx_get_uniqueid(&id) != 0)
      std::exit(1);
    std::ofstream(file + ".part", std::ios::binary)
        .write(reinterpret_cast<const char*>(&id), sizeof id);
    std::rename((file + ".part").c_str(), file.c_str());
  } else {
    for (int tries = 0; tries < 6000; ++tries) { // a minute
      std::ifstream in(file, std::ios::binary);
      if (in.read(reinterpret_cast<char*>(&id), sizeof id))
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_uniqueid_args(pe, n_pes, &id, &attributes);
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0)
    std::exit(1);
}

} // namespace

int main(int count, char** words) {
  if (count < 5)
    return 2;
  Job job{};
  job.pe = std::atoi(words[1]);
  job.n_pes = std::atoi(words[2]);
  job.seconds = std::atof(words[4]);
  job.number = 1;
  require(cudaSetDevice(job.pe), "cudaSetDevice");
  bring_up(job.pe, job.n_pes, words[3]);
  require(cudaStreamCreateWithFlags(&job.stream, cudaStreamNonBlocking), "stream");
  const bool exchanges =
      std::find(words + 5, words + count, std::string("exchange")) != words + count;
  const std::size_t buffer = exchanges ? gib : largest;
  job.source = static_cast<char*>(nvshmem_malloc(buffer));
  job.target = static_cast<char*>(nvshmem_malloc(buffer));
  job.flag = static_cast<std::uint64_t*>(nvshmem_calloc(2, sizeof(std::uint64_t)));
  require(cudaHostAlloc(reinterpret_cast<void**>(&job.ns), sizeof *job.ns, cudaHostAllocMapped),
          "host memory");
  if (!job.source || !job.target || !job.flag)
    return 1;
  const std::vector<unsigned char> data = source_of(job.pe, 0, buffer);
  require(cudaMemcpy(job.source, data.data(), buffer, cudaMemcpyHostToDevice), "copy");

  if (job.pe == 0)
    std::printf("{\"version\": \"%d.%d.%d\"}\n", NVSHMEM_VENDOR_MAJOR_VERSION,
                NVSHMEM_VENDOR_MINOR_VERSION, NVSHMEM_VENDOR_PATCH_VERSION);
  for (int i = 5; i < count; ++i) {
    const std::string group = words[i];
    if (group == "bandwidth")
      bandwidths(job);
    else if (group == "latency")
      latencies(job, Scope::thread, "");
    else if (group == "warp")
      latencies(job, Scope::warp, "/warp");
    else if (group == "block")
      latencies(job, Scope::block, "/block");
    else if (group == "stream")
      streams(job);
    else if (group == "kernel")
      collectives(job);
    else if (group == "sweep")
      sweep(job);
    else if (group == "exchange")
      exchange(job);
    else
      return 2;
  }
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
