#include "src/runtime/bootstrap/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/service_thread.h"
#include "src/base/text.h"
#include "src/runtime/bootstrap/collective_plan.h"
#include "src/runtime/bootstrap/interfaces.h"

namespace shmemctl {

namespace {
constexpr std::size_t max_listed = 8;
} // namespace

std::string list_ranks(const std::vector<int>& ranks, std::size_t total) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(ranks.size(), max_listed); ++i)
    parts.push_back(std::to_string(ranks[i]));
  std::string text = join(parts, ", ");
  if (total > parts.size())
    text += " and " + std::to_string(total - parts.size()) + " more";
  return text;
}

Membership::Decision Membership::conflict(const std::string& text, const std::string& fix) const {
  return {Verdict::conflict, {ExitCode::usage, -1, text, fix}};
}

Membership::Decision Membership::add(const Join& join) {
  const std::string its_size = std::to_string(join.size);
  if (join.size < 1 || join.size > max_pes)
    return conflict(join.who + " says that its job has " + its_size + " PEs",
                    "pass a size of the job from 1 to " + std::to_string(max_pes));
  if (size_ == 0)
    size_ = join.size;
  if (join.rank < 0 || join.rank >= join.size)
    return conflict(join.who + " has rank " + std::to_string(join.rank) + " in a job of " +
                        its_size + " PEs",
                    "give every PE its own rank from 0 to " + std::to_string(join.size - 1));
  if (join.size != size_)
    return conflict((members_.empty() ? "another PE" : name(members_.begin()->first)) +
                        " says that the job has " + std::to_string(size_) + " PEs, and PE " +
                        std::to_string(join.rank) + " (" + join.who + ") says " + its_size,
                    "pass the same size of the job to all PEs, or give each job its own id");
  const auto [member, added] = members_.emplace(join.rank, join);
  if (!added && member->second.nonce == join.nonce)
    return {Verdict::duplicate, {}};
  if (!added)
    return conflict("rank " + std::to_string(join.rank) +
                        " was given to two PEs: " + member->second.who + " and " + join.who,
                    "give every PE its own rank from 0 to " + std::to_string(join.size - 1));
  return {Verdict::welcome, {}};
}

std::string Membership::name(int rank) const {
  const auto member = members_.find(rank);
  const std::string who = member == members_.end() ? "" : " (" + member->second.who + ")";
  return "PE " + std::to_string(rank) + who;
}

std::string Membership::missing() const {
  std::vector<int> ranks;
  int next = 0;
  for (const auto& [rank, member] : members_) {
    for (; next < rank && ranks.size() < max_listed; ++next)
      ranks.push_back(next);
    next = rank + 1;
  }
  for (; next < size_ && ranks.size() < max_listed; ++next)
    ranks.push_back(next);
  const auto total = static_cast<std::size_t>(size_ - joined());
  return std::to_string(total) + " of " + std::to_string(size_) + " PEs " +
         (total == 1 ? "has" : "have") + " not joined: PE " + list_ranks(ranks, total);
}

Neighbours Membership::neighbours_of(int rank) const {
  Neighbours neighbours;
  for (int level = 0; level < levels_of(size_); ++level) {
    std::vector<std::string> addresses =
        members_.at(forward_neighbour(rank, size_, level)).addresses;
    addresses.resize(std::min(addresses.size(), max_addresses));
    neighbours.addresses.push_back(std::move(addresses));
  }
  return neighbours;
}

namespace {

/// A rendezvous that is stopped stays this long at most, to send the failure to PEs that join only
/// now: otherwise they would try to reach it until their deadline.
constexpr std::chrono::duration<double> last_stay{1.0};
/// PEs are notified of the timeout 0.5 s before the earliest deadline of a PE that has joined, or
/// after 9/10 of the time if that is later.
constexpr double rendezvous_earlier_s = 0.5, rendezvous_earlier_share = 0.1;
constexpr std::size_t max_names = 4; // in one message, whose length is limited

} // namespace

