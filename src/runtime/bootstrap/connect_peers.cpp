#include <algorithm>
#include <list>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/runtime/bootstrap/collective_plan.h"
#include "src/runtime/bootstrap/connect_peers.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "src/runtime/bootstrap/rendezvous.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_problems = 4;
/// A PE that cannot connect reports this 1 s before its deadline, or after 4/5 of the time if that
/// is later. So it precedes the timeout of the rendezvous, which only knows which PEs are not
/// connected.
constexpr double earlier_s = 1, earlier_share = 0.2;
constexpr const char* connection_ended = "the connection ended before all PEs were connected";

void add_once(std::vector<SocketAddress>& addresses, const SocketAddress& address) {
  const auto same = [&address](const SocketAddress& other) {
    return same_host_address(address, other);
  };
  if (std::none_of(addresses.begin(), addresses.end(), same))
    addresses.push_back(address);
}

/// The addresses from which this host reaches the rendezvous.
std::vector<SocketAddress> sources(const UniqueId& id) {
  std::vector<SocketAddress> found;
  for (const SocketAddress& address : id.addresses)
    for (const SocketAddress& form : reachable_forms(address))
      if (const std::optional<SocketAddress> source = source_address(form))
        add_once(found, *source);
  return found;
}

std::vector<SocketAddress> advertised_addresses(const UniqueId& id, const InterfaceFilter& filter) {
  std::vector<SocketAddress> near = sources(id);
  const auto only_here = [](const SocketAddress& address) { return is_loopback(address); };
  // If the rendezvous is on loopback, all PEs are on this host.
  if (std::all_of(id.addresses.begin(), id.addresses.end(), only_here) && !near.empty())
    return near;
  const std::vector<SocketAddress> usable = usable_addresses(filter);
  const bool filtered = !filter.names.empty() || !filter.family.empty();
  std::vector<SocketAddress> offered;
  for (const SocketAddress& address : near) {
    const bool is_usable = std::any_of(usable.begin(), usable.end(), [&](const auto& other) {
      return same_host_address(address, other);
    });
    if (!is_loopback(address) && (is_usable || !filtered))
      add_once(offered, address);
  }
  for (const SocketAddress& address : usable)
    if (offered.empty() || !is_loopback(address))
      add_once(offered, address);
  return offered;
}

/// An accepted connection of a neighbour at -2^k. It is used after the neighbour has confirmed it:
/// until then the neighbour may abandon it and connect again.
struct Candidate {
  Socket socket;
  FrameReader reader;
  std::size_t slot = PollSet::none;
};

/// False if the connection has ended, or does not take the whole frame at once, as a new connection
/// does.
bool send_now(Socket& socket, const Bytes& frame) {
  try {
    return socket.send_some(frame.data(), frame.size()) == frame.size();
  } catch (const Error&) {
    return false;
  }
}

/// After request and challenge, three messages establish a connection: the hello of the PE that
/// dials, the welcome of the PE that listens, and `linked` of the PE that dials, on the connection
/// that it keeps. A PE that has dialed and loses the connection dials again; the latest connection
/// that it confirms replaces the earlier ones. Therefore all PEs keep listening until the
/// rendezvous reports that all of them are connected.
class Linking {
public:
  Linking(const ConnectRequest& request, std::vector<Listener> listeners)
      : request_(request), acceptor_(std::move(listeners), request.secret) {
    const int levels = levels_of(request.size);
    for (int level = 0; level < levels; ++level)
      dialers_.push_back(make_dialer(level));
    sockets_.backward.resize(dialers_.size());
    sockets_.forward.resize(dialers_.size());
    candidates_.resize(dialers_.size());
    back_slots_.resize(dialers_.size(), PollSet::none);
    forth_slots_.resize(dialers_.size(), PollSet::none);
  }

  NeighbourSockets run(const Deadline& deadline) {
    const double span_s = deadline.remaining_s();
    say_by_ = deadline.at_most(
        std::chrono::duration<double>(span_s - std::min(earlier_s, span_s * earlier_share)));
    try {
      while (dials() || awaits_neighbours())
        wait(deadline);
      const Bytes linked = encode_frame(FrameKind::linked);
      request_.rendezvous->send_all(linked.data(), linked.size(), deadline);
      linked_ = true;
      while (!all_linked_)
        wait(deadline);
    } catch (const Error& error) {
      tell_connected(error);
      throw;
    }
    return std::move(sockets_);
  }

private:
  Dialer make_dialer(int level) const {
    const int peer = forward_neighbour(request_.rank, request_.size, level);
    const std::string name = "PE " + std::to_string(peer);
    const std::vector<SocketAddress> addresses =
        parse_foreign_addresses(request_.neighbours->addresses[static_cast<std::size_t>(level)]);
    const Hello hello{request_.rank, peer, static_cast<std::uint32_t>(level)};
    return {name, addresses, Introduction{FrameKind::hello, hello.encode(), request_.secret}};
  }

