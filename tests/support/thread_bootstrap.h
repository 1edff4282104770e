// A Bootstrap whose PEs are threads of one process, or processes that one test forked: what the
// PEs write lies in one anonymous shared mapping, and every access to it is ordered by atomics.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <type_traits>
#include <vector>

#include "src/runtime/bootstrap/bootstrap.h"

namespace shmemctl::test {

/// The memory of one job. Make it before the threads start or the processes are forked.
class BootstrapArea {
public:
  static constexpr std::size_t slot_bytes = std::size_t{64} << 10;

  struct alignas(64) Arrival {
    std::atomic<std::uint64_t> epoch; ///< barriers that this PE has entered
  };
  struct alignas(64) Control {
    std::atomic<std::uint64_t> released; ///< barriers that all PEs have entered
    std::atomic<int> aborted_by;         ///< 0: no PE; otherwise PE + 1
    char abort_message[256];
  };

  explicit BootstrapArea(int size)
      : size_(size),
        bytes_(sizeof(Control) + static_cast<std::size_t>(size) * (sizeof(Arrival) + slot_bytes)) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED)
      throw std::runtime_error("mmap of a bootstrap area");
    new (memory_) Control{};
    for (int pe = 0; pe < size_; ++pe)
      new (&arrival(pe)) Arrival{};
  }
  BootstrapArea(const BootstrapArea&) = delete;
  BootstrapArea& operator=(const BootstrapArea&) = delete;
  ~BootstrapArea() { ::munmap(memory_, bytes_); }

  int size() const { return size_; }
  Control& control() { return *static_cast<Control*>(memory_); }
  Arrival& arrival(int pe) {
    std::byte* arrivals = static_cast<std::byte*>(memory_) + sizeof(Control);
    return *reinterpret_cast<Arrival*>(arrivals + static_cast<std::size_t>(pe) * sizeof(Arrival));
  }
  std::byte* slot(int pe) {
    std::byte* slots = static_cast<std::byte*>(memory_) + sizeof(Control) +
                       static_cast<std::size_t>(size_) * sizeof(Arrival);
    return slots + static_cast<std::size_t>(pe) * slot_bytes;
  }

private:
  int size_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

/// Real collectives: they wait with deadlines, ask JobHealth, and name the PE that did not come.
class ThreadBootstrap final : public Bootstrap {
public:
  ThreadBootstrap(BootstrapArea& area, int rank) : Bootstrap(rank, area.size()), area_(area) {}
  const char* name() const override { return "thread"; }

  void barrier(const Deadline& deadline) override {
    ++epoch_;
    area_.arrival(rank()).epoch.store(epoch_, std::memory_order_release);
    if (rank() == 0) {
      for (int pe = 0; pe < size(); ++pe)
        wait(area_.arrival(pe).epoch, pe, deadline);
      area_.control().released.store(epoch_, std::memory_order_release);
    } else {
      wait(area_.control().released, 0, deadline);
    }
  }

  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override {
    auto* out = static_cast<std::byte*>(receive);
    in_pieces(send, bytes_per_rank, deadline, [&](std::size_t from, std::size_t to) {
      for (int pe = 0; pe < size() && to > from; ++pe)
        std::memcpy(out + static_cast<std::size_t>(pe) * bytes_per_rank + from, area_.slot(pe),
                    to - from);
    });
  }

  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override {
    auto* out = static_cast<std::byte*>(receive);
    const std::size_t mine = static_cast<std::size_t>(rank()) * bytes_per_rank;
    in_pieces(send, bytes_per_rank * static_cast<std::size_t>(size()), deadline,
              [&](std::size_t from, std::size_t to) {
                const std::size_t first = std::max(from, mine);
                const std::size_t last = std::min(to, mine + bytes_per_rank);
                for (int pe = 0; pe < size() && first < last; ++pe)
                  std::memcpy(out + static_cast<std::size_t>(pe) * bytes_per_rank + first - mine,
                              area_.slot(pe) + first - from, last - first);
              });
  }

  void broadcast(void* data, std::size_t size_bytes, int root, const Deadline& deadline) override {
    in_pieces(data, size_bytes, deadline, [&](std::size_t from, std::size_t to) {
      if (rank() != root && to > from)
        std::memcpy(static_cast<std::byte*>(data) + from, area_.slot(root), to - from);
    });
  }

  void abort(ExitCode, const std::string& message) noexcept override {
    int nobody = 0;
    BootstrapArea::Control& control = area_.control();
    // The message is written by the one PE that claims it; the others read it only after that.
    if (!control.aborted_by.compare_exchange_strong(nobody, -1))
      return;
    const std::size_t length = std::min(message.size(), sizeof(control.abort_message) - 1);
    std::memcpy(control.abort_message, message.data(), length);
    control.aborted_by.store(rank() + 1, std::memory_order_release);
  }

  void finish(const Deadline& deadline) override { barrier(deadline); }

private:
  /// Publishes `send` slot by slot; `take` sees each piece [from, to) of everyone's buffer.
  template <class Take>
  void in_pieces(const void* send, std::size_t size_bytes, const Deadline& deadline, Take take) {
    const auto* bytes = static_cast<const std::byte*>(send);
    std::size_t from = 0;
    do {
      const std::size_t to = std::min(size_bytes, from + BootstrapArea::slot_bytes);
      if (to > from)
        std::memcpy(area_.slot(rank()), bytes + from, to - from);
      barrier(deadline);
      take(from, to);
      barrier(deadline);
      from = to;
    } while (from < size_bytes);
  }

  void wait(const std::atomic<std::uint64_t>& epoch, int peer, const Deadline& deadline) {
    for (int turn = 0; epoch.load(std::memory_order_acquire) < epoch_; ++turn) {
      if (turn < 64) {
        std::this_thread::yield();
        continue;
      }
      if (turn == 64)
        health().waiting_for(behind(peer));
      health().check();
      const int aborter = area_.control().aborted_by.load(std::memory_order_acquire);
      if (aborter > 0)
        throw Error(ExitCode::unavailable, "the job", "go on with",
                    "PE " + std::to_string(aborter - 1) +
                        " ended it: " + area_.control().abort_message,
                    "look at its output");
      if (deadline.passed())
        health().give_up("barrier", behind(peer));
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(turn, 1000)));
    }
    health().waiting_for(-1);
  }
  /// The first PE that has not come; `otherwise` if all have.
  int behind(int otherwise) {
    for (int pe = 0; pe < size(); ++pe)
      if (area_.arrival(pe).epoch.load(std::memory_order_acquire) < epoch_)
        return pe;
    return otherwise;
  }

  BootstrapArea& area_;
  std::uint64_t epoch_ = 0;
};

/// Runs `body` on n threads, each a PE with a Bootstrap of its own. The first exception ends the
/// others' waits through abort() and is thrown again here.
inline void run_bootstrap_threads(int n_pes, const std::function<void(Bootstrap&)>& body) {
  BootstrapArea area(n_pes);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int pe = 0; pe < n_pes; ++pe)
    threads.emplace_back([&, pe] {
      ThreadBootstrap bootstrap(area, pe);
      try {
        body(bootstrap);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
        bootstrap.abort(ExitCode::unavailable, error.what());
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace shmemctl::test