RendezvousThread::RendezvousThread(UniqueId id, std::vector<Listener> listeners, double timeout_s)
    : id_(std::move(id)), end_(Deadline::after(std::chrono::duration<double>(timeout_s))),
      until_(end_), acceptor_(std::move(listeners), id_.secret),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_)
    throw system_error("rendezvous", "start", errno, "raise the limit of open files (ulimit -n)");
  thread_ = start_service_thread("rendezvous", [this] { run(); });
}

RendezvousThread::~RendezvousThread() {
  stop_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // If the write fails, the thread reads the flag at the end of its longest poll.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void RendezvousThread::run() noexcept {
  while (!finished()) {
    try {
      serve_round();
    } catch (const Error& error) {
      fail({error.code(), -1, error.message(), error.fix()});
      acceptor_.close();
    } catch (const std::exception& error) {
      fail({ExitCode::unavailable, -1, std::string("the rendezvous failed: ") + error.what(),
            "check the free memory of its host"});
      acceptor_.close();
    }
  }
  acceptor_.close();
  members_.clear();
  ended_.store(true, std::memory_order_release);
}

bool RendezvousThread::finished() const {
  const auto size = static_cast<std::size_t>(membership_.size());
  const bool flushed = unsent_count_ == 0;
  if (stop_until_ && stop_until_->passed())
    return true;
  if (!failure_)
    return all_linked_ && (flushed || until_.passed());
  const bool all_told = size > 0 && notified_.size() >= size;
  return flushed && (all_told || acceptor_.listeners().empty() || end_.passed());
}

void RendezvousThread::serve_round() {
  set_.clear();
  const std::size_t wake_slot = stop_until_ ? PollSet::none : set_.add(wake_.get(), POLLIN);
  acceptor_.prepare(set_);
  const std::size_t members_slot = set_.add(ready_.descriptor(), POLLIN);
  if (!failure_)
    set_.wake_after(until_.poll_ms());
  set_.wait();

  if (wake_slot != PollSet::none && stop_.load(std::memory_order_acquire))
    on_stop();
  // Known members first: their messages may be the reason for rejecting others.
  if (set_.events(members_slot) != 0)
    for (const ReadySet::Ready& ready : ready_.take())
      if (Member& member = members_[ready.key]; !member.gone)
        advance(member, ready.events);
  acceptor_.advance(set_, FrameKind::join,
                    [this](AcceptedPeer accepted) { admit(std::move(accepted)); });
  if (!failure_ && !all_linked_ && until_.passed())
    on_deadline();
}

void RendezvousThread::on_stop() {
  // If no PE has joined, there is none to notify.
  stop_until_ = Deadline::after(membership_.size() > 0 || failure_ ? last_stay : last_stay * 0);
  if (!failure_ && !all_linked_)
    fail({ExitCode::unavailable, -1,
          "the process that ran the rendezvous exited before all PEs had connected",
          "check the output of the process that made the unique id: PE 0, as a rule, or shmemctl "
          "run"});
}

void RendezvousThread::on_deadline() {
  std::string text = membership_.missing() + ": timed out";
  if (membership_.complete()) {
    std::vector<std::string> names;
    std::size_t total = 0;
    for (const Member& member : members_)
      if (!member.linked && ++total <= max_names)
        names.push_back(membership_.name(member.rank));
    text = "timed out: these PEs joined, but did not connect to their neighbours: " +
           join(names, ", ") +
           (total > max_names ? " and " + std::to_string(total - max_names) + " more" : "");
  }
  fail({ExitCode::deadline, -1, text,
        "check the output of these PEs and of their launcher, or " + raise_timeout()});
}

void RendezvousThread::apply_deadline_of(const Join& join) {
  const double remaining_s = join.remaining_ms / 1000.0;
  const double span_s =
      remaining_s - std::min(rendezvous_earlier_s, remaining_s * rendezvous_earlier_share);
  until_ = until_.at_most(std::chrono::duration<double>(span_s));
}

