// The failure detector's thread: holds all connections, forwards failures, answers queries.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <poll.h>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/file_descriptor.h"
#include "src/base/socket.h"
#include "src/runtime/failure_detector_link.h"
#include "src/runtime/failure_detector_state.h"

namespace shmemctl::failure_detector {

/// Runs from construction to destruction. Other threads only hand it connections and wake it.
class Thread {
public:
  /// @param state must outlive this
  /// @param accepts_from the ranks that may say Hello
  Thread(State& state, std::vector<Listener> listeners, const std::vector<int>& accepts_from);
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  /// Sends the remaining data, for at most 200 ms, and closes everything.
  ~Thread();

  /// Takes over a connection that this PE opened and whose Welcome has arrived.
  void add_link(int peer, Socket socket);
  /// Waits until all of `peers` are linked; returns early if the job fails. @return the first peer
  /// that is not linked, or -1
  int wait_linked(const std::vector<int>& peers, const Deadline& deadline);
  /// Waits until the job has failed, at most until the deadline.
  void wait_failed(const Deadline& deadline);

  /// Waits until a PE has printed the job's failure and the neighbours have been notified; false if
  /// the deadline passes first.
  bool wait_printed(const Deadline& deadline);

  /// Makes the thread read the state again: phase, failure, goodbye.
  void wake() noexcept;
  /// As wake(), and waits until all resulting messages have been passed to the kernel's sockets.
  /// Returns false if that takes longer than the timeout.
  bool hand_over(double timeout_s) noexcept;

private:
  using Clock = std::chrono::steady_clock;

  void run();
  void run_once();
  void take_new_links();
  void notify_links();
  void notify_printed();
  void confirm(std::uint64_t request);
  void wait();
  int poll_timeout_ms() const;
  bool accepting() const;

  void accept_pending();
  void drop_oldest_pending();
  void read_pending();
  bool handle(PendingConnection& pending);
  void welcome(PendingConnection& pending, const Hello& hello);
  void read_links();
  void handle(Link& link, Message message);
  void close_link(std::list<Link>::iterator link, const std::string& how);
  /// Sends the notices that the other neighbours got before this connection existed.
  void send_current_state(Link& link);
  void linked(int peer);
  bool is_linked(int peer);

  State& state_;
  std::vector<Listener> listeners_;
  const std::set<int> accepts_from_;
  FileDescriptor wake_;
  std::atomic<bool> stop_{false};

  std::mutex mutex_; // guards the members up to printed_
  std::condition_variable changed_;
  std::vector<Link> new_links_;
  std::set<int> linked_; ///< peers whose connection both ends have confirmed
  std::uint64_t requested_ = 0, handed_over_ = 0;
  bool printed_ = false; ///< a PE has printed the job's failure

  // Used only by the thread.
  std::list<Link> links_;
  std::set<int> departed_; ///< neighbours that have sent goodbye
  std::list<PendingConnection> pending_;
  std::vector<pollfd> polled_;
  bool failure_sent_ = false, printed_sent_ = false, goodbye_sent_ = false;
  Clock::time_point accept_again_at_{};

  std::thread thread_; // declared last: the thread uses everything above
};

} // namespace shmemctl::failure_detector
