// LocalPeers among threads of one process: a meeting point in memory, no sockets.
#pragma once

#include <condition_variable>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/error.h"
#include "src/runtime/memory/local_peers.h"

namespace shmemctl::test {

/// Where the threads meet. Each gets its peers() and uses them in its own thread.
class ThreadPeersGroup {
public:
  explicit ThreadPeersGroup(int slots) : slots_(slots), given_(static_cast<std::size_t>(slots)) {}

  std::unique_ptr<LocalPeers> peers(int slot) { return std::make_unique<Peers>(*this, slot); }

private:
  class Peers final : public LocalPeers {
  public:
    Peers(ThreadPeersGroup& group, int slot) : group_(group), slot_(slot) {}
    int slots() const override { return group_.slots_; }
    int my_slot() const override { return slot_; }
    std::vector<FileDescriptor> exchange(int mine, const Deadline& deadline) override {
      return group_.exchange(slot_, mine, deadline);
    }

  private:
    ThreadPeersGroup& group_;
    int slot_;
  };

  std::vector<FileDescriptor> exchange(int slot, int mine, const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    given_[static_cast<std::size_t>(slot)] = mine;
    meet(lock, deadline);
    std::vector<FileDescriptor> theirs;
    for (int peer = 0; peer < slots_; ++peer) {
      const int given = given_[static_cast<std::size_t>(peer)];
      theirs.emplace_back(peer == slot || given < 0 ? -1 : ::fcntl(given, F_DUPFD_CLOEXEC, 0));
    }
    meet(lock, deadline);
    return theirs;
  }

  void meet(std::unique_lock<std::mutex>& lock, const Deadline& deadline) {
    const std::uint64_t round = round_;
    if (++arrived_ == slots_) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
      return;
    }
    if (!changed_.wait_until(lock, deadline.at(), [&] { return round_ != round; }))
      throw Error(ExitCode::deadline, "the exchange among threads", "end", "the deadline passed",
                  "look at the other threads");
  }

  int slots_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  std::vector<int> given_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

} // namespace shmemctl::test