/// Once the job has failed, PEs that still join are sent the reason.
void RendezvousThread::reject(Socket socket, const Join& join) {
  notified_.insert(join.nonce);
  refuse(std::move(socket), *failure_);
}

void RendezvousThread::admit(AcceptedPeer accepted) {
  if (!accepted.proven) {
    refuse(
        std::move(accepted.socket),
        {ExitCode::usage, -1,
         "the rendezvous at that address has another secret: it is of another job, or this PE has "
         "the wrong secret",
         "pass the same unique id, or the same session id and secret, to all PEs of the job, and "
         "no id of an earlier run"});
    return;
  }
  const std::optional<Join> join = Join::decode(accepted.contents);
  if (!join)
    return;
  if (failure_) {
    reject(std::move(accepted.socket), *join);
    return;
  }
  const Membership::Decision decision = membership_.add(*join);
  if (decision.verdict == Membership::Verdict::duplicate)
    return;
  if (decision.verdict == Membership::Verdict::conflict) {
    fail(decision.problem);
    reject(std::move(accepted.socket), *join);
    return;
  }
  apply_deadline_of(*join);
  Member& member = members_.emplace_back(std::move(accepted.socket), *join);
  ready_.add(member.socket.descriptor(), key_of(member));
  member.outbox = std::move(accepted.welcome);
  flush(member);
  if (membership_.complete())
    send_neighbours();
}

void RendezvousThread::send_neighbours() {
  for (Member& member : members_) {
    const Bytes frame =
        encode_frame(FrameKind::neighbours, membership_.neighbours_of(member.rank).encode());
    member.outbox.insert(member.outbox.end(), frame.begin(), frame.end());
    flush(member);
  }
}

void RendezvousThread::end_linking() {
  const bool all = membership_.complete() && linked_count_ == membership_.size();
  if (!all || all_linked_ || failure_)
    return;
  all_linked_ = true;
  const Bytes frame = encode_frame(FrameKind::linked);
  for (Member& member : members_) {
    member.outbox.insert(member.outbox.end(), frame.begin(), frame.end());
    flush(member);
  }
}

void RendezvousThread::flush(Member& member) {
  if (member.gone || member.outbox.empty())
    return;
  try {
    const std::size_t sent = member.socket.send_some(member.outbox.data(), member.outbox.size());
    member.outbox.erase(member.outbox.begin(),
                        member.outbox.begin() + static_cast<std::ptrdiff_t>(sent));
  } catch (const Error&) {
    // Reading from the socket reports the loss, after what the member may have sent before.
    member.outbox.clear();
  }
  note_unsent(member);
}

void RendezvousThread::note_unsent(Member& member) {
  const bool unsent = !member.gone && !member.outbox.empty();
  if (unsent == member.unsent)
    return;
  member.unsent = unsent;
  if (unsent)
    ++unsent_count_;
  else
    --unsent_count_;
  if (!member.gone)
    ready_.set_writing(member.socket.descriptor(), key_of(member), unsent);
}

void RendezvousThread::drop(Member& member) {
  if (member.gone)
    return;
  ready_.remove(member.socket.descriptor());
  member.gone = true;
  member.socket.close();
  note_unsent(member);
}

void RendezvousThread::advance(Member& member, short events) {
  if ((events & POLLOUT) != 0)
    flush(member);
  if ((events & (POLLIN | POLLHUP | POLLERR)) == 0)
    return;
  try {
    member.reader.read(member.socket);
    read(member);
  } catch (const Error&) {
    read(member);
    if (!member.gone)
      lost(member);
  }
}

void RendezvousThread::read(Member& member) {
  if (member.reader.problem() != HeaderProblem::none) {
    drop(member);
    fail({ExitCode::unavailable, -1,
          membership_.name(member.rank) + " sent a malformed message to the rendezvous",
          "run the same version of shmemctl on all hosts"});
    return;
  }
  if (!member.reader.complete())
    return;
  if (member.reader.header().kind == FrameKind::linked && !member.linked) {
    member.linked = true;
    ++linked_count_;
  }
  const std::optional<FailureReport> report = member.reader.header().kind == FrameKind::failure
                                                  ? FailureReport::decode(member.reader.payload())
                                                  : std::nullopt;
  member.reader.reset();
  if (report) {
    fail(*report);
    lost(member);
  }
  end_linking();
}