  bool dials() const {
    return std::any_of(dialers_.begin(), dialers_.end(),
                       [](const Dialer& dialer) { return !dialer.done(); });
  }
  bool awaits_neighbours() const {
    return std::any_of(sockets_.backward.begin(), sockets_.backward.end(),
                       [](const Socket& socket) { return !socket; });
  }

  void wait(const Deadline& deadline) {
    set_.clear();
    for (std::size_t level = 0; level < dialers_.size(); ++level)
      prepare(level);
    acceptor_.prepare(set_);
    const std::size_t rendezvous_slot = set_.add(request_.rendezvous->descriptor(), POLLIN);
    set_.wake_after((dials() ? say_by_ : deadline).poll_ms());
    set_.wait();
    if (set_.events(rendezvous_slot) != 0)
      read_rendezvous(deadline);
    // Also in the last turn, because a neighbour may have confirmed a connection just before.
    for (std::size_t level = 0; level < dialers_.size(); ++level)
      advance(level);
    acceptor_.advance(set_, FrameKind::hello,
                      [this](AcceptedPeer accepted) { let_in(std::move(accepted)); });
    if (all_linked_)
      return;
    if (dials() && say_by_.passed())
      give_up_dialing();
    if (deadline.passed())
      give_up_waiting();
  }

  void prepare(std::size_t level) {
    forth_slots_[level] = back_slots_[level] = PollSet::none;
    if (!dialers_[level].done())
      dialers_[level].prepare(set_);
    else
      forth_slots_[level] = set_.add(sockets_.forward[level].descriptor(), POLLRDHUP);
    for (Candidate& candidate : candidates_[level])
      candidate.slot = set_.add(candidate.socket.descriptor(), POLLIN);
    // Once this PE has reported that it is connected, only a new connection replaces this one.
    if (!linked_ && sockets_.backward[level])
      back_slots_[level] = set_.add(sockets_.backward[level].descriptor(), POLLRDHUP);
  }

  void advance(std::size_t level) {
    if (set_.events(back_slots_[level]) != 0)
      sockets_.backward[level].close();
    candidates_[level].remove_if([this, level](Candidate& candidate) {
      return set_.events(candidate.slot) != 0 && !read_candidate(level, candidate);
    });
    Dialer& dialer = dialers_[level];
    if (!dialer.done()) {
      if (dialer.advance(set_))
        confirm(level);
    } else if (set_.events(forth_slots_[level]) != 0) {
      // The socket stays until another one replaces it: if none does before all others are
      // connected, the first collective says that the PE is lost.
      dialer.dial_again(connection_ended);
    }
  }

  void confirm(std::size_t level) {
    Socket socket = dialers_[level].take();
    if (send_now(socket, encode_frame(FrameKind::linked)))
      sockets_.forward[level] = std::move(socket);
    else
      dialers_[level].dial_again(connection_ended);
  }

  /// Whether to keep polling the candidate: false if it has become the connection or was rejected.
  bool read_candidate(std::size_t level, Candidate& candidate) {
    try {
      candidate.reader.read(candidate.socket);
    } catch (const Error&) {
      return false;
    }
    if (candidate.reader.problem() != HeaderProblem::none)
      return false;
    if (!candidate.reader.complete())
      return true;
    if (candidate.reader.header().kind == FrameKind::linked)
      sockets_.backward[level] = std::move(candidate.socket);
    return false;
  }

  /// Reads the report that all PEs are connected. Throws Error if another PE has failed instead.
  void read_rendezvous(const Deadline& deadline) {
    const FrameReader frame = await_from_rendezvous(*request_.rendezvous, deadline);
    all_linked_ = linked_ && frame.header().kind == FrameKind::linked;
    if (all_linked_)
      return;
    peer_failure_ = FailureReport::decode(frame.payload());
    throw error_of(peer_failure_.value_or(FailureReport{}), request_.rendezvous->peer(),
                   "join the job");
  }

  void let_in(AcceptedPeer accepted) {
    const std::optional<Hello> hello = Hello::decode(accepted.contents);
    if (!hello)
      return;
    const bool is_neighbour = hello->to == request_.rank &&
                              hello->level < sockets_.backward.size() &&
                              hello->from == backward_neighbour(request_.rank, request_.size,
                                                                static_cast<int>(hello->level));
    if (!accepted.proven || !is_neighbour) {
      shmemctl::refuse(
          std::move(accepted.socket),
          {ExitCode::unavailable, request_.rank,
           "the process that listens there is a PE of another job, or another PE of this job",
           "give each job its own unique id, and start it again"});
      return;
    }
    if (!send_now(accepted.socket, accepted.welcome))
      return;
    accepted.socket.set_peer("PE " + std::to_string(hello->from));
    candidates_[hello->level].push_back(
        Candidate{std::move(accepted.socket), FrameReader(), PollSet::none});
  }

  std::string self() const {
    return "PE " + std::to_string(request_.rank) +
           (request_.who.empty() ? "" : " (" + request_.who + ")");
  }

