// Connects to a PE or a rendezvous that may have several addresses and may not be listening yet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/socket.h"
#include "src/runtime/bootstrap/frame.h"
#include "src/runtime/bootstrap/poll_set.h"

namespace shmemctl {

/// How a PE identifies itself on a connection: the frame that it sends, and the job's secret, with
/// which it proves that it belongs to the job.
struct Introduction {
  FrameKind kind = FrameKind::join;
  Bytes contents; ///< Join or Hello
  Secret secret{};
};

/// Tries the addresses in rounds: the next one when those before it have failed, or in addition to
/// them after a second. Requests the connection, answers the challenge with the introduction, and
/// is done when the other side's `welcome` proves that it has the secret too. An address that
/// refuses connections is tried again in the next round. Throws Error at the end of a round if the
/// other side has sent a reason for refusing this PE, or if no address is worth another attempt.
class Dialer {
public:
  Dialer(std::string peer, const std::vector<SocketAddress>& addresses, Introduction introduction);

  /// Starts the connection attempts that are due, and adds their sockets to `set`.
  void prepare(PollSet& set);
  /// Sends and reads without blocking. True once the other side has sent its welcome; then take()
  /// returns the socket.
  bool advance(const PollSet& set);
  Socket take() { return std::move(welcomed_); }
  /// To be called if the connection that was taken has ended: tries all addresses again, after a
  /// pause.
  void dial_again(const std::string& problem);
  bool done() const { return done_; }
  const std::string& peer() const { return peer_; }

  /// The problem of the first address that has one, e.g. "10.0.0.2:4711: no answer". The addresses
  /// are sorted, best first.
  std::string problem() const;
  /// Throws the timeout error, which says what was tried and why it failed.
  [[noreturn]] void give_up() const;

private:
  struct Attempt {
    Socket socket;
    std::size_t address; ///< index
    std::size_t slot = PollSet::none;
    bool connected = false;
    Handshake handshake;
    bool challenged = false;
    Bytes outbox;
    std::size_t sent_bytes = 0;
    FrameReader reader;
    Attempt(Socket made, std::size_t to) : socket(std::move(made)), address(to) {}
  };
  enum class Step { wait, failed, welcome };

  void start_next();
  void end_of_round();
  Step step(Attempt& attempt);
  Step check_connected(Attempt& attempt);
  Step read_response(Attempt& attempt);
  Step reply_to_challenge(Attempt& attempt);
  bool is_welcome(const Attempt& attempt) const;
  void note(std::size_t address, const std::string& problem, bool may_retry);

  std::string peer_;
  std::vector<SocketAddress> addresses_;
  const Introduction introduction_;
  std::vector<Attempt> attempts_;
  std::size_t next_address_ = 0;
  Deadline::Clock::time_point last_start_{}, next_round_{};
  double pause_s_;
  bool worth_retrying_ = false; ///< some address of this round may answer later
  std::optional<FailureReport> refusal_;
  std::vector<std::string> problems_; ///< latest problem of each address; empty if it has none
  Socket welcomed_;
  std::size_t welcomed_at_ = 0; ///< index of its address
  bool done_ = false;
};

/// Waits until the dialer has connected, and returns its socket. Throws Error.
Socket dial(Dialer& dialer, const Deadline& deadline);

} // namespace shmemctl