void RendezvousThread::lost(Member& member) {
  drop(member);
  if (!all_linked_)
    fail({ExitCode::unavailable, -1, membership_.name(member.rank) + " was lost while PEs joined",
          "check the output of PE " + std::to_string(member.rank) +
              ": it has exited or was killed"});
}

void RendezvousThread::fail(const FailureReport& report) {
  if (failure_)
    return;
  failure_ = report;
  const Bytes frame = encode_frame(FrameKind::failure, report.encode());
  for (Member& member : members_) {
    notified_.insert(member.nonce);
    member.outbox.insert(member.outbox.end(), frame.begin(), frame.end());
    flush(member);
  }
}

// The listeners of a rendezvous.

namespace {

constexpr std::size_t max_rendezvous_listeners = 16;
constexpr int attempts_for_one_port = 10;

/// The usable addresses, 16 at most, without loopback, which is of no use to other hosts. If there
/// are only loopback addresses, they are returned.
std::vector<SocketAddress> advertised_addresses(const InterfaceFilter& filter) {
  std::vector<SocketAddress> addresses = usable_addresses(filter);
  const auto end = std::remove_if(addresses.begin(), addresses.end(), is_loopback);
  if (end != addresses.begin())
    addresses.erase(end, addresses.end());
  addresses.resize(std::min(addresses.size(), max_rendezvous_listeners));
  return addresses;
}

/// Listeners on the addresses, all with the port of the first one. If an address cannot be used,
/// e.g. because another socket has that port, it is left out if `some_will_do`; otherwise the
/// result is empty.
std::vector<Listener> try_one_port(const std::vector<SocketAddress>& addresses, bool some_will_do) {
  std::vector<Listener> listeners;
  for (const SocketAddress& address : addresses) {
    try {
      listeners.emplace_back(listeners.empty() ? address
                                               : address.with_port(listeners[0].address().port()));
    } catch (const Error&) {
      if (!some_will_do)
        return {};
    }
  }
  return listeners;
}

std::vector<Listener> listen_with_one_port(const std::vector<SocketAddress>& addresses) {
  for (int attempt = 1; attempt <= attempts_for_one_port; ++attempt) {
    std::vector<Listener> listeners = try_one_port(addresses, attempt == attempts_for_one_port);
    if (!listeners.empty())
      return listeners;
  }
  throw Error(ExitCode::unavailable, "rendezvous", "start",
              "no address of this host accepts a listener", "check ulimit -n and the interfaces");
}

std::unique_ptr<Rendezvous> start_on(std::vector<Listener> listeners, const Secret& secret,
                                     double timeout_s) {
  UniqueId id;
  id.secret = secret;
  for (const Listener& listener : listeners)
    id.addresses.push_back(listener.address());
  return std::make_unique<RendezvousThread>(std::move(id), std::move(listeners), timeout_s);
}

} // namespace

std::unique_ptr<Rendezvous> Rendezvous::start(const InterfaceFilter& filter, double timeout_s,
                                              const Secret& secret) {
  return start_on(listen_with_one_port(advertised_addresses(filter)), secret, timeout_s);
}

std::unique_ptr<Rendezvous> Rendezvous::start_local(double timeout_s, const Secret& secret) {
  std::vector<Listener> listeners;
  listeners.emplace_back(SocketAddress::abstract_unix(random_unix_name()));
  return start_on(std::move(listeners), secret, timeout_s);
}

std::unique_ptr<Rendezvous> Rendezvous::start_at(const SocketAddress& address, const Secret& secret,
                                                 double timeout_s) {
  std::vector<Listener> listeners;
  listeners.emplace_back(address);
  return start_on(std::move(listeners), secret, timeout_s);
}

} // namespace shmemctl