  /// Throws the timeout error with the addresses and their problems. Only this PE knows them: the
  /// PEs that wait for it, and the rendezvous, do not.
  [[noreturn]] void give_up_dialing() const {
    std::vector<std::string> peers, problems;
    for (const Dialer& dialer : dialers_)
      if (!dialer.done() && std::count(peers.begin(), peers.end(), dialer.peer()) == 0) {
        peers.push_back(dialer.peer());
        problems.push_back(dialer.peer() + " at " + dialer.problem());
      }
    if (problems.size() > max_problems)
      problems.resize(max_problems);
    throw Error(
        ExitCode::deadline, self(), "connect to " + join(peers, ", "),
        "timed out: " + join(problems, "; "),
        "allow TCP between these hosts (firewall, routes), or name an interface with a route in "
        "SHMEMCTL_BOOTSTRAP_UID_SOCK_IFNAME; if a PE is stopped or slow, check its output, or " +
            raise_timeout());
  }

  [[noreturn]] void give_up_waiting() const {
    std::vector<int> ranks;
    for (std::size_t level = 0; level < sockets_.backward.size(); ++level) {
      const int rank = backward_neighbour(request_.rank, request_.size, static_cast<int>(level));
      if (!sockets_.backward[level] && std::find(ranks.begin(), ranks.end(), rank) == ranks.end())
        ranks.push_back(rank);
    }
    if (ranks.empty())
      throw Error(ExitCode::deadline, request_.rendezvous->peer(), "join the job",
                  "timed out before all PEs were connected",
                  "check the output of the process that made the unique id, usually PE 0, or " +
                      raise_timeout());
    throw Error(ExitCode::deadline, self(),
                "accept connections from PE " + list_ranks(ranks, ranks.size()), "timed out",
                "check the output of these PEs and the firewall between the hosts, or " +
                    raise_timeout());
  }

  void tell_connected(const Error& error) noexcept {
    const FailureReport report = peer_failure_ ? *peer_failure_ : report_of(error, request_.rank);
    for (std::vector<Socket>* sockets : {&sockets_.forward, &sockets_.backward})
      for (Socket& socket : *sockets)
        if (socket)
          shmemctl::refuse(std::move(socket), report);
    if (!peer_failure_)
      shmemctl::refuse(std::move(*request_.rendezvous), report);
  }

  const ConnectRequest request_;
  Acceptor acceptor_;
  NeighbourSockets sockets_;
  // By level, as the sockets are.
  std::vector<Dialer> dialers_;
  std::vector<std::list<Candidate>> candidates_;
  std::vector<std::size_t> forth_slots_, back_slots_;
  std::optional<FailureReport> peer_failure_; ///< set if the job has failed elsewhere
  bool linked_ = false, all_linked_ = false;  ///< this PE, and all PEs of the job, are connected
  Deadline say_by_{Deadline::Clock::time_point{}}; ///< when to report that this PE cannot connect
  PollSet set_;
};

} // namespace

std::vector<Listener> listen_for_neighbours(const UniqueId& id, const InterfaceFilter& filter) {
  std::vector<Listener> listeners;
  if (!id.addresses.empty() && id.addresses.front().family() == AF_UNIX) {
    listeners.emplace_back(SocketAddress::abstract_unix(random_unix_name()));
    return listeners;
  }
  std::string problem = "no address of this host leads to the rendezvous";
  for (const SocketAddress& address : advertised_addresses(id, filter)) {
    if (listeners.size() >= Membership::max_addresses)
      break;
    try {
      listeners.emplace_back(address);
    } catch (const Error& error) {
      problem = error.message();
    }
  }
  if (listeners.empty())
    throw Error(ExitCode::unavailable, "bootstrap", "listen for other PEs", problem,
                "check the interfaces and the limit of open files (ulimit -n)");
  return listeners;
}

NeighbourSockets connect_neighbours(const ConnectRequest& request, std::vector<Listener> listeners,
                                    const Deadline& deadline) {
  return Linking(request, std::move(listeners)).run(deadline);
}

FrameReader await_from_rendezvous(Socket& rendezvous, const Deadline& deadline) {
  FrameReader reader;
  PollSet set;
  for (;;) {
    reader.read(rendezvous);
    if (reader.problem() != HeaderProblem::none)
      throw Error(ExitCode::unavailable, rendezvous.peer(), "read from the rendezvous",
                  "malformed message", "run the same version of shmemctl on all hosts");
    if (reader.complete())
      return reader;
    if (deadline.passed())
      throw Error(ExitCode::deadline, rendezvous.peer(), "join the job",
                  "timed out without a reply",
                  "check the output of the process that made the unique id, usually PE 0, or " +
                      raise_timeout());
    set.clear();
    set.add(rendezvous.descriptor(), POLLIN);
    set.wake_after(deadline.poll_ms());
    set.wait();
  }
}

FailureReport report_of(const Error& error, int rank) {
  return {error.code(), rank, error.message(), error.fix()};
}

Error error_of(const FailureReport& report, const std::string& subject,
               const std::string& attempted) {
  const std::string by =
      report.reporter < 0 ? "" : " (says PE " + std::to_string(report.reporter) + ")";
  return {report.code, subject, attempted, report.text + by, report.fix};
}

} // namespace shmemctl
