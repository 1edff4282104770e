#include "src/bootstrap/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>

#include "src/base/error.h"
#include "src/base/service_thread.h"
#include "src/base/text.h"
#include "src/base/timeout_words.h"

namespace shmemctl {

namespace {

/// A rendezvous that is ended after a failure stays this long for the PEs that have not come yet:
/// else they would wait for it until their deadline.
constexpr std::chrono::duration<double> last_stay{1.0};
/// The waiting PEs hear of a deadline this long before their own passes, or at 9/10 of it.
constexpr double earlier_s = 0.5, earlier_share = 0.1;
constexpr std::size_t max_names = 4; // in one message, whose length is limited

} // namespace

RendezvousThread::RendezvousThread(UniqueId id, std::vector<Listener> listeners, double timeout_s)
    : id_(std::move(id)), end_(Deadline::after(std::chrono::duration<double>(timeout_s))),
      until_(end_), reception_(std::move(listeners), id_.secret),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_)
    throw system_error("the rendezvous", "start", errno, "raise the limit of open files");
  thread_ = start_service_thread("rendezvous", [this] { run(); });
}

RendezvousThread::~RendezvousThread() {
  stop_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // Should the write fail, the thread looks at the flag within its longest wait all the same.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void RendezvousThread::run() noexcept {
  while (!finished()) {
    try {
      serve_round();
    } catch (const Error& error) {
      fail({error.code(), -1, error.message(), error.fix()});
      reception_.close();
    } catch (const std::exception& error) {
      fail({ExitCode::unavailable, -1, std::string("the rendezvous failed: ") + error.what(),
            "look at the memory of its host"});
      reception_.close();
    }
  }
  reception_.close();
  members_.clear();
  ended_.store(true, std::memory_order_release);
}

bool RendezvousThread::finished() const {
  const auto size = static_cast<std::size_t>(membership_.size());
  const bool flushed = std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.gone || member.outbox.empty();
  });
  if (stop_until_ && stop_until_->passed())
    return true;
  if (!failure_)
    return all_linked_ && (flushed || until_.passed());
  const bool all_told = size > 0 && told_.size() >= size;
  return flushed && (all_told || reception_.listeners().empty() || end_.passed());
}

void RendezvousThread::serve_round() {
  set_.clear();
  const std::size_t wake_slot = stop_until_ ? PollSet::none : set_.add(wake_.get(), POLLIN);
  reception_.prepare(set_);
  for (Member& member : members_)
    member.slot = member.gone ? PollSet::none
                              : set_.add(member.socket.descriptor(),
                                         member.outbox.empty() ? POLLIN : POLLIN | POLLOUT);
  if (!failure_)
    set_.wake_after(until_.poll_ms());
  set_.wait();

  if (wake_slot != PollSet::none && stop_.load(std::memory_order_acquire))
    on_stop();
  // Those who are known first: what they say may be why others are refused.
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (const short events = set_.events(std::exchange(members_[i].slot, PollSet::none)))
      advance(members_[i], events);
  reception_.advance(set_, FrameKind::join, [this](Visitor visitor) { greet(std::move(visitor)); });
  if (!failure_ && !all_linked_ && until_.passed())
    on_deadline();
}

void RendezvousThread::on_stop() {
  // Nobody has come: nobody is told.
  stop_until_ = Deadline::after(membership_.size() > 0 || failure_ ? last_stay : last_stay * 0);
  if (!failure_ && !all_linked_)
    fail({ExitCode::unavailable, -1,
          "the PE that held the rendezvous ended before all were connected",
          "look at the output of the PE that made the unique id, mostly PE 0"});
}

void RendezvousThread::on_deadline() {
  std::string text = membership_.missing() + ", until the deadline passed";
  if (membership_.complete()) {
    std::vector<std::string> names;
    std::size_t total = 0;
    for (const Member& member : members_)
      if (!member.linked && ++total <= max_names)
        names.push_back(membership_.name(member.rank));
    text = "these PEs joined but are not connected to their neighbours at the deadline: " +
           join(names, ", ") +
           (total > max_names ? " and " + std::to_string(total - max_names) + " more" : "");
  }
  fail({ExitCode::deadline, -1, text,
        "look at the output of these PEs and of their launcher, or " + raise_timeout()});
}

void RendezvousThread::heed_deadline_of(const Join& join) {
  const double remaining_s = join.remaining_ms / 1000.0;
  const double span_s = remaining_s - std::min(earlier_s, remaining_s * earlier_share);
  until_ = until_.at_most(std::chrono::duration<double>(span_s));
}

/// Once the job has failed: whoever still comes is told why.
void RendezvousThread::turn_away(Socket socket, const Join& join) {
  told_.insert(join.nonce);
  refuse(std::move(socket), *failure_);
}

void RendezvousThread::greet(Visitor visitor) {
  if (!visitor.proven) {
    refuse(std::move(visitor.socket),
           {ExitCode::usage, -1,
            "the rendezvous there belongs to another job: the secret of this PE's unique id is "
            "not its own",
            "give all PEs of a job the id that was made for it; an id of an earlier run is of no "
            "use"});
    return;
  }
  const std::optional<Join> join = Join::decode(visitor.contents);
  if (!join)
    return;
  if (failure_) {
    turn_away(std::move(visitor.socket), *join);
    return;
  }
  const Membership::Answer answer = membership_.add(*join);
  if (answer.verdict == Membership::Verdict::again)
    return;
  if (answer.verdict == Membership::Verdict::contrary) {
    fail(answer.problem);
    turn_away(std::move(visitor.socket), *join);
    return;
  }
  heed_deadline_of(*join);
  Member& member = members_.emplace_back(std::move(visitor.socket), *join);
  member.outbox = std::move(visitor.welcome);
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
  const bool all =
      membership_.complete() && std::all_of(members_.begin(), members_.end(),
                                            [](const Member& member) { return member.linked; });
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
    // Reading from it will tell, with what it may have said before.
    member.outbox.clear();
  }
}

void RendezvousThread::advance(Member& member, short events) {
  if ((events & POLLOUT) != 0)
    flush(member);
  if ((events & (POLLIN | POLLHUP | POLLERR)) == 0)
    return;
  try {
    member.reader.read(member.socket);
    hear(member);
  } catch (const Error&) {
    hear(member);
    if (!member.gone)
      lost(member);
  }
}

void RendezvousThread::hear(Member& member) {
  if (member.reader.problem() != HeaderProblem::none) {
    member.gone = true;
    member.socket.close();
    fail({ExitCode::unavailable, -1,
          membership_.name(member.rank) + " sent garbage to the rendezvous",
          "start all PEs with the same version of this tool"});
    return;
  }
  if (!member.reader.complete())
    return;
  if (member.reader.header().kind == FrameKind::linked)
    member.linked = true;
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
  member.gone = true;
  member.socket.close();
  if (!all_linked_)
    fail({ExitCode::unavailable, -1, membership_.name(member.rank) + " was lost while PEs joined",
          "look at the output of PE " + std::to_string(member.rank) +
              ": it has ended or was killed"});
}

void RendezvousThread::fail(const FailureReport& report) {
  if (failure_)
    return;
  failure_ = report;
  const Bytes frame = encode_frame(FrameKind::failure, report.encode());
  for (Member& member : members_) {
    told_.insert(member.nonce);
    member.outbox.insert(member.outbox.end(), frame.begin(), frame.end());
    flush(member);
  }
}

} // namespace shmemctl
