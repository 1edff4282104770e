// The rendezvous' side of the bootstrap: its thread and what it keeps of each PE.
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "src/bootstrap/membership.h"
#include "src/bootstrap/reception.h"
#include "src/bootstrap/uid.h"

namespace shmemctl {

class RendezvousThread final : public Rendezvous {
public:
  RendezvousThread(UniqueId id, std::vector<Listener> listeners, double timeout_s);
  /// PEs that still wait are told that the rendezvous has gone.
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
    FrameReader reader;
    Bytes outbox;
    std::size_t slot = PollSet::none;
    Member(Socket connection, const Join& join)
        : socket(std::move(connection)), rank(join.rank), nonce(join.nonce) {}
  };

  void run() noexcept;
  void serve_round();
  bool finished() const;
  void on_stop();
  void on_deadline();
  void turn_away(Socket socket, const Join& join);
  void greet(Visitor visitor);
  void heed_deadline_of(const Join& join);
  void send_neighbours();
  /// Notifies all PEs once all of them are connected.
  void end_linking();
  void advance(Member& member, short events);
  void hear(Member& member);
  void lost(Member& member);
  void fail(const FailureReport& report);
  static void flush(Member& member);

  const UniqueId id_;
  Deadline end_;   ///< of the rendezvous itself
  Deadline until_; ///< the earliest deadline among it and those who have joined
  Reception reception_;
  Membership membership_;
  std::vector<Member> members_;
  PollSet set_;
  bool all_linked_ = false; ///< and all have been notified
  std::optional<FailureReport> failure_;
  std::set<std::uint64_t> told_; ///< nonces of the PEs that know of the failure
  std::optional<Deadline> stop_until_;

  FileDescriptor wake_;
  std::atomic<bool> stop_{false}, ended_{false};
  std::thread thread_;
};

} // namespace shmemctl
