// The rendezvous of the `uid` bootstrap: which PEs have joined, and the thread that serves them.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "src/runtime/bootstrap/acceptor.h"
#include "src/runtime/bootstrap/frame.h"
#include "src/runtime/bootstrap/ready_set.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl {

class Membership {
public:
  static constexpr int max_pes = 1 << 20;
  /// A PE listens at this many addresses at most, and its neighbours are sent at most this many.
  static constexpr std::size_t max_addresses = 4;

  enum class Verdict {
    welcome,
    duplicate, ///< a second connection of a PE that has joined already
    conflict   ///< the message is invalid, or contradicts an earlier one: the job has failed
  };
  struct Decision {
    Verdict verdict = Verdict::welcome;
    FailureReport problem; ///< report of a `conflict`: names the PE, or both if two contradict
  };
  /// Adds a PE. The caller has checked that the PE has the job's secret.
  Decision add(const Join& join);

  /// Number of PEs of the job; 0 before the first has joined.
  int size() const { return size_; }
  int joined() const { return static_cast<int>(members_.size()); }
  bool complete() const { return size_ > 0 && joined() == size_; }
  /// "PE 3 (host a, process 12)"
  std::string name(int rank) const;
  /// "2 of 8 PEs have not joined: PE 3, 5"; at most eight are listed.
  std::string missing() const;
  /// May be called once complete() is true.
  Neighbours neighbours_of(int rank) const;

private:
  Decision conflict(const std::string& text, const std::string& fix) const;

  int size_ = 0;
  std::map<int, Join> members_;
};

/// "3, 5, 7 and 4 more"; at most eight are listed.
std::string list_ranks(const std::vector<int>& ranks, std::size_t total);

class RendezvousThread final : public Rendezvous {
public:
  RendezvousThread(UniqueId id, std::vector<Listener> listeners, double timeout_s);
  /// Notifies waiting PEs that the rendezvous has ended.
  ~RendezvousThread() override;
  const UniqueId& id() const override { return id_; }
  /// True once the thread's work is done, whatever the result.
  bool ended() const { return ended_.load(std::memory_order_acquire); }

private:
  struct Member {
    Socket socket;
    int rank = -1;
    std::uint64_t nonce = 0;
    bool linked = false, gone = false;
    bool unsent = false; ///< the outbox has a rest; the socket is polled until it can take it
    FrameReader reader;
    Bytes outbox;
    Member(Socket connection, const Join& join)
        : socket(std::move(connection)), rank(join.rank), nonce(join.nonce) {}
  };

  void run() noexcept;
  void serve_round();
  bool finished() const;
  void on_stop();
  void on_deadline();
  void reject(Socket socket, const Join& join);
  void admit(AcceptedPeer accepted);
  void apply_deadline_of(const Join& join);
  void send_neighbours();
  /// Notifies all PEs once all of them are connected.
  void end_linking();
  void advance(Member& member, short events);
  void read(Member& member);
  void lost(Member& member);
  void fail(const FailureReport& report);
  void flush(Member& member);
  /// Updates `unsent`, and what depends on it, after a change of the outbox.
  void note_unsent(Member& member);
  /// Drops the member: nothing more is sent to it or received from it.
  void drop(Member& member);
  std::size_t key_of(const Member& member) const {
    return static_cast<std::size_t>(&member - members_.data());
  }

  const UniqueId id_;
  Deadline end_;   ///< end of the rendezvous itself
  Deadline until_; ///< `end_`, or shortly before the deadline of a PE that has joined, if earlier
  Acceptor acceptor_;
  Membership membership_;
  std::vector<Member> members_; ///< members in the order in which they joined
  ReadySet ready_;              ///< sockets of the members
  // Numbers of linked and of unsent members: a message must not cost a search through all members.
  int linked_count_ = 0;
  std::size_t unsent_count_ = 0;
  PollSet set_;
  bool all_linked_ = false; ///< all members are linked, and all have been notified
  std::optional<FailureReport> failure_;
  std::set<std::uint64_t> notified_; ///< nonces of the PEs that were sent the failure
  std::optional<Deadline> stop_until_;

  FileDescriptor wake_;
  std::atomic<bool> stop_{false}, ended_{false};
  std::thread thread_;
};

} // namespace shmemctl
