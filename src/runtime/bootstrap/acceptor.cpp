#include <algorithm>
#include <utility>

#include "src/runtime/bootstrap/acceptor.h"

namespace shmemctl {

namespace {
/// Limited so that a burst of connections cannot keep pending ones from being read.
constexpr int accepts_per_round = 64;
} // namespace

void refuse(Socket socket, const FailureReport& report) noexcept {
  try {
    const Bytes frame = encode_frame(FrameKind::failure, report.encode());
    socket.send_some(frame.data(), frame.size());
    socket.end_sending();
  } catch (const std::exception&) {
    // The peer has gone away and needs no reason.
    socket.close();
  }
}

void Acceptor::prepare(PollSet& set) {
  listener_slots_.clear();
  for (const Listener& listener : listeners_)
    listener_slots_.push_back(set.add(listener.descriptor(), POLLIN));
  for (Pending& pending : pending_)
    pending.slot = set.add(pending.socket.descriptor(), POLLIN);
  if (!pending_.empty())
    set.wake_after(pending_.front().until.poll_ms());
}

void Acceptor::accept_from(Listener& listener) {
  for (int i = 0; i < accepts_per_round; ++i) {
    Socket socket;
    try {
      socket = listener.accept_now();
    } catch (const Error&) {
      // No file descriptor or memory is left: half of the pending connections are dropped. If there
      // are none, the cause is outside of this object.
      if (pending_.empty())
        throw;
      pending_.erase(pending_.begin(),
                     pending_.begin() + static_cast<std::ptrdiff_t>((pending_.size() + 1) / 2));
      return;
    }
    if (!socket)
      return;
    if (pending_.size() >= max_waiting)
      pending_.erase(pending_.begin());
    pending_.push_back(Pending{std::move(socket),
                               Deadline::after(std::chrono::duration<double>(handshake_timeout_s)),
                               FrameReader(), PollSet::none, std::nullopt});
  }
}

bool Acceptor::challenge(Pending& pending) {
  const std::optional<Nonce> nonce = decode_nonce(pending.reader.payload());
  if (!nonce || pending.handshake)
    return false;
  pending.handshake = Handshake{*nonce, random_nonce()};
  const Bytes frame = encode_frame(FrameKind::challenge, encode_nonce(pending.handshake->listener));
  pending.reader.reset();
  // The frame is the first data on this connection: it fits, or the connection has ended.
  return pending.socket.send_some(frame.data(), frame.size()) == frame.size();
}

AcceptedPeer Acceptor::accepted(Pending& pending, Proven proven) const {
  const FrameKind kind = pending.reader.header().kind;
  AcceptedPeer accepted;
  accepted.proven =
      same_proof(proven.proof, dialer_proof(*pending.handshake, secret_, kind, proven.contents));
  if (accepted.proven) // with a proof, a peer without the secret could verify guesses of it
    accepted.welcome = encode_frame(
        FrameKind::welcome,
        encode_nonce(listener_proof(*pending.handshake, secret_, kind, proven.contents)));
  accepted.socket = std::move(pending.socket);
  accepted.contents = std::move(proven.contents);
  return accepted;
}

bool Acceptor::read(Pending& pending, FrameKind wanted, const Arrived& arrived) {
  try {
    pending.reader.read(pending.socket);
    if (pending.reader.complete() && pending.reader.header().kind == FrameKind::connect_request)
      return challenge(pending);
  } catch (const Error&) {
    return false;
  }
  if (pending.reader.problem() == HeaderProblem::other_version)
    refuse(std::move(pending.socket),
           {ExitCode::unavailable, -1,
            "this job uses version " + std::to_string(FrameHeader::protocol_version) +
                " of the bootstrap's protocol, and the PE that connects uses version " +
                std::to_string(pending.reader.header().version),
            "run the same version of shmemctl on all hosts"});
  if (pending.reader.problem() != HeaderProblem::none)
    return false;
  if (!pending.reader.complete())
    return !pending.until.passed();
  if (pending.reader.header().kind == wanted && pending.handshake)
    if (std::optional<Proven> proven = decode_proven(pending.reader.payload()))
      arrived(accepted(pending, std::move(*proven)));
  return false;
}

void Acceptor::advance(const PollSet& set, FrameKind wanted, const Arrived& arrived) {
  for (std::size_t i = 0; i < listener_slots_.size() && i < listeners_.size(); ++i)
    if (set.events(listener_slots_[i]) != 0)
      accept_from(listeners_[i]);
  listener_slots_.clear();
  // `arrived` may close this, so connections that are being read are kept where close() cannot
  // reach them.
  std::vector<Pending> present = std::exchange(pending_, {}), staying;
  closed_ = false;
  for (Pending& pending : present) {
    // New connections are read at once: their first frame has usually arrived with them.
    const bool silent = pending.slot != PollSet::none && set.events(pending.slot) == 0;
    pending.slot = PollSet::none;
    if (silent ? !pending.until.passed() : read(pending, wanted, arrived))
      staying.push_back(std::move(pending));
    if (closed_)
      return;
  }
  pending_ = std::move(staying);
}

void Acceptor::close() {
  listeners_.clear();
  listener_slots_.clear();
  pending_.clear();
  closed_ = true;
}

} // namespace shmemctl
