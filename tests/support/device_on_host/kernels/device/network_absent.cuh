// Stands in for kernels/device/network_absent.cuh: a network between PEs that share this process.
// What need not be complete at once is done as late as may be: in a quiet, and there in the reverse
// order, so that whoever forgets one, or hopes for an order, is found out.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/device/network.cuh"
#include "kernels/device/report.cuh"

namespace shmemctl::device {

/// One PE's.
class HostNetwork {
public:
  void add_pe(std::byte* heap, std::byte* cells) { places_.push_back({heap, cells}); }
  std::byte* at(NetworkPlace place, int pe) {
    if (const unsigned i = n_peers_.fetch_add(1, std::memory_order_relaxed); i < peers_.size())
      peers_[i].store(pe, std::memory_order_relaxed);
    const Places& of = places_[static_cast<std::size_t>(pe)];
    return (place.region == region::gpu_heap ? of.heap : of.cells) + place.offset_bytes;
  }
  /// Of the first operations since the last time, in the order in which they were asked for.
  std::vector<int> take_peers() {
    const unsigned asked = n_peers_.exchange(0);
    return {peers_.begin(), peers_.begin() + std::min<std::ptrdiff_t>(asked, most_peers)};
  }
  void later(std::function<void()> operation) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(operation));
  }
  void quiet() {
    const std::lock_guard lock(mutex_); // also: what another thread has begun to do is done
    for (auto operation = waiting_.rbegin(); operation != waiting_.rend(); ++operation)
      (*operation)();
    waiting_.clear();
  }

private:
  struct Places {
    std::byte *heap, *cells;
  };
  std::vector<Places> places_;
  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;
  // Nothing here may put operations in an order: ThreadSanitizer looks for those that have none.
  static constexpr std::ptrdiff_t most_peers = 64;
  std::array<std::atomic<int>, most_peers> peers_{};
  std::atomic<unsigned> n_peers_{0};
};
inline thread_local HostNetwork* host_network = nullptr;

template <class Word>
Word atomic_there(Word* at, NetworkAtomic op, Word operand, Word compare) {
  constexpr int order = __ATOMIC_ACQ_REL; // what comes by the network comes in order here
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

inline bool network_put(const DeviceJob& job, NetworkPlace target, const void* source,
                        std::uint64_t size_bytes, int pe, bool blocking) {
  if (is_cut(job, pe))
    return false;
  const auto copy = [to = host_network->at(target, pe), source, size_bytes] {
    std::memcpy(to, source, size_bytes);
  };
  if (blocking)
    copy();
  else
    host_network->later(copy);
  return true;
}
inline bool network_get(const DeviceJob& job, void* target, NetworkPlace source,
                        std::uint64_t size_bytes, int pe, bool blocking) {
  if (is_cut(job, pe))
    return false;
  const auto copy = [target, from = host_network->at(source, pe), size_bytes] {
    std::memcpy(target, from, size_bytes);
  };
  if (blocking)
    copy();
  else
    host_network->later(copy);
  return true;
}
inline bool network_put_value(const DeviceJob& job, NetworkPlace target, std::uint64_t value,
                              unsigned size_bytes, int pe) {
  if (is_cut(job, pe))
    return false;
  std::byte* const to = host_network->at(target, pe);
  if (size_bytes == 8)
    store_release(reinterpret_cast<std::uint64_t*>(to), value);
  else if (size_bytes == 4)
    store_release(reinterpret_cast<std::uint32_t*>(to), static_cast<std::uint32_t>(value));
  else
    std::memcpy(to, &value, size_bytes);
  return true;
}
inline bool network_get_value(const DeviceJob& job, NetworkPlace source, unsigned size_bytes,
                              int pe, std::uint64_t& value) {
  value = 0;
  if (is_cut(job, pe))
    return false;
  const std::byte* const from = host_network->at(source, pe);
  if (size_bytes == 8)
    value = load_acquire(reinterpret_cast<const std::uint64_t*>(from));
  else if (size_bytes == 4)
    value = load_acquire(reinterpret_cast<const std::uint32_t*>(from));
  else
    std::memcpy(&value, from, size_bytes);
  return true;
}
/// Done at once: what fetches waits for its answer, and of the others nothing but a quiet tells.
inline bool network_atomic(const DeviceJob& job, NetworkPlace target, NetworkAtomic op,
                           unsigned size_bytes, std::uint64_t operand, std::uint64_t compare,
                           int pe, std::uint64_t* old) {
  if (is_cut(job, pe))
    return false;
  std::byte* const at = host_network->at(target, pe);
  const std::uint64_t before =
      size_bytes == 4
          ? atomic_there(reinterpret_cast<std::uint32_t*>(at), op,
                         static_cast<std::uint32_t>(operand), static_cast<std::uint32_t>(compare))
          : atomic_there(reinterpret_cast<std::uint64_t*>(at), op, operand, compare);
  if (old != nullptr)
    *old = before;
  return true;
}
inline bool network_put_signal(const DeviceJob& job, NetworkPlace target, const void* source,
                               std::uint64_t size_bytes, NetworkPlace signal, std::uint64_t value,
                               bool add, int pe, bool) {
  if (is_cut(job, pe))
    return false;
  std::memcpy(host_network->at(target, pe), source, size_bytes);
  auto* const word = reinterpret_cast<std::uint64_t*>(host_network->at(signal, pe));
  if (add)
    add_release(word, value);
  else
    store_release(word, value);
  return true;
}
inline bool network_fence(const DeviceJob&) {
  host_network->quiet();
  return true;
}
inline bool network_quiet(const DeviceJob&) {
  host_network->quiet();
  return true;
}

} // namespace shmemctl::device
