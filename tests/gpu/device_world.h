// A job whose PEs are processes with a GPU each, in turn, and a symmetric heap of GPU memory: what
// tests of kernels run in.
#pragma once

#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "src/abi/device_job.h"
#include "src/runtime/cuda/device.h"
#include "src/runtime/memory/cuda_backing.h"
#include "src/runtime/memory/symmetric_region.h"
#include "tests/gpu/share.h"
#include "tests/support/forked_pes.h"
#include "tests/support/socket_noise.h"

namespace shmemctl::test {

inline void require_cuda(cudaError_t result, const std::string& what) {
  if (result != cudaSuccess)
    throw std::runtime_error(what + ": " + cudaGetErrorString(result));
}

/// Memory of this PE's GPU, outside of the heap.
template <class T>
class DeviceArray {
public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    require_cuda(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    require_cuda(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    require_cuda(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyDefault), "copy");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* data() { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    require_cuda(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDefault), "copy");
    return values;
  }

private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// One PE, in its process.
class GpuPe {
public:
  GpuPe(const std::shared_ptr<const cuda::Driver>& driver, int pe, int n_pes,
        const JobSecret& secret, std::size_t heap_bytes, double wait_s = 30)
      : host_timeout_s_(wait_s + 5),
        device_(std::make_shared<const cuda::Device>(
            driver, cuda::device_of_pe(pe, static_cast<int>(driver->devices().size()), {}))),
        backing_(make_cuda_vmm_backing(device_)),
        peers_(make_local_peers(secret, everybody(n_pes), pe, {})),
        heap_("heap", heap_bytes, *peers_, *backing_),
        cells_("cells", cells_bytes, *peers_, *backing_) {
    require_cuda(cudaSetDevice(device_->info().ordinal), "cudaSetDevice");
    heap_.grow(heap_bytes, soon());
    cells_.grow(cells_bytes, soon());
    require_cuda(cudaMemset(cells_.base(), 0, cells_bytes), "cells");
    require_cuda(cudaDeviceSynchronize(), "cells");
    heap_deltas_ = std::make_unique<DeviceArray<std::int64_t>>(deltas(heap_));
    cells_deltas_ = std::make_unique<DeviceArray<std::int64_t>>(deltas(cells_));
    require_cuda(cudaHostAlloc(&report_, sizeof(WaitReport), cudaHostAllocMapped), "report");
    std::memset(report_, 0, sizeof(WaitReport));
    job.pe = pe;
    job.n_pes = n_pes;
    job.heap = heap_.base();
    job.heap_bytes = heap_bytes;
    job.heap_delta_bytes = heap_deltas_->data();
    job.cells = reinterpret_cast<DeviceTeamFlags*>(cells_.base());
    job.team_flags_delta_bytes = cells_deltas_->data();
    if (pe % 2 == 0) // the other PEs load the tables
      set_param_deltas(job, deltas(heap_).data(), deltas(cells_).data());
    job.report = report_;
    job.timeout_ns = static_cast<std::uint64_t>(wait_s * 1e9);
    make_teams();
    barrier();
  }
  ~GpuPe() { cudaFreeHost(report_); }
  GpuPe(const GpuPe&) = delete;
  GpuPe& operator=(const GpuPe&) = delete;

  /// A barrier of the host threads.
  void barrier() { peers_->exchange(-1, soon()); }
  /// Waits for kernels; throws what they failed with, and what a wait has reported.
  void synchronize() {
    require_cuda(cudaDeviceSynchronize(), "kernel");
    if (report_->state == WaitReport::written)
      throw std::runtime_error("PE " + std::to_string(job.pe) + " waited for PE " +
                               std::to_string(report_->peer) + ": expected " +
                               std::to_string(report_->expected) + ", saw " +
                               std::to_string(report_->seen));
  }
  void store(std::size_t offset_bytes, const std::vector<std::uint8_t>& bytes) {
    require_cuda(cudaMemcpy(job.heap + offset_bytes, bytes.data(), bytes.size(), cudaMemcpyDefault),
                 "store");
    // A copy of pageable memory may return before its bytes are on the device.
    require_cuda(cudaDeviceSynchronize(), "store");
  }
  std::vector<std::uint8_t> load(std::size_t offset_bytes, std::size_t size_bytes) {
    std::vector<std::uint8_t> bytes(size_bytes);
    require_cuda(cudaMemcpy(bytes.data(), job.heap + offset_bytes, size_bytes, cudaMemcpyDefault),
                 "load");
    return bytes;
  }

