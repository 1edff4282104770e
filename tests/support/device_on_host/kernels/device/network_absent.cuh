// Stands in for kernels/device/network_absent.cuh: a network between PEs that share this process,
// as late and as weak as it may be, so that whoever forgets an order, or hopes for one, is found
// out.
//
// - Puts and gets that do not block are done in a quiet, those after a fence behind those before
// it,
//   and otherwise in the reverse order. A fence completes nothing.
// - Values, atomics without an answer and put_signal are done when their thread next waits for
//   something, or ends: a real network does them without being asked again. Fences and order as
//   above. Where the network lingers (HostNetwork::linger()), some looks of a wait for a word go by
//   first, so that they may still be under way behind it.
// - Values and atomics release nothing of the thread's (a real request is relaxed, too) but what a
//   fence_system() covers.
// - Where operations are kept under way (HostFlight), values, atomics without an answer and
//   put_signal are done whenever any thread looks for something, in an order of their own: some are
//   held until later ones of the same PE have overtaken them, so they outlive the call that asked
//   for them. Fences as above.
//
// What answers, or blocks, is done at once, behind what came before a fence.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/device/network.cuh"
#include "kernels/device/wait_report.cuh"

namespace shmemctl::device {

class HostFlight;

/// A PE's access to the network.
class HostNetwork {
public:
  void add_pe(std::byte* heap, std::byte* cells) { places_.push_back({heap, cells}); }
  std::byte* at(NetworkAddress place, int pe) {
    if (const unsigned i = n_peers_.fetch_add(1, std::memory_order_relaxed); i < peers_.size())
      peers_[i].store(pe, std::memory_order_relaxed);
    const Places& of = places_[static_cast<std::size_t>(pe)];
    return (place.region == region::gpu_heap ? of.heap : of.cells) + place.offset_bytes;
  }
  /// PEs of the first operations since the last call, in the order in which they were requested.
  std::vector<int> take_peers() {
    const unsigned asked = n_peers_.exchange(0);
    return {peers_.begin(), peers_.begin() + std::min<std::ptrdiff_t>(asked, max_peers)};
  }
  /// A put or a get: done in a quiet.
  void later(std::function<void()> operation) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({fences_.load(std::memory_order_relaxed), std::move(operation)});
    n_waiting_.store(waiting_.size(), std::memory_order_relaxed);
  }
  void fence() { fences_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t fences() const { return fences_.load(std::memory_order_relaxed); }
  void quiet() { complete(UINT64_MAX); }
  /// All puts and gets before that fence are done.
  void complete(std::uint64_t fence) {
    // Not even this lock where there is nothing to do: it would put operations in an order.
    if (fence != UINT64_MAX && n_waiting_.load(std::memory_order_relaxed) == 0)
      return;
    const std::lock_guard lock(mutex_); // also: what another thread has begun to do is done
    late_first(waiting_);
    std::size_t done = 0;
    while (done < waiting_.size() && waiting_[done].fence < fence)
      waiting_[done++].operation();
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
    n_waiting_.store(waiting_.size(), std::memory_order_relaxed);
  }

  /// Before the kernels run.
  void linger() { lingers_ = true; }
  bool lingers() const { return lingers_; }
  /// Called before the kernels run: the same object for all PEs, or nullptr.
  void keep_in(HostFlight* flight) { flight_ = flight; }
  HostFlight* flight() const { return flight_; }

  struct Operation {
    std::uint64_t fence; ///< how many requests came before it
    std::function<void()> operation;
  };
  /// The order of the fences; between two of them the reverse one.
  static void late_first(std::vector<Operation>& operations) {
    std::reverse(operations.begin(), operations.end());
    std::stable_sort(operations.begin(), operations.end(),
                     [](const Operation& a, const Operation& b) { return a.fence < b.fence; });
  }

private:
  struct Places {
    std::byte *heap, *cells;
  };
  std::vector<Places> places_;
  bool lingers_ = false;
  HostFlight* flight_ = nullptr;
  std::mutex mutex_;
  std::vector<Operation> waiting_;
  std::atomic<std::size_t> n_waiting_{0};
  std::atomic<std::uint64_t> fences_{0};
  // Nothing in this class may put operations in an order: ThreadSanitizer looks for those that have
  // none.
  static constexpr std::ptrdiff_t max_peers = 64;
  std::array<std::atomic<int>, max_peers> peers_{};
  std::atomic<unsigned> n_peers_{0};
};
inline thread_local HostNetwork* host_network = nullptr;

/// What is under way between all PEs of a job. A third of the operations are held: until a few
/// later ones of the same PE have been done, or, so that nobody waits for ever, many looks have
/// gone by. All of it is done under one lock, which puts it in an order: races are for the networks
/// above to show.
class HostFlight {
public:
  explicit HostFlight(std::uint32_t seed) : random_(seed) {}

