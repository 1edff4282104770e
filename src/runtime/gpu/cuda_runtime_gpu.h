// GpuRuntime over the CUDA driver.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "src/runtime/cuda/device.h"
#include "src/runtime/gpu/cuda_copy_engine.h"
#include "src/runtime/gpu/cuda_gpu_memory.h"
#include "src/runtime/gpu/cuda_user_buffers.h"
#include "src/runtime/gpu/gpu_runtime.h"
#include "src/runtime/gpu/kernel_memory.h"

namespace shmemctl {

class CudaGpuRuntime final : public GpuRuntime {
public:
  /// Collective. Makes the device's context current for the calling thread, so that the thread
  /// launches kernels on it. Throws Error.
  CudaGpuRuntime(std::shared_ptr<const cuda::Device> device, GpuSetup setup);
  /// Ends the waits of kernels that are still running.
  ~CudaGpuRuntime() override;

  const GpuInfo& info() const override { return info_; }
  const std::vector<KernelPath>& paths_by_pe() const override { return paths_by_pe_; }
  DeviceJob job() const override;
  std::vector<std::int64_t> heap_delta_bytes() const override;
  void set_timeout_s(double timeout_s) override { timeout_s_ = timeout_s; }
  void* allocate(std::size_t size_bytes, std::size_t alignment_bytes) override;
  void free(void* address) override;
  SymmetricHeap& heap() override { return *heap_; }
  GpuStream stream() override { return stream_.get(); }
  void copy(void* to, const void* from, std::size_t size_bytes) override;
  void fill(void* at, int byte, std::size_t size_bytes) override;
  std::unique_ptr<HostCopies> make_host_copies(std::size_t host_bytes) override;
  void wait(GpuStream stream, const char* step) override;
  void check() override;
  void release_kernels() noexcept override;

  std::vector<RegionView> views() const override;
  bool is_host_memory() const override { return memory_.is_host_memory(); }
  CopyEngine& copies() override { return copies_; }
  buffers::GpuBufferBackend& user_buffers() override { return user_buffers_; }
  std::shared_ptr<const DeviceMemory> device_memory() const override {
    return memory_.device_memory();
  }
  std::shared_ptr<CopyEngine> agent_copies() override;
  void mirror(const State& state) override;
  void use_network(DeviceNetworkInputs inputs) override;
  void finish() override;
  void leave_network() noexcept override;

private:
  void describe();
  bool loses_atomics() const;
  void choose_paths();
  void make_heap();
  void store_deltas();
  void publish_heap();
  std::vector<HostRange> host_ranges() const;
  std::size_t contiguous_bytes(const void* at, std::size_t size_bytes) const;
  WaitReport& report() const { return *reinterpret_cast<WaitReport*>(report_.data()); }
  [[noreturn]] void throw_report() const;

  std::shared_ptr<const cuda::Device> device_;
  GpuSetup setup_;
  GpuInfo info_;
  std::vector<KernelPath> paths_by_pe_;
  cuda::Stream stream_;
  cuda::Stream copy_stream_; ///< not shared with kernels, which may wait for the copied data
  std::mutex copy_mutex_;
  GpuMemory memory_;
  CudaCopyEngine copies_;
  CudaUserBuffers user_buffers_;
  cuda::HostBuffer report_;
  std::vector<std::int64_t> deltas_here_; ///< deltas of the heap by PE, then of the team flags
  /// The same for kernels: deltas of the heap by PE, then of the team flags, then paths (one byte
  /// each).
  cuda::DeviceBuffer deltas_;
  std::unique_ptr<KernelArray<PendingTransfers>> pending_; ///< nullptr without the option CHECK
  std::unique_ptr<SymmetricHeap> heap_;
  std::mutex heap_mutex_; ///< guards allocate() and free()
  std::atomic<std::uint64_t> heap_bytes_{0};
  std::atomic<bool> released_{false};
  std::atomic<double> timeout_s_; ///< limit of the waits of kernels and of wait()

  std::mutex mirror_mutex_;
  std::unique_ptr<cuda::DeviceBuffer> mirror_; ///< TeamState[max_teams], then the member lists
  std::array<bool, limits::max_teams> was_in_use_{};
  std::unique_ptr<DeviceNetworkPart> network_; ///< nullptr before use_network(); destroyed first
};

} // namespace shmemctl
