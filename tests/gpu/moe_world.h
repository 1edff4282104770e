// PEs as threads of one process, each with a GPU in turn and a heap of device memory: kernels of
// PEs that share a GPU run on it at the same time, which those of several processes do not.
#pragma once

#include <cstdlib>
#include <cuda_runtime.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/abi/device_job.h"
#include "tests/gpu/share.h"

namespace shmemctl::test {

inline void cuda_must(cudaError_t result, const std::string& what) {
  if (result != cudaSuccess)
    throw std::runtime_error(what + ": " + cudaGetErrorString(result));
}
inline void launch_must(const std::string& failure) {
  if (!failure.empty())
    throw std::runtime_error("launch: " + failure);
}

/// Memory of a GPU that goes with the object.
template <class T>
class GpuArray {
public:
  explicit GpuArray(std::size_t count) : count_(count) {
    cuda_must(cudaMalloc(&data_, std::max<std::size_t>(count, 1) * sizeof(T)), "cudaMalloc");
    cuda_must(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
    cuda_must(cudaDeviceSynchronize(), "cudaMemset");
  }
  explicit GpuArray(const std::vector<T>& values) : GpuArray(values.size()) {
    cuda_must(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyDefault), "copy");
    cuda_must(cudaDeviceSynchronize(), "copy");
  }
  ~GpuArray() { cudaFree(data_); }
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;
  T* data() const { return data_; }
  std::size_t count() const { return count_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    cuda_must(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDefault), "copy");
    return values;
  }

private:
  T* data_ = nullptr;
  std::size_t count_;
};

class ThreadGpus;

/// PEs of one process on one GPU: a kernel that waits must not be before the one it waits for,
/// and of CUDA's 8 queues streams share some. Set before the driver starts.
inline const bool queues_for_all_streams = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) == 0;

/// One PE, in its thread.
class ThreadGpu {
public:
  ThreadGpu(ThreadGpus& all, int pe) : all_(all), pe_(pe) {}
  ~ThreadGpu() {
    if (stream != nullptr)
      cudaStreamDestroy(stream);
    if (report_ != nullptr)
      cudaFreeHost(report_);
  }
  ThreadGpu(const ThreadGpu&) = delete;
  ThreadGpu& operator=(const ThreadGpu&) = delete;

  void open(std::size_t heap_bytes, double wait_s);
  /// Barrier of the threads; throws if another one has failed.
  void barrier();
  /// Of a PE that takes no part any more: until all others have ended. To free memory waits for the
  /// kernels on the GPU, and what others launch there waits for it.
  void wait_for_others();
  /// Waits for the stream; throws what it failed with, and what a wait has reported.
  void synchronize() {
    cuda_must(cudaStreamSynchronize(stream), "kernel");
    if (report_->state == WaitReport::written)
      throw std::runtime_error("PE " + std::to_string(pe_) + " waited for PE " +
                               std::to_string(report_->peer) + ": expected " +
                               std::to_string(report_->expected) + ", saw " +
                               std::to_string(report_->seen));
  }
  WaitReport& report() { return *report_; }
  /// The next piece of the heap, at the same offset on every PE if all take the same sizes.
  std::byte* take(std::size_t size_bytes) {
    std::byte* const at = job.heap + taken_;
    taken_ += (size_bytes + 255) / 256 * 256;
    if (taken_ > job.heap_bytes)
      throw std::runtime_error("the heap is too small");
    return at;
  }
  /// Where another PE's heap is mapped here.
  std::byte* heap_of(int pe) const;
  int device() const;
  /// PEs that share this one's GPU, at most.
  int device_share() const;

  DeviceJob job{};
  cudaStream_t stream = nullptr;

private:
  ThreadGpus& all_;
  int pe_;
  std::size_t taken_ = 0;
  std::unique_ptr<GpuArray<std::byte>> heap_;
  std::unique_ptr<GpuArray<std::int64_t>> deltas_;
  WaitReport* report_ = nullptr;
};

