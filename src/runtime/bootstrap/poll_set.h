// The file descriptors of one poll(2), built anew for each wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <poll.h>
#include <vector>

namespace shmemctl {

class PollSet {
public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void clear() {
    entries_.clear();
    wait_ms_ = longest_wait_ms;
  }
  /// @returns the slot to ask events() for
  std::size_t add(int descriptor, short events) {
    entries_.push_back({descriptor, events, 0});
    return entries_.size() - 1;
  }
  /// Limits the next wait() to this time.
  void wake_after(int wait_ms) { wait_ms_ = std::clamp(wait_ms, 0, wait_ms_); }
  void wait() {
    // If poll() was interrupted, no descriptor is ready, and the caller checks its deadline as
    // usual.
    if (poll(entries_.data(), entries_.size(), wait_ms_) < 0)
      for (pollfd& entry : entries_)
        entry.revents = 0;
  }
  short events(std::size_t slot) const { return slot == none ? short{0} : entries_[slot].revents; }

private:
  static constexpr int longest_wait_ms = 50;
  std::vector<pollfd> entries_;
  int wait_ms_ = longest_wait_ms;
};

} // namespace shmemctl
