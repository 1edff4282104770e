// Stands in for kernels/device/scope.cuh where the device headers are compiled for the host: a
// block is a few threads of the host, and a warp is a block.
#pragma once

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>

// What CUDA's compiler knows by itself. Behind the library's headers, which use one of the names.
#define __device__
#define __noinline__

struct alignas(16) int4 {
  int x, y, z, w;
};

namespace shmemctl::device {

struct HostBlock {
  explicit HostBlock(int threads) : meeting(threads) {}
  std::barrier<> meeting;
  std::atomic<bool> failed[2] = {false, false};
  std::uint64_t shared = 0;
};
struct HostIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline thread_local HostIndex threadIdx, blockIdx;
inline thread_local HostIndex blockDim{1, 1, 1}, gridDim{1, 1, 1};
inline thread_local HostBlock* host_block = nullptr;
inline thread_local unsigned host_votes = 0;

/// What this thread has yet to do for the network that stands in for one (network_absent.cuh).
inline thread_local void (*host_late)() = nullptr;
/// Called where a thread waits, or is at its end.
inline void host_yield() {
  if (host_late != nullptr)
    host_late();
}

/// The same where it looks again and again for what others do: nobody waits for a network's word
/// behind a look that has found something. So, where the network lingers, many looks go by first
/// now and then, and what is asked for next may overtake it.
inline thread_local unsigned host_late_polls = 0;
/// Where the network keeps operations under way (HostFlight): delivers what is due, of any PE. Else
/// nullptr.
inline thread_local void (*host_deliver)() = nullptr;
inline void host_yield_polling() {
  if (host_deliver != nullptr)
    host_deliver();
  if (host_late == nullptr)
    return;
  if (host_late_polls > 0)
    --host_late_polls;
  else
    host_late();
}

/// HostKernels::run() counts.
inline std::atomic<std::uint64_t> host_launches{0};

/// Computed as in the device's scope.cuh.
struct Grid {
  static int rank() {
    return static_cast<int>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  }
  static int size() { return static_cast<int>(gridDim.x * gridDim.y * gridDim.z); }
  static std::uint64_t launch() { return host_launches; }
};

struct Thread {
  static int rank() { return 0; }
  static int size() { return 1; }
  static void converge() {}
  static void sync() {}
  static bool all(bool flag) { return flag; }
  static std::uint64_t broadcast(std::uint64_t value) { return value; }
};

struct Block {
  static int rank() { return static_cast<int>(threadIdx.x); }
  static int size() { return static_cast<int>(blockDim.x); }
  static void converge() {}
  static void sync() {
    host_yield();
    host_block->meeting.arrive_and_wait();
  }
  static bool all(bool flag) {
    std::atomic<bool>& failed = host_block->failed[host_votes++ % 2];
    if (!flag)
      failed = true;
    sync();
    const bool result = !failed;
    sync();
    if (rank() == 0) // the next vote uses the other word
      failed = false;
    return result;
  }
  static std::uint64_t broadcast(std::uint64_t value) {
    sync();
    if (rank() == 0)
      host_block->shared = value;
    sync();
    return host_block->shared;
  }
};

struct Warp : Block {};

} // namespace shmemctl::device