  void post(HostNetwork& of, std::function<void()> operation) {
    const std::lock_guard lock(mutex_);
    const bool held = next() % 3 == 0;
    waiting_.push_back({&of, of.fences(), held ? 1 + static_cast<int>(next() % 3) : 0,
                        polls_ + max_polls, std::move(operation)});
    n_waiting_.store(waiting_.size(), std::memory_order_relaxed);
  }
  /// Called by a thread that polls.
  void poll() {
    if (n_waiting_.load(std::memory_order_relaxed) == 0 || busy_)
      return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock())
      return;
    ++polls_;
    for (std::size_t i = 0; i < waiting_.size(); ++i)
      if ((waiting_[i].overtaken_by <= 0 || waiting_[i].until_poll <= polls_) && !is_fenced(i)) {
        perform(i);
        return;
      }
  }
  /// All of that PE's before that fence is done.
  void complete(const HostNetwork& of, std::uint64_t fence) {
    const std::lock_guard lock(mutex_);
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = waiting_.size(); i-- > 0 && !more;)
        if (waiting_[i].of == &of && waiting_[i].fence < fence && !is_fenced(i)) {
          perform(i);
          more = true;
        }
    }
  }

private:
  struct Waiting {
    HostNetwork* of;
    std::uint64_t fence;
    int overtaken_by; ///< how many later requests of the PE complete before it
    std::uint64_t until_poll;
    std::function<void()> operation;
  };
  static constexpr std::uint64_t max_polls = 3000;

  std::uint32_t next() {
    random_ = random_ * 1664525U + 1013904223U;
    return random_ >> 16;
  }
  /// Behind a fence of its PE that others are before.
  bool is_fenced(std::size_t at) const {
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& other) {
      return other.of == waiting_[at].of && other.fence < waiting_[at].fence;
    });
  }
  void perform(std::size_t at) {
    Waiting now = std::move(waiting_[at]);
    for (std::size_t i = 0; i < at; ++i)
      if (waiting_[i].of == now.of)
        --waiting_[i].overtaken_by;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    n_waiting_.store(waiting_.size(), std::memory_order_relaxed);
    busy_ = true; // the operation may poll
    now.of->complete(now.fence);
    now.operation();
    busy_ = false;
  }

  std::mutex mutex_;
  std::vector<Waiting> waiting_; ///< in the order in which they were requested
  std::atomic<std::size_t> n_waiting_{0};
  std::uint64_t polls_ = 0;
  std::uint32_t random_;
  static inline thread_local bool busy_ = false;
};

/// What the network does for this thread without being asked again.
inline thread_local std::vector<HostNetwork::Operation> host_soon;
inline void host_do_soon() {
  host_late = nullptr;
  std::vector<HostNetwork::Operation> operations;
  operations.swap(host_soon);
  HostNetwork::late_first(operations);
  for (const HostNetwork::Operation& operation : operations) {
    host_network->complete(operation.fence);
    operation.operation();
  }
}
inline void host_deliver_due() {
  host_network->flight()->poll();
}
inline void host_do_when_waiting(std::function<void()> operation) {
  if (HostFlight* const flight = host_network->flight())
    return flight->post(*host_network, std::move(operation));
  host_soon.push_back({host_network->fences(), std::move(operation)});
  host_late = host_do_soon;
  thread_local unsigned operations = 0;
  host_late_polls = host_network->lingers() && ++operations % 3 == 0 ? 2000 : 0;
}
/// Before what is done at once.
inline void host_keep_fences() {
  const std::uint64_t fence = host_network->fences();
  if (HostFlight* const flight = host_network->flight())
    flight->complete(*host_network, fence);
  if (!host_soon.empty() && host_soon.front().fence < fence)
    host_do_soon();
  host_network->complete(fence);
}

/// `order` of what is stored; loads acquire, because an answer does.
template <class Word>
Word atomic_there(Word* at, NetworkAtomic op, Word operand, Word compare, bool released) {
  const int order = released ? __ATOMIC_ACQ_REL : __ATOMIC_ACQUIRE;
  switch (op) {
  case NetworkAtomic::fetch:
    return load_acquire(at);
  case NetworkAtomic::set:
  case NetworkAtomic::swap:
    return __atomic_exchange_n(at, operand, order);
  case NetworkAtomic::compare_swap:
    __atomic_compare_exchange_n(at, &compare, operand, false, order, __ATOMIC_ACQUIRE);
    return compare;
  case NetworkAtomic::add:
    return __atomic_fetch_add(at, operand, order);
  case NetworkAtomic::bit_and:
    return __atomic_fetch_and(at, operand, order);
  case NetworkAtomic::bit_or:
    return __atomic_fetch_or(at, operand, order);
  case NetworkAtomic::bit_xor:
    return __atomic_fetch_xor(at, operand, order);
  }
  return 0;
}

