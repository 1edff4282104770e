#include "src/bootstrap/reception.h"

#include <algorithm>
#include <utility>

namespace shmemctl {

namespace {
/// So that a storm of connections cannot keep the guests from being heard.
constexpr int accepts_per_round = 64;
} // namespace

void refuse(Socket socket, const FailureReport& report) noexcept {
  try {
    const Bytes frame = encode_frame(FrameKind::failure, report.encode());
    socket.send_some(frame.data(), frame.size());
    socket.end_sending();
  } catch (const std::exception&) {
    // It is gone: then it does not need to know.
    socket.close();
  }
}

void Reception::prepare(PollSet& set) {
  listener_slots_.clear();
  for (const Listener& listener : listeners_)
    listener_slots_.push_back(set.add(listener.descriptor(), POLLIN));
  for (Guest& guest : guests_)
    guest.slot = set.add(guest.socket.descriptor(), POLLIN);
  if (!guests_.empty())
    set.wake_after(guests_.front().until.poll_ms());
}

void Reception::accept_from(Listener& listener) {
  for (int i = 0; i < accepts_per_round; ++i) {
    Socket socket;
    try {
      socket = listener.accept_now();
    } catch (const Error&) {
      // No descriptor is left: those who wait have to make room. Without any, it is not our fault.
      if (guests_.empty())
        throw;
      guests_.erase(guests_.begin(),
                    guests_.begin() + static_cast<std::ptrdiff_t>((guests_.size() + 1) / 2));
      return;
    }
    if (!socket)
      return;
    if (guests_.size() >= max_waiting)
      guests_.erase(guests_.begin());
    guests_.push_back(Guest{std::move(socket),
                            Deadline::after(std::chrono::duration<double>(patience_s)),
                            FrameReader(), PollSet::none, std::nullopt});
  }
}

bool Reception::challenge(Guest& guest) {
  const std::optional<Nonce> nonce = decode_nonce(guest.reader.payload());
  if (!nonce || guest.handshake)
    return false;
  guest.handshake = Handshake{*nonce, random_nonce()};
  const Bytes frame = encode_frame(FrameKind::challenge, encode_nonce(guest.handshake->listener));
  guest.reader.reset();
  // It is the first that is sent there: it fits, or the connection has ended.
  return guest.socket.send_some(frame.data(), frame.size()) == frame.size();
}

Visitor Reception::visitor(Guest& guest, Proven proven) const {
  const FrameKind kind = guest.reader.header().kind;
  Visitor visitor;
  visitor.proven =
      same_proof(proven.proof, dialer_proof(*guest.handshake, secret_, kind, proven.contents));
  if (visitor.proven) // whoever has not shown the secret gets nothing to try guesses on
    visitor.welcome = encode_frame(
        FrameKind::welcome,
        encode_nonce(listener_proof(*guest.handshake, secret_, kind, proven.contents)));
  visitor.socket = std::move(guest.socket);
  visitor.contents = std::move(proven.contents);
  return visitor;
}

bool Reception::hear(Guest& guest, FrameKind wanted, const Arrived& arrived) {
  try {
    guest.reader.read(guest.socket);
    if (guest.reader.complete() && guest.reader.header().kind == FrameKind::knock)
      return challenge(guest);
  } catch (const Error&) {
    return false;
  }
  if (guest.reader.problem() == HeaderProblem::other_version)
    refuse(std::move(guest.socket),
           {ExitCode::unavailable, -1,
            "this job speaks version " + std::to_string(FrameHeader::protocol_version) +
                " of the bootstrap's protocol, and the PE version " +
                std::to_string(guest.reader.header().version),
            "run the same version of shmemctl on all hosts"});
  if (guest.reader.problem() != HeaderProblem::none)
    return false;
  if (!guest.reader.complete())
    return !guest.until.passed();
  if (guest.reader.header().kind == wanted && guest.handshake)
    if (std::optional<Proven> proven = decode_proven(guest.reader.payload()))
      arrived(visitor(guest, std::move(*proven)));
  return false;
}

void Reception::advance(const PollSet& set, FrameKind wanted, const Arrived& arrived) {
  for (std::size_t i = 0; i < listener_slots_.size() && i < listeners_.size(); ++i)
    if (set.events(listener_slots_[i]) != 0)
      accept_from(listeners_[i]);
  listener_slots_.clear();
  // `arrived` may close this. So guests that are heard are not in reach of close().
  std::vector<Guest> present = std::exchange(guests_, {}), staying;
  closed_ = false;
  for (Guest& guest : present) {
    // New ones are heard at once: what they send has usually come with them.
    const bool silent = guest.slot != PollSet::none && set.events(guest.slot) == 0;
    guest.slot = PollSet::none;
    if (silent ? !guest.until.passed() : hear(guest, wanted, arrived))
      staying.push_back(std::move(guest));
    if (closed_)
      return;
  }
  guests_ = std::move(staying);
}

void Reception::close() {
  listeners_.clear();
  listener_slots_.clear();
  guests_.clear();
  closed_ = true;
}

} // namespace shmemctl
