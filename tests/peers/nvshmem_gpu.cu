// What NVSHMEM's device API takes on the same GPUs, for scripts/compare_gpu.py: one line of JSON
// for each figure, by PE 0. Arguments: PE, number of PEs, a file for the unique id, seconds for
// each.
//
// Launches are those of `shmemctl bench --initiator gpu`: 32 x 1024 threads for bandwidth, one
// thread for latencies; messages follow each other without waiting and one quiet ends them. Times
// of one thread are the GPU's global timer's, inside of the kernel; those of grids are events'.
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

namespace {

constexpr int blocks = 32, threads = 1024;
constexpr std::size_t largest = std::size_t{64} << 20;

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void move(char* target, const char* source, std::size_t size, int peer, int times,
                     bool gets) {
  const std::size_t each = size / gridDim.x, at = each * blockIdx.x;
  for (int i = 0; i < times; ++i) {
    if (gets)
      nvshmemx_getmem_nbi_block(target + at, source + at, each, peer);
    else
      nvshmemx_putmem_nbi_block(target + at, source + at, each, peer);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    nvshmem_quiet();
}

enum class Call : int { put, get, signal, put_signal, barrier };

/// `times` calls, whose time goes to *ns. Flags hold numbers from `first` on.
__global__ void calls(Call call, char* target, const char* source, std::uint64_t* flag, int peer,
                      bool asks, std::uint64_t first, int times, std::uint64_t* ns) {
  nvshmem_barrier_all();
  const std::uint64_t begin = now_ns();
  for (int i = 0; i < times; ++i) {
    const std::uint64_t number = first + i;
    if (call == Call::barrier) {
      nvshmem_barrier_all();
    } else if (call == Call::put || call == Call::get) {
      if (!asks)
        continue;
      if (call == Call::put)
        nvshmem_putmem_nbi(target, source, 8, peer);
      else
        nvshmem_getmem_nbi(target, source, 8, peer);
      nvshmem_quiet();
    } else {
      if (!asks)
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, number);
      if (call == Call::signal)
        nvshmemx_signal_op(flag, number, NVSHMEM_SIGNAL_SET, peer);
      else
        nvshmem_putmem_signal_nbi(target, source, 8, flag, number, NVSHMEM_SIGNAL_SET, peer);
      if (asks)
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, number);
    }
  }
  *ns = now_ns() - begin;
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

void print(const Job& job, const char* name, std::size_t size, double value, const char* unit) {
  if (job.pe == 0)
    std::printf("{\"name\": \"%s\", \"size_bytes\": %zu, \"value\": %.6g, \"unit\": \"%s\"}\n",
                name, size, value, unit);
  std::fflush(stdout);
}

/// Milliseconds of `times` messages.
float time_of_moves(Job& job, std::size_t size, int times, bool gets) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  nvshmem_barrier_all();
  require(cudaEventRecord(begin, job.stream), "record");
  if (job.pe == 0)
    move<<<blocks, threads, 0, job.stream>>>(job.target, job.source, size, 1, times, gets);
  require(cudaEventRecord(end, job.stream), "record");
  require(cudaStreamSynchronize(job.stream), "kernel");
  float ms = 0;
  require(cudaEventElapsedTime(&ms, begin, end), "time");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  nvshmem_barrier_all();
  return ms;
}

/// What must be in the target of PE `at` behind a put or get.
void check(const Job& job, std::size_t size, int at, int writer) {
  if (job.pe != at)
    return;
  std::vector<unsigned char> seen(size);
  require(cudaMemcpy(seen.data(), job.target, size, cudaMemcpyDeviceToHost), "copy");
  for (std::size_t i = 0; i < size; ++i)
    if (seen[i] != static_cast<unsigned char>((i * 31 + i / 251 + 7 * (writer + 1)) & 0xff)) {
      std::fprintf(stderr, "wrong byte at %zu of %zu\n", i, size);
      std::exit(1);
    }
}

void bandwidth(Job& job, std::size_t size, bool gets) {
  require(cudaMemset(job.target, 0, size), "memset");
  nvshmem_barrier_all();
  // The same number on all PEs: from a guess of 400 GB/s.
  const int times = static_cast<int>(
      std::max(8.0, std::min(job.seconds / 8 * 400e9 / static_cast<double>(size), 1e5)));
  std::vector<double> rates;
  for (int run = 0; run < 7; ++run) {
    const float ms = time_of_moves(job, size, run == 0 ? 8 : times, gets);
    if (run > 0)
      rates.push_back(static_cast<double>(size) * times / ms / 1e6);
  }
  check(job, size, gets ? 0 : 1, gets ? 1 : 0);
  nvshmem_barrier_all();
  std::nth_element(rates.begin(), rates.begin() + 3, rates.end());
  print(job, gets ? "get" : "put", size, rates[3], "GB/s");
}

/// Of one thread.
void latency(Job& job, const char* name, Call call, double divisor, std::size_t size) {
  int times = 2000;
  std::vector<double> each;
  for (int run = 0; run < 7; ++run) {
    int peer = 1 - job.pe;
    bool asks = job.pe == 0;
    void* arguments[] = {&call, &job.target, &job.source, &job.flag, &peer,
                         &asks, &job.number, &times,      &job.ns};
    if (nvshmemx_collective_launch(reinterpret_cast<const void*>(calls), dim3(1), dim3(1),
                                   arguments, 0, job.stream) != 0) {
      std::fprintf(stderr, "launch failed\n");
      std::exit(1);
    }
    require(cudaStreamSynchronize(job.stream), "kernel");
    job.number += static_cast<std::uint64_t>(times);
    if (run > 0)
      each.push_back(static_cast<double>(*job.ns) * 1e-3 / times / divisor);
    nvshmem_barrier_all();
  }
  std::nth_element(each.begin(), each.begin() + 3, each.end());
  print(job, name, size, each[3], "us");
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
  job.source = static_cast<char*>(nvshmem_malloc(largest));
  job.target = static_cast<char*>(nvshmem_malloc(largest));
  job.flag = static_cast<std::uint64_t*>(nvshmem_calloc(1, sizeof(std::uint64_t)));
  require(cudaHostAlloc(reinterpret_cast<void**>(&job.ns), sizeof *job.ns, cudaHostAllocMapped),
          "host memory");
  if (!job.source || !job.target || !job.flag)
    return 1;
  std::vector<unsigned char> data(largest);
  for (std::size_t i = 0; i < largest; ++i)
    data[i] = static_cast<unsigned char>((i * 31 + i / 251 + 7 * (job.pe + 1)) & 0xff);
  require(cudaMemcpy(job.source, data.data(), largest, cudaMemcpyHostToDevice), "copy");

  if (job.pe == 0)
    std::printf("{\"version\": \"%d.%d.%d\"}\n", NVSHMEM_VENDOR_MAJOR_VERSION,
                NVSHMEM_VENDOR_MINOR_VERSION, NVSHMEM_VENDOR_PATCH_VERSION);
  for (const std::size_t size :
       {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{16} << 20, largest}) {
    bandwidth(job, size, false);
    bandwidth(job, size, true);
  }
  latency(job, "put-latency", Call::put, 1, 8);
  latency(job, "get-latency", Call::get, 1, 8);
  latency(job, "signal-pingpong", Call::signal, 2, 0);
  latency(job, "put-signal-pingpong", Call::put_signal, 2, 8);
  latency(job, "barrier", Call::barrier, 1, 0);
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