class ThreadGpus {
public:
  explicit ThreadGpus(int n_pes) : heaps(static_cast<std::size_t>(n_pes)), n_pes_(n_pes) {
    cuda_must(cudaGetDeviceCount(&n_devices_), "cudaGetDeviceCount");
  }
  ThreadGpus(const ThreadGpus&) = delete;
  ThreadGpus& operator=(const ThreadGpus&) = delete;

  /// Runs `body` for each PE. Returns what they threw.
  std::string run(std::size_t heap_bytes, const std::function<void(ThreadGpu&)>& body,
                  double wait_s = is_reduced() ? 60 : 5) {
    std::vector<std::thread> threads;
    std::string said;
    for (int pe = 0; pe < n_pes_; ++pe)
      threads.emplace_back([&, pe] {
        const auto failed = [&](const std::exception& error) {
          const std::lock_guard lock(mutex_);
          said += std::string(error.what()) + "\n";
          failed_ = true;
          changed_.notify_all();
        };
        ThreadGpu me(*this, pe);
        try {
          cuda_must(cudaSetDevice(pe % n_devices_), "cudaSetDevice");
          me.open(heap_bytes, wait_s);
          body(me);
        } catch (const std::exception& error) {
          failed(error);
        }
        if (me.stream != nullptr)
          cudaStreamSynchronize(me.stream);
        wait_for_the_end(); // memory must not be unmapped while another PE uses it
      });
    for (std::thread& thread : threads)
      thread.join();
    return said;
  }
  /// All have come; throws if one has failed.
  void meet() {
    std::unique_lock lock(mutex_);
    const std::uint64_t meeting = meetings_;
    if (++here_ == n_pes_) {
      here_ = 0;
      ++meetings_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return meetings_ != meeting || failed_; });
    if (meetings_ == meeting)
      throw std::runtime_error("another PE has failed");
  }

  void wait_for_others() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ == n_pes_ - 1; });
  }

  std::vector<std::byte*> heaps;
  int n_pes() const { return n_pes_; }
  int n_devices() const { return n_devices_; }
  /// Lets the caller's GPU reach all others, once in this process.
  void open_peers(int device) {
    static std::mutex mutex;
    static std::set<int> open;
    const std::lock_guard lock(mutex);
    if (!open.insert(device).second)
      return;
    for (int other = 0; other < n_devices_; ++other)
      if (other != device)
        cuda_must(cudaDeviceEnablePeerAccess(other, 0), "peer access");
  }

private:
  void wait_for_the_end() {
    std::unique_lock lock(mutex_);
    ++ended_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ended_ == n_pes_; });
  }

  int n_pes_, n_devices_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0, ended_ = 0;
  std::uint64_t meetings_ = 0;
  bool failed_ = false;
};

inline std::byte* ThreadGpu::heap_of(int pe) const {
  return all_.heaps[static_cast<std::size_t>(pe)];
}
inline int ThreadGpu::device() const {
  return pe_ % all_.n_devices();
}
inline int ThreadGpu::device_share() const {
  return (all_.n_pes() + all_.n_devices() - 1) / all_.n_devices();
}
inline void ThreadGpu::barrier() {
  all_.meet();
}
inline void ThreadGpu::wait_for_others() {
  all_.wait_for_others();
}
inline void ThreadGpu::open(std::size_t heap_bytes, double wait_s) {
  all_.open_peers(device());
  cuda_must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  heap_ = std::make_unique<GpuArray<std::byte>>(heap_bytes);
  all_.heaps[static_cast<std::size_t>(pe_)] = heap_->data();
  barrier();
  std::vector<std::int64_t> deltas;
  for (const std::byte* const other : all_.heaps)
    deltas.push_back(other - heap_->data());
  deltas_ = std::make_unique<GpuArray<std::int64_t>>(deltas);
  cuda_must(cudaHostAlloc(&report_, sizeof(WaitReport), cudaHostAllocMapped), "report");
  std::memset(report_, 0, sizeof(WaitReport));
  job.pe = pe_;
  job.n_pes = all_.n_pes();
  job.heap = heap_->data();
  job.heap_bytes = heap_bytes;
  job.heap_delta_bytes = deltas_->data();
  job.report = report_;
  job.timeout_ns = static_cast<std::uint64_t>(wait_s * 1e9);
  barrier();
}

} // namespace shmemctl::test