  DeviceJob job{};

  /// Teams that tests use: the world; PEs 0, 2, ...; the last PE and the first, by a list.
  static constexpr int world = 0, even = 1, ends = 2;

private:
  static constexpr std::size_t cells_bytes = sizeof(DeviceTeamFlags) * limits::max_teams;

  void make_teams() {
    const int pe = job.pe, n = job.n_pes;
    std::vector<TeamState> teams(limits::max_teams, free_team(0));
    teams[world] = {1, pe, n, 0, 1, 0, 0};
    teams[even] = {1, pe % 2 == 0 ? pe / 2 : -1, (n + 1) / 2, 0, 2, 0, 0};
    teams[ends] = {1, pe == n - 1 ? 0 : pe == 0 ? 1 : -1, 2, 0, 0, 1, 0};
    teams_ = std::make_unique<DeviceArray<TeamState>>(teams);
    // The list of `ends` begins behind another one.
    members_ = std::make_unique<DeviceArray<std::int32_t>>(std::vector<std::int32_t>{-1, n - 1, 0});
    job.teams = teams_->data();
    job.members = members_->data();
  }

  /// Longer than the waits of kernels, so that these are heard first.
  Deadline soon() const { return Deadline::after(std::chrono::duration<double>(host_timeout_s_)); }
  static std::vector<int> everybody(int n_pes) {
    std::vector<int> pes(static_cast<std::size_t>(n_pes));
    std::iota(pes.begin(), pes.end(), 0);
    return pes;
  }
  std::vector<std::int64_t> deltas(const SymmetricRegion& region) const {
    std::vector<std::int64_t> all;
    for (int slot = 0; slot < peers_->slots(); ++slot)
      all.push_back(region.slot_base(slot) - region.base());
    return all;
  }

  double host_timeout_s_;
  std::shared_ptr<const cuda::Device> device_;
  std::unique_ptr<HeapBacking> backing_;
  std::unique_ptr<LocalPeers> peers_;
  SymmetricRegion heap_, cells_;
  std::unique_ptr<DeviceArray<std::int64_t>> heap_deltas_, cells_deltas_;
  std::unique_ptr<DeviceArray<TeamState>> teams_;
  std::unique_ptr<DeviceArray<std::int32_t>> members_;
  WaitReport* report_ = nullptr;
};

/// How many GPUs a process would see here; asked for in a child.
inline int count_gpus() {
  static int count = -1;
  if (count >= 0)
    return count;
  ForkedPes one(1, [](int) {
    std::string why;
    const auto driver = cuda::Driver::open("libcuda.so.1", why);
    throw std::runtime_error(driver ? std::to_string(driver->devices().size()) : "0");
  });
  const std::string said = one.ends()[0];
  count = std::atoi(said.c_str());
  return count;
}

/// Whether PEs take turns on the one GPU that there is: then rounds are few.
inline bool pes_take_turns() {
  return count_gpus() < 2 && sharers_take_turns();
}

/// Runs `body` in a process for each PE. Returns why there can be no such job here, or "".
/// CUDA does not survive a fork: nothing of it is called before.
inline std::string run_gpu_pes(int n_pes, std::size_t heap_bytes,
                               const std::function<void(GpuPe&)>& body, double wait_s = 30) {
  const JobSecret secret = new_secret();
  ForkedPes pes(n_pes, [&](int pe) {
    std::string why;
    // A kernel that waits for a peer would keep the next one from being loaded.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    const auto driver = cuda::Driver::open("libcuda.so.1", why);
    require(driver != nullptr, "no driver: " + why);
    GpuPe me(driver, pe, n_pes, secret, heap_bytes, wait_s);
    body(me);
    me.barrier(); // memory must not be unmapped while another PE may use it
  });
  const ChildEnds ends = pes.ends();
  std::string all;
  for (const std::string& end : ends)
    all += end.empty() ? "" : end + "\n";
  return all;
}

} // namespace shmemctl::test
