#include <algorithm>
#include <cerrno>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/timeout_words.h"
#include "src/bootstrap/collective_plan.h"
#include "src/bootstrap/connect_peers.h"
#include "src/bootstrap/interfaces.h"
#include "src/bootstrap/rendezvous.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_listeners = 4, max_problems = 4;
/// A PE that cannot connect reports it this long before its deadline, or at 4/5 of it: before the
/// rendezvous times out for all, which knows only which PEs are not connected.
constexpr double earlier_s = 1, earlier_share = 0.2;

void add_once(std::vector<SocketAddress>& addresses, const SocketAddress& address) {
  const auto same = [&address](const SocketAddress& other) {
    return same_host_address(address, other);
  };
  if (std::none_of(addresses.begin(), addresses.end(), same))
    addresses.push_back(address);
}

/// From where this host reaches the rendezvous.
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
  // A rendezvous on loopback: all PEs are on this host.
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

class Linking {
public:
  Linking(const ConnectRequest& request, std::vector<Listener> listeners)
      : request_(request), acceptor_(std::move(listeners), request.secret) {
    const int levels = levels_of(request.size);
    sockets_.backward.resize(static_cast<std::size_t>(levels));
    sockets_.forward.resize(static_cast<std::size_t>(levels));
    missing_back_ = levels;
    for (int level = 0; level < levels; ++level)
      dialers_.push_back(make_dialer(level));
    missing_forth_ = levels;
  }

  NeighbourSockets run(const Deadline& deadline) {
    const double span_s = deadline.remaining_s();
    say_by_ = deadline.at_most(
        std::chrono::duration<double>(span_s - std::min(earlier_s, span_s * earlier_share)));
    try {
      while (missing_forth_ > 0 || missing_back_ > 0)
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

  void wait(const Deadline& deadline) {
    set_.clear();
    for (Dialer& dialer : dialers_)
      if (!dialer.done())
        dialer.prepare(set_);
    if (missing_back_ > 0)
      acceptor_.prepare(set_);
    const std::size_t rendezvous_slot = set_.add(request_.rendezvous->descriptor(), POLLIN);
    set_.wake_after((missing_forth_ > 0 ? say_by_ : deadline).poll_ms());
    set_.wait();
    if (set_.events(rendezvous_slot) != 0)
      hear_rendezvous(deadline);
    for (std::size_t level = 0; level < dialers_.size(); ++level)
      if (!dialers_[level].done() && dialers_[level].advance(set_)) {
        sockets_.forward[level] = dialers_[level].take();
        --missing_forth_;
      }
    if (missing_back_ > 0)
      acceptor_.advance(set_, FrameKind::hello,
                        [this](AcceptedPeer accepted) { let_in(std::move(accepted)); });
    if (missing_forth_ > 0 && say_by_.passed())
      give_up_dialing();
    if (missing_back_ > 0 && deadline.passed())
      give_up_waiting();
  }

  /// It says nothing any more unless another PE has failed.
  [[noreturn]] void hear_rendezvous(const Deadline& deadline) {
    heard_ = FailureReport::decode(await_from_rendezvous(*request_.rendezvous, deadline).payload());
    throw error_of(heard_.value_or(FailureReport{}), request_.rendezvous->peer(),
                   "join the job of");
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
      shmemctl::refuse(std::move(accepted.socket),
                       {ExitCode::unavailable, request_.rank,
                        "a PE of another job, or another PE of this job, listens there",
                        "give each job its own unique id"});
      return;
    }
    Socket& place = sockets_.backward[hello->level];
    // The peer has tried two addresses: the first connection is in use, and it will drop this one.
    // Unless the first has closed meanwhile: then the peer has not received its Welcome.
    if (place && !has_ended(place))
      return;
    if (!say_welcome(accepted))
      return;
    accepted.socket.set_peer("PE " + std::to_string(hello->from));
    const bool is_new = !place;
    place = std::move(accepted.socket);
    if (is_new && --missing_back_ == 0)
      acceptor_.close();
  }

  static bool has_ended(const Socket& socket) {
    char byte = 0;
    const ssize_t count = ::recv(socket.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }

  static bool say_welcome(AcceptedPeer& accepted) {
    try {
      return accepted.socket.send_some(accepted.welcome.data(), accepted.welcome.size()) ==
             accepted.welcome.size();
    } catch (const Error&) {
      return false;
    }
  }

  std::string self() const {
    return "PE " + std::to_string(request_.rank) +
           (request_.who.empty() ? "" : " (" + request_.who + ")");
  }

  /// This PE knows the addresses and what is wrong with them; those that wait for it, and the
  /// rendezvous, do not.
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
        "BOOTSTRAP_UID_SOCK_IFNAME; if a PE is stopped or slow, check its output, or " +
            raise_timeout());
  }

  [[noreturn]] void give_up_waiting() const {
    std::vector<int> ranks;
    for (std::size_t level = 0; level < sockets_.backward.size(); ++level) {
      const int rank = backward_neighbour(request_.rank, request_.size, static_cast<int>(level));
      if (!sockets_.backward[level] && std::find(ranks.begin(), ranks.end(), rank) == ranks.end())
        ranks.push_back(rank);
    }
    throw Error(ExitCode::deadline, self(),
                "accept connections from PE " + list_ranks(ranks, ranks.size()), "timed out",
                "check the output of these PEs and the firewall between the hosts, or " +
                    raise_timeout());
  }

  void tell_connected(const Error& error) noexcept {
    const FailureReport report = heard_ ? *heard_ : report_of(error, request_.rank);
    for (std::vector<Socket>* sockets : {&sockets_.forward, &sockets_.backward})
      for (Socket& socket : *sockets)
        if (socket)
          shmemctl::refuse(std::move(socket), report);
    if (!heard_)
      shmemctl::refuse(std::move(*request_.rendezvous), report);
  }

  const ConnectRequest request_;
  Acceptor acceptor_;
  NeighbourSockets sockets_;
  std::vector<Dialer> dialers_;
  std::optional<FailureReport> heard_; ///< why the job has failed elsewhere
  int missing_forth_ = 0, missing_back_ = 0;
  Deadline say_by_{Deadline::Clock::time_point{}}; ///< what keeps this PE from its neighbours
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
    if (listeners.size() >= max_listeners)
      break;
    try {
      listeners.emplace_back(address);
    } catch (const Error& error) {
      problem = error.message();
    }
  }
  if (listeners.empty())
    throw Error(ExitCode::unavailable, self(), "listen for its neighbours", problem,
                "check the interfaces and the limit of open files");
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
                  "check the output of the PE that created the unique id, usually PE 0, or " +
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
