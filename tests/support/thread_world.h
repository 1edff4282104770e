// A job whose PEs are threads of one process: what ThreadSanitizer can look at. All PEs share one
// mapping, so the sanitizer sees every access to "remote" memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/runtime/rma.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {

/// What each thread gets.
struct ThreadPe {
  int pe = 0, n_pes = 1;
  Rma* rma = nullptr;
  std::byte* internal = nullptr; ///< this PE's internal region, zeroed
  std::byte* heap = nullptr;     ///< this PE's heap, zeroed
  std::size_t heap_bytes = 0;
};

/// Fails the whole world when one of its threads fails.
class ThreadHealth final : public JobHealth {
public:
  void check() const override {
    if (failed_.load(std::memory_order_acquire))
      throw Error(ExitCode::unavailable, "thread world", "wait", "another PE failed", "see it");
  }
  void fail() { failed_.store(true, std::memory_order_release); }

private:
  std::atomic<bool> failed_{false};
};

/// Runs `body` on n threads, each a PE; rethrows the first exception. Internal regions are
/// committed lazily, so many PEs cost little.
inline void run_thread_world(int n_pes, std::size_t heap_bytes,
                             const std::function<void(ThreadPe&)>& body, double timeout_s = 60) {
  const auto zeroed = [](std::size_t size_bytes) {
    return std::unique_ptr<std::byte, void (*)(void*)>(
        static_cast<std::byte*>(std::calloc(1, size_bytes + 4096)), std::free);
  };
  const auto count = static_cast<std::size_t>(n_pes);
  auto internals = zeroed(count * limits::internal_bytes);
  auto heaps = zeroed(count * heap_bytes);
  const auto aligned = [](std::byte* at) {
    return at + (4096 - reinterpret_cast<std::uintptr_t>(at) % 4096) % 4096;
  };
  std::byte* internal_base = aligned(internals.get());
  std::byte* heap_base = aligned(heaps.get());
  ThreadHealth health;
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int pe = 0; pe < n_pes; ++pe)
    threads.emplace_back([&, pe] {
      const auto slot = static_cast<std::size_t>(pe);
      try {
        const std::unique_ptr<Transport> transport = make_shm_transport();
        Rma rma(pe, n_pes, std::vector<Transport*>(count, transport.get()), health, timeout_s,
                true);
        RegionView internal{region::internal,
                            internal_base + slot * limits::internal_bytes,
                            limits::internal_bytes,
                            {}};
        RegionView heap{region::heap, heap_base + slot * heap_bytes, heap_bytes, {}};
        for (std::size_t peer = 0; peer < count; ++peer) {
          internal.mapped.push_back(internal_base + peer * limits::internal_bytes);
          heap.mapped.push_back(heap_base + peer * heap_bytes);
        }
        for (const RegionView& view : {internal, heap}) {
          transport->set_region(view);
          rma.set_region(view);
        }
        ThreadPe me{pe, n_pes, &rma, internal.base, heap.base, heap_bytes};
        body(me);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
        health.fail();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace shmemctl::test