inline bool is_cut(const DeviceJob& job, int pe) {
  if (job.network.path_of_pe != nullptr)
    return false;
  report_unreachable(job, pe);
  return true;
}

inline bool network_put(const DeviceJob& job, NetworkAddress target, const void* source,
                        std::uint64_t size_bytes, int pe, bool blocking) {
  if (is_cut(job, pe))
    return false;
  const auto copy = [to = host_network->at(target, pe), source, size_bytes] {
    std::memcpy(to, source, size_bytes);
  };
  if (blocking) {
    host_keep_fences();
    copy();
  } else {
    host_network->later(copy);
  }
  return true;
}
inline bool network_get(const DeviceJob& job, void* target, NetworkAddress source,
                        std::uint64_t size_bytes, int pe, bool blocking) {
  if (is_cut(job, pe))
    return false;
  const auto copy = [target, from = host_network->at(source, pe), size_bytes] {
    std::memcpy(target, from, size_bytes);
  };
  if (blocking) {
    host_keep_fences();
    copy();
  } else {
    host_network->later(copy);
  }
  return true;
}
inline bool network_put_value(const DeviceJob& job, NetworkAddress target, std::uint64_t value,
                              unsigned size_bytes, int pe) {
  if (is_cut(job, pe))
    return false;
  std::byte* const to = host_network->at(target, pe);
  host_do_when_waiting([to, value, size_bytes, order = order_of_store()] {
    if (size_bytes == 8)
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), value, order);
    else if (size_bytes == 4)
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(to), static_cast<std::uint32_t>(value),
                       order);
    else
      std::memcpy(to, &value, size_bytes);
  });
  return true;
}
inline bool network_get_value(const DeviceJob& job, NetworkAddress source, unsigned size_bytes,
                              int pe, std::uint64_t& value) {
  value = 0;
  if (is_cut(job, pe))
    return false;
  const std::byte* const from = host_network->at(source, pe);
  host_keep_fences();
  if (size_bytes == 8)
    value = load_acquire(reinterpret_cast<const std::uint64_t*>(from));
  else if (size_bytes == 4)
    value = load_acquire(reinterpret_cast<const std::uint32_t*>(from));
  else
    std::memcpy(&value, from, size_bytes);
  return true;
}
inline bool network_atomic(const DeviceJob& job, NetworkAddress target, NetworkAtomic op,
                           unsigned size_bytes, std::uint64_t operand, std::uint64_t compare,
                           int pe, std::uint64_t* old) {
  if (is_cut(job, pe))
    return false;
  std::byte* const at = host_network->at(target, pe);
  const auto apply = [=, released = host_fenced]() -> std::uint64_t {
    return size_bytes == 4
               ? atomic_there(reinterpret_cast<std::uint32_t*>(at), op,
                              static_cast<std::uint32_t>(operand),
                              static_cast<std::uint32_t>(compare), released)
               : atomic_there(reinterpret_cast<std::uint64_t*>(at), op, operand, compare, released);
  };
  if (old == nullptr) {
    host_do_when_waiting(apply);
  } else {
    host_keep_fences();
    *old = apply();
  }
  return true;
}
inline bool network_put_signal(const DeviceJob& job, NetworkAddress target, const void* source,
                               std::uint64_t size_bytes, NetworkAddress signal, std::uint64_t value,
                               bool add, int pe, bool blocking) {
  if (is_cut(job, pe))
    return false;
  const auto apply = [to = host_network->at(target, pe), source, size_bytes, add, value,
                      word = reinterpret_cast<std::uint64_t*>(host_network->at(signal, pe))] {
    std::memcpy(to, source, size_bytes);
    if (add)
      add_release(word, value);
    else
      store_release(word, value);
  };
  if (blocking) {
    host_keep_fences();
    apply();
  } else {
    host_do_when_waiting(apply);
  }
  return true;
}
inline void network_release() {
  fence_system();
}
inline bool network_fence(const DeviceJob&) {
  host_network->fence();
  return true;
}
inline bool network_quiet(const DeviceJob&) {
  host_yield();
  if (HostFlight* const flight = host_network->flight())
    flight->complete(*host_network, UINT64_MAX);
  host_network->quiet();
  return true;
}

} // namespace shmemctl::device
