#include "src/runtime/bootstrap/dialer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "src/base/deadline.h"
#include "src/runtime/bootstrap/interfaces.h"

namespace shmemctl {

namespace {

using Clock = Deadline::Clock;
constexpr std::chrono::milliseconds stagger{1000};
constexpr double first_pause_s = 0.001, longest_pause_s = 0.2;

int ms_until(Clock::time_point at) {
  return Deadline(at).poll_ms();
}

Clock::time_point in(double span_s) {
  return Deadline::after(std::chrono::duration<double>(span_s)).at();
}

} // namespace

Dialer::Dialer(std::string peer, const std::vector<SocketAddress>& addresses,
               Introduction introduction)
    : peer_(std::move(peer)), introduction_(std::move(introduction)), pause_s_(first_pause_s) {
  for (const SocketAddress& address : addresses)
    for (const SocketAddress& form : reachable_forms(address))
      addresses_.push_back(form);
  problems_.resize(addresses_.size());
}

void Dialer::note(std::size_t address, const std::string& problem, bool may_retry) {
  problems_[address] = problem;
  worth_retrying_ = worth_retrying_ || may_retry;
}

void Dialer::start_next() {
  const std::size_t address = next_address_++;
  last_start_ = Clock::now();
  try {
    int problem = 0;
    if (Socket socket = Socket::start_connect(addresses_[address], peer_, problem)) {
      Attempt& attempt = attempts_.emplace_back(std::move(socket), address);
      attempt.handshake.dialer = random_nonce();
      attempt.outbox =
          encode_frame(FrameKind::connect_request, encode_nonce(attempt.handshake.dialer));
    } else {
      note(address, std::strerror(problem), connect_may_be_retried(problem));
    }
  } catch (const Error& error) {
    // There is no socket of this family, e.g. if IPv6 is disabled: another address may work.
    note(address, error.system_message(), false);
  }
}

void Dialer::end_of_round() {
  if (refusal_)
    throw Error(refusal_->code, peer_, "join", refusal_->text, refusal_->fix);
  if (!worth_retrying_)
    throw Error(ExitCode::unavailable, peer_, "connect", problem(),
                "check the address, the interfaces and the firewall between the hosts");
  next_round_ = in(pause_s_);
  pause_s_ = std::min(pause_s_ * 1.5, longest_pause_s);
  next_address_ = 0;
  worth_retrying_ = false;
}

void Dialer::prepare(PollSet& set) {
  while (!done_ && attempts_.empty() && Clock::now() >= next_round_) {
    if (next_address_ < addresses_.size())
      start_next();
    else
      end_of_round();
  }
  const bool others_wait = !attempts_.empty() && next_address_ < addresses_.size();
  if (others_wait && Clock::now() >= last_start_ + stagger)
    start_next();
  if (attempts_.empty())
    set.wake_after(ms_until(next_round_));
  else if (next_address_ < addresses_.size())
    set.wake_after(ms_until(last_start_ + stagger));
  for (Attempt& attempt : attempts_) {
    const bool sending = !attempt.connected || attempt.sent_bytes < attempt.outbox.size();
    attempt.slot = set.add(attempt.socket.descriptor(), sending ? POLLOUT : POLLIN);
  }
}

bool Dialer::advance(const PollSet& set) {
  for (std::size_t i = 0; i < attempts_.size() && !done_;) {
    const short events = set.events(std::exchange(attempts_[i].slot, PollSet::none));
    const Step result = events == 0 ? Step::wait : step(attempts_[i]);
    if (result == Step::welcome) {
      welcomed_ = std::move(attempts_[i].socket);
      welcomed_at_ = attempts_[i].address;
      done_ = true;
    }
    if (result == Step::failed)
      attempts_.erase(attempts_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  if (done_)
    attempts_.clear();
  return done_;
}

void Dialer::dial_again(const std::string& problem) {
  done_ = false;
  refusal_.reset();
  note(welcomed_at_, problem, true);
  next_address_ = addresses_.size(); // the end of a round: the next one begins after a pause
}

Dialer::Step Dialer::step(Attempt& attempt) {
  if (!attempt.connected && check_connected(attempt) == Step::failed)
    return Step::failed;
  if (!attempt.connected)
    return Step::wait;
  try {
    attempt.sent_bytes += attempt.socket.send_some(attempt.outbox.data() + attempt.sent_bytes,
                                                   attempt.outbox.size() - attempt.sent_bytes);
    attempt.reader.read(attempt.socket);
  } catch (const Error& error) {
    // The other side may have sent a reason before it closed the connection.
    if (attempt.reader.complete())
      return read_response(attempt);
    note(attempt.address, error.system_message(), true);
    return Step::failed;
  }
  return read_response(attempt);
}

Dialer::Step Dialer::check_connected(Attempt& attempt) {
  const int problem = attempt.socket.connect_error();
  attempt.connected = problem == 0;
  if (problem == 0 || problem == EINPROGRESS)
    return Step::wait;
  note(attempt.address, std::strerror(problem), connect_may_be_retried(problem));
  return Step::failed;
}

Dialer::Step Dialer::read_response(Attempt& attempt) {
  const FrameReader& reader = attempt.reader;
  if (reader.problem() == HeaderProblem::other_version)
    refusal_ = FailureReport{ExitCode::unavailable, -1,
                             "it uses version " + std::to_string(reader.header().version) +
                                 " of the bootstrap's protocol, and this PE uses version " +
                                 std::to_string(FrameHeader::protocol_version),
                             "run the same version of shmemctl on all hosts"};
  if (reader.problem() != HeaderProblem::none) {
    note(attempt.address, "the process that listens there is not a PE of a shmemctl job", false);
    return Step::failed;
  }
  if (!reader.complete())
    return Step::wait;
  const FrameKind kind = reader.header().kind;
  if (kind == FrameKind::challenge && !attempt.challenged)
    return reply_to_challenge(attempt);
  if (kind == FrameKind::welcome && attempt.challenged) {
    if (is_welcome(attempt))
      return Step::welcome;
    note(attempt.address, "the process that listens there does not have the secret of this job",
         false);
    return Step::failed;
  }
  note(attempt.address, "unexpected reply", false);
  if (kind == FrameKind::failure)
    refusal_ = FailureReport::decode(reader.payload());
  return Step::failed;
}

Dialer::Step Dialer::reply_to_challenge(Attempt& attempt) {
  const std::optional<Nonce> nonce = decode_nonce(attempt.reader.payload());
  attempt.reader.reset();
  if (!nonce) {
    note(attempt.address, "unexpected reply", false);
    return Step::failed;
  }
  attempt.challenged = true;
  attempt.handshake.listener = *nonce;
  const auto& [kind, contents, secret] = introduction_;
  attempt.outbox = encode_frame(
      kind, encode_proven(dialer_proof(attempt.handshake, secret, kind, contents), contents));
  attempt.sent_bytes = 0;
  return step(attempt);
}

bool Dialer::is_welcome(const Attempt& attempt) const {
  const std::optional<Proof> proof = decode_nonce(attempt.reader.payload());
  const auto& [kind, contents, secret] = introduction_;
  return proof && same_proof(*proof, listener_proof(attempt.handshake, secret, kind, contents));
}

std::string Dialer::problem() const {
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    std::string problem = problems_[i];
    for (const Attempt& attempt : attempts_)
      if (attempt.address == i)
        problem = attempt.connected ? "connected, but no answer" : "no answer";
    if (!problem.empty())
      return addresses_[i].text() + ": " + problem;
  }
  return "none of its addresses can be used from this host";
}

void Dialer::give_up() const {
  throw Error(
      ExitCode::deadline, peer_, "connect", "timed out: " + problem(),
      "check the output of the process that listens there (usually PE 0, or shmemctl run) and the "
      "firewall between the hosts, or " +
          raise_timeout());
}

Socket dial(Dialer& dialer, const Deadline& deadline) {
  PollSet set;
  for (;;) {
    set.clear();
    dialer.prepare(set);
    set.wake_after(deadline.poll_ms());
    set.wait();
    if (dialer.advance(set))
      return dialer.take();
    if (deadline.passed())
      dialer.give_up();
  }
}

} // namespace shmemctl
