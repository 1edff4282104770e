// Executes the rounds of the bootstrap's collectives over the connections to the neighbours.
#pragma once

#include <optional>
#include <vector>

#include "src/base/job_health.h"
#include "src/runtime/bootstrap/collective_plan.h"
#include "src/runtime/bootstrap/connect_peers.h"
#include "src/runtime/bootstrap/poll_set.h"

namespace shmemctl {

/// Error::attempted() of errors in a collective call.
inline constexpr const char* call_attempted = "complete";

/// A PE that fails sends a report on all of its connections and closes them; its neighbours read
/// the report in whatever call they wait, and forward it. A PE that loses a neighbour does the
/// same.
class PeerLinks final : public Links {
public:
  PeerLinks(int rank, int size, NeighbourSockets sockets);

  void watch(JobHealth& health) { health_ = &health; }
  int levels() const override { return static_cast<int>(forward_.size()); }
  /// Throws Error: over 1 GiB, deadline passed, a PE was lost or failed, or PEs are not in step.
  void exchange(const CallLabel& call, int round, const Transfer& transfer,
                const Deadline& deadline) override;

  /// Sends the failure of the job on every connection, without blocking. A failure that was
  /// received from another PE is forwarded instead.
  void send_failure(const FailureReport& report) noexcept;
  /// Says goodbye and waits until the neighbours have done so as well, for two seconds at most.
  void say_goodbye(const Deadline& deadline) noexcept;
  bool empty() const { return forward_.empty(); }

private:
  struct Link {
    Socket socket;
    int peer = -1;
    bool sending = false; ///< part of a frame has been sent
    bool ended = false;   ///< the peer has said goodbye, or sending to it has failed
    Bytes stash;          ///< bytes that were read ahead
    std::size_t stash_at = 0;
    std::size_t slot = PollSet::none;
  };
  struct Sending;
  struct Receiving;

  bool advance(Sending& sending);
  bool advance(Receiving& receiving);
  void check_header(Receiving& receiving);
  std::size_t take(Link& link, std::byte* to, std::size_t size_bytes);
  void wait(const CallLabel& call, Link* sending, Link* receiving, const Deadline& deadline);
  void on_hangup(const CallLabel& call, Link& link);
  /// Reads everything that has arrived into the stash. False if the connection has ended.
  static bool read_ahead(Link& link);
  /// Looks in the stash for a goodbye or a failure. Throws Error if it contains a failure.
  void scan(const CallLabel& call, Link& link);
  [[noreturn]] void fail_with(const CallLabel& call, const std::optional<FailureReport>& report);
  [[noreturn]] void lost(const CallLabel& call, const Link& link, const std::string& problem);
  [[noreturn]] void not_in_step(const CallLabel& local, const FrameHeader& remote, int peer) const;
  static void send_whole(Link& link, const Bytes& frame);
  template <class Action>
  void for_each_link(const Action& action);

  int rank_;
  std::vector<Link> forward_, backward_;
  PollSet set_;
  Bytes staging_;
  std::optional<FailureReport> received_failure_;
  JobHealth nobody_;
  JobHealth* health_ = &nobody_;
};

} // namespace shmemctl
