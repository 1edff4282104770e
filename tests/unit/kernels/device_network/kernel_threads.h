// Threads in a kernel's place: the same code on host atomics, and plain memory instead of a GPU's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/device/ibgda_qp.h"
#include "kernels/device/proxy_client.h"
#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/runtime/gpu/device_network.h"
#include "transports/mlx5/host_memory.h"

namespace shmemctl::test {

/// Counts live objects, so that tests see that all are destroyed.
class PlainKernelMemory final : public KernelMemory {
public:
  ~PlainKernelMemory() override {
    EXPECT_TRUE(allocated_.empty());
    EXPECT_TRUE(mapped_.empty());
  }
  void* allocate(std::size_t size_bytes) override {
    void* const memory = std::aligned_alloc(256, (size_bytes + 255) / 256 * 256);
    std::memset(memory, 0, size_bytes);
    const std::lock_guard lock(mutex_);
    allocated_[memory] = size_bytes;
    return memory;
  }
  void free(void* memory) noexcept override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(allocated_.erase(memory), 1u);
    std::free(memory);
  }
  void* map(void* base, std::size_t size_bytes, HostMemoryKind part) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(base) % page_bytes, 0u) << "whole pages";
    EXPECT_EQ(size_bytes % page_bytes, 0u) << "whole pages";
    const std::lock_guard lock(mutex_);
    auto* const begin = static_cast<std::byte*>(base);
    // As CUDA, which refuses to register a page twice.
    for (const auto& [other, other_bytes] : mapped_)
      if (begin < static_cast<std::byte*>(other) + other_bytes && other < begin + size_bytes)
        throw Error(ExitCode::unavailable, "host memory", "register",
                    "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "-");
    mapped_.emplace(base, size_bytes);
    ++maps;
    register_pages += part == HostMemoryKind::registers ? 1 : 0;
    return base;
  }
  void unmap(void* base) noexcept override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(mapped_.erase(base), 1u);
  }
  void copy(void* to, const void* from, std::size_t size_bytes) override {
    ++copies;
    std::memcpy(to, from, size_bytes);
  }

  std::size_t page_bytes = 4096; ///< page size of the system
  std::atomic<int> copies{0}, maps{0}, register_pages{0};

private:
  std::mutex mutex_;
  std::map<void*, std::size_t> allocated_, mapped_;
};

/// A wait that takes as long as a test may, or a number of polls.
class ThreadWait {
public:
  explicit ThreadWait(int turns = 0) : turns_(turns), deadline_(Deadline::Clock::now()) {}
  void start() {
    left_ = turns_;
    deadline_ = Deadline::after(std::chrono::seconds(60));
  }
  void stop() {}
  bool pause() {
    std::this_thread::yield();
    return turns_ > 0 ? --left_ > 0 : !deadline_.passed();
  }

private:
  int turns_, left_ = 0;
  Deadline deadline_;
};

/// Threads in place of a warp's lanes, which take each step together. Lanes that arrive with the
/// same key form a group.
class LaneThreads {
public:
  explicit LaneThreads(std::uint32_t n_qp_sets)
      : meeting_(static_cast<std::ptrdiff_t>(n_qp_sets)), values_(n_qp_sets) {}
  std::uint32_t n_qp_sets() const { return static_cast<std::uint32_t>(values_.size()); }
  /// The value of every lane.
  std::vector<std::uint64_t> exchange(std::uint64_t value) {
    values_[lane] = value;
    meeting_.arrive_and_wait();
    std::vector<std::uint64_t> all = values_;
    meeting_.arrive_and_wait();
    return all;
  }

  inline static thread_local LaneThreads* mine = nullptr;
  inline static thread_local std::uint32_t lane = 0;

private:
  std::barrier<> meeting_;
  std::vector<std::uint64_t> values_;
};

/// The members of a group, by lane. Every lane of the warp makes every call, whatever its group.
class LaneGroup {
public:
  explicit LaneGroup(std::uint64_t key) {
    const std::vector<std::uint64_t> keys = exchange(key);
    for (std::uint32_t lane = 0; lane < keys.size(); ++lane)
      if (keys[lane] == key)
        members_.push_back(lane);
  }
  std::uint32_t rank() const {
    return static_cast<std::uint32_t>(
        std::find(members_.begin(), members_.end(), LaneThreads::lane) - members_.begin());
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  std::uint64_t from_leader(std::uint64_t value) const { return exchange(value)[members_[0]]; }
  std::int32_t last_with(bool flag) const {
    const std::vector<std::uint64_t> flags = exchange(flag ? 1 : 0);
    for (std::size_t rank = members_.size(); rank-- > 0;)
      if (flags[members_[rank]] != 0)
        return static_cast<std::int32_t>(rank);
    return -1;
  }
  void sync() const { exchange(0); }

private:
  static std::vector<std::uint64_t> exchange(std::uint64_t value) {
    return LaneThreads::mine->exchange(value);
  }
  std::vector<std::uint32_t> members_;
};

/// The host's atomics, posting by warps, with one thread at a time that polls completions.
struct LaneMemory : mlx5::HostMemory {
  static constexpr bool one_polls = true;
  using Group = LaneGroup;
  static Group group(std::uint64_t key) { return LaneGroup(key); }
};
using LaneQueue = device::QpClient<LaneMemory, ThreadWait>;

using ThreadProxy = device::ProxyClient<HostAtomics, ThreadWait>;
using ThreadQueue = device::QpClient<mlx5::HostMemory, ThreadWait>;

/// Runs `body(number)` on that many threads at once.
inline void run_kernel(unsigned n_threads, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t number = 0; number < n_threads; ++number)
    threads.emplace_back([&, number] { body(number); });
  for (std::thread& thread : threads)
    thread.join();
}

/// All PEs mapped, as on one node, and a path to each.
inline DeviceNetworkInputs inputs_of(int pe, const std::vector<Transport*>& ways,
                                     const std::string& wanted, JobHealth& health,
                                     const std::shared_ptr<KernelMemory>& memory) {
  DeviceNetworkInputs inputs;
  inputs.pe = pe;
  inputs.n_pes = static_cast<int>(ways.size());
  inputs.wanted = wanted;
  inputs.mapped.assign(ways.size(), true);
  inputs.mapped_reason.assign(ways.size(), "memory of a test");
  inputs.transports_by_pe = ways;
  inputs.reachable = DeviceNetworkInputs::Reachable::host_memory;
  inputs.health = &health;
  inputs.memory = memory;
  return inputs;
}

} // namespace shmemctl::test
