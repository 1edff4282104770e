// Waits for many file descriptors, of which few are ready at a time.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/epoll.h>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"

namespace shmemctl {

/// Uses epoll(7): the cost of take() depends on the number of ready descriptors only, while a
/// PollSet is built anew from all descriptors for each wait.
class ReadySet {
public:
  /// Throws Error (unavailable).
  ReadySet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_)
      throw system_error("rendezvous", "start", errno, "raise the limit of open files (ulimit -n)");
  }

  /// To be added to a PollSet: it is readable while any of the descriptors is ready.
  int descriptor() const { return epoll_.get(); }
  /// From now on the descriptor is ready while it has input. Throws Error (unavailable).
  /// @param key by which take() names the descriptor
  void add(int descriptor, std::size_t key) {
    if (!control(EPOLL_CTL_ADD, descriptor, key, false))
      throw system_error("rendezvous", "add a socket to epoll", errno,
                         "raise sysctl fs.epoll.max_user_watches, or free host memory");
    ++count_;
  }
  /// If `writing`, the descriptor also counts as ready when it can be written to.
  void set_writing(int descriptor, std::size_t key, bool writing) noexcept {
    control(EPOLL_CTL_MOD, descriptor, key, writing);
  }
  /// To be called before the descriptor is closed: epoll would keep it if it has a duplicate.
  void remove(int descriptor) noexcept {
    if (control(EPOLL_CTL_DEL, descriptor, 0, false))
      --count_;
  }

  struct Ready {
    std::size_t key = 0;
    short events = 0; ///< events of poll(2)
  };
  /// The descriptors that are ready now, each once. Does not wait.
  std::vector<Ready> take() {
    std::vector<Ready> ready;
    if (count_ == 0)
      return ready;
    events_.resize(count_);
    const int found =
        ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
    for (int i = 0; i < found; ++i) {
      const epoll_event& event = events_[static_cast<std::size_t>(i)];
      ready.push_back({static_cast<std::size_t>(event.data.u64), static_cast<short>(event.events)});
    }
    return ready;
  }

private:
  bool control(int operation, int descriptor, std::size_t key, bool writing) noexcept {
    epoll_event event{};
    event.events = EPOLLIN;
    if (writing)
      event.events |= EPOLLOUT;
    event.data.u64 = key;
    return ::epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
  }

  FileDescriptor epoll_;
  std::size_t count_ = 0;
  std::vector<epoll_event> events_;
};

} // namespace shmemctl
