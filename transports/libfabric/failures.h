// Failures of peers. The thread that polls records them, and the thread that waits throws them.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"

namespace shmemctl::fabric {

/// The text of a step in an Error about a peer: "PE 2: cannot put".
inline std::string attempted_on_peer(std::string_view step) {
  return step.starts_with("atomic") ? "perform an atomic operation" : std::string(step);
}

/// Thread safe. Keeps the first failure of each peer.
class Failures {
public:
  explicit Failures(int n_pes) : failed_(static_cast<std::size_t>(n_pes)) {}

  void add(int pe, const void* waiter, const Error& error) {
    const std::lock_guard lock(mutex_);
    errors_.emplace(pe, error);
    waiters_.emplace(waiter, pe);
    failed_[static_cast<std::size_t>(pe)].store(true, std::memory_order_release);
    any_.store(true, std::memory_order_release);
  }
  bool any() const { return any_.load(std::memory_order_acquire); }
  bool has(int pe) const {
    return failed_[static_cast<std::size_t>(pe)].load(std::memory_order_acquire);
  }
  /// The first peer on which an operation of this waiter failed; -1 if none failed. Clears the
  /// record.
  int take_peer_of(const void* waiter) {
    const std::lock_guard lock(mutex_);
    const auto found = waiters_.find(waiter);
    if (found == waiters_.end())
      return -1;
    const int pe = found->second;
    waiters_.erase(found);
    return pe;
  }
  std::optional<Error> of(int pe) const {
    const std::lock_guard lock(mutex_);
    const auto found = errors_.find(pe);
    return found == errors_.end() ? std::nullopt : std::optional<Error>(found->second);
  }

private:
  mutable std::mutex mutex_;
  std::map<int, Error> errors_;
  std::map<const void*, int> waiters_;
  std::vector<std::atomic<bool>> failed_;
  std::atomic<bool> any_{false};
};

} // namespace shmemctl::fabric
