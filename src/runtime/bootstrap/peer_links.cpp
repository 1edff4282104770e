#include "src/runtime/bootstrap/peer_links.h"

#include <algorithm>
#include <chrono>

#include "src/base/error.h"

namespace shmemctl {

namespace {

/// Messages of up to this size are sent together with their header, by one system call.
constexpr std::size_t staged_bytes = 8192;
constexpr std::size_t read_ahead_bytes = 65536, max_read_ahead_bytes = std::size_t{16} << 20;
constexpr short hung_up = POLLRDHUP | POLLHUP | POLLERR | POLLNVAL;
constexpr std::chrono::duration<double> leave_timeout{2.0};
/// The deadline of round k is later by k times this. A PE that has not sent its message of a round
/// waits in an earlier round itself, unless it is the cause. So the PE in the earliest round times
/// out first, and its error reaches the others.
constexpr std::chrono::milliseconds timeout_per_round{50};

FrameHeader header_of(const CallLabel& call, int round, std::size_t size_bytes) {
  FrameHeader header;
  header.kind = call.kind;
  header.round = static_cast<std::uint8_t>(round);
  header.call = call.number;
  header.root = call.root;
  header.size_bytes = size_bytes;
  header.block_bytes = call.block_bytes;
  return header;
}

CallLabel label_of(const FrameHeader& header) {
  return {header.kind, header.call, header.root, header.block_bytes};
}

} // namespace

/// A frame that is being sent, in pieces. A small frame is in the first piece as a whole.
struct PeerLinks::Sending {
  const CallLabel* call = nullptr;
  Link* link = nullptr;
  std::array<ConstPiece, 3> pieces;
  std::size_t piece = 0, at = 0;
  bool done() const { return piece == pieces.size(); }
};

struct PeerLinks::Receiving {
  const CallLabel* call = nullptr;
  Link* link = nullptr;
  int round = 0;
  std::array<std::byte, FrameHeader::wire_bytes> wire{};
  std::array<Piece, 3> pieces;
  std::size_t piece = 0, at = 0;
  bool done() const { return piece == pieces.size(); }
};

PeerLinks::PeerLinks(int rank, int size, NeighbourSockets sockets) : rank_(rank) {
  for (std::size_t level = 0; level < sockets.forward.size(); ++level) {
    forward_.emplace_back();
    forward_.back().socket = std::move(sockets.forward[level]);
    forward_.back().peer = forward_neighbour(rank, size, static_cast<int>(level));
    backward_.emplace_back();
    backward_.back().socket = std::move(sockets.backward[level]);
    backward_.back().peer = backward_neighbour(rank, size, static_cast<int>(level));
  }
}

template <class Action>
void PeerLinks::for_each_link(const Action& action) {
  for (std::vector<Link>* links : {&forward_, &backward_})
    for (Link& link : *links)
      action(link);
}

void PeerLinks::exchange(const CallLabel& call, int round, const Transfer& transfer,
                         const Deadline& deadline) {
  if (std::max(transfer.send_bytes(), transfer.receive_bytes()) > max_frame_bytes)
    throw Error(ExitCode::usage, call.text(), call_attempted, "message larger than 1 GiB",
                "exchange less data per call");
  const auto level = static_cast<std::size_t>(round);
  Sending sending{&call, &forward_[level], {}, 0, 0};
  Receiving receiving{&call, &backward_[level], round, {}, {}, 0, 0};
  if (transfer.sends) {
    const auto wire = header_of(call, round, transfer.send_bytes()).encode();
    staging_.assign(wire.begin(), wire.end());
    const bool small = transfer.send_bytes() <= staged_bytes;
    for (std::size_t i = 0; i < transfer.send.size(); ++i)
      if (small)
        staging_.insert(staging_.end(), transfer.send[i].data,
                        transfer.send[i].data + transfer.send[i].size_bytes);
      else
        sending.pieces[i + 1] = transfer.send[i];
    sending.pieces[0] = {staging_.data(), staging_.size()};
  }
  if (transfer.receives) {
    receiving.pieces = {Piece{receiving.wire.data(), receiving.wire.size()}, transfer.receive[0],
                        transfer.receive[1]};
  }
  health_->waiting_for(transfer.receives ? backward_[level].peer
                                         : (transfer.sends ? forward_[level].peer : -1));
  const Deadline until(deadline.at() + timeout_per_round * round);
  for (;;) {
    const bool sent = !transfer.sends || advance(sending);
    const bool received = !transfer.receives || advance(receiving);
    if (sent && received)
      return;
    wait(call, sent ? nullptr : sending.link, received ? nullptr : receiving.link, until);
  }
}

bool PeerLinks::advance(Sending& sending) {
  while (!sending.done()) {
    const ConstPiece& piece = sending.pieces[sending.piece];
    if (sending.at == piece.size_bytes) {
      ++sending.piece;
      sending.at = 0;
      continue;
    }
    std::size_t sent = 0;
    try {
      sent = sending.link->socket.send_some(piece.data + sending.at, piece.size_bytes - sending.at);
    } catch (const Error& error) {
      lost(*sending.call, *sending.link, error.system_message());
    }
    if (sent == 0)
      return false;
    sending.at += sent;
    sending.link->sending = true;
  }
  sending.link->sending = false;
  return true;
}

bool PeerLinks::advance(Receiving& receiving) {
  while (!receiving.done()) {
    const Piece& piece = receiving.pieces[receiving.piece];
    if (receiving.at == piece.size_bytes) {
      if (receiving.piece == 0)
        check_header(receiving);
      ++receiving.piece;
      receiving.at = 0;
      continue;
    }
    std::size_t received = 0;
    try {
      received = take(*receiving.link, piece.data + receiving.at, piece.size_bytes - receiving.at);
    } catch (const Error& error) {
      lost(*receiving.call, *receiving.link, error.system_message());
    }
    if (received == 0)
      return false;
    receiving.at += received;
  }
  return true;
}

std::size_t PeerLinks::take(Link& link, std::byte* to, std::size_t size_bytes) {
  const std::size_t stashed = std::min(size_bytes, link.stash.size() - link.stash_at);
  if (stashed == 0)
    return link.socket.receive_some(to, size_bytes);
  std::copy_n(link.stash.begin() + static_cast<std::ptrdiff_t>(link.stash_at), stashed, to);
  link.stash_at += stashed;
  return stashed;
}

void PeerLinks::check_header(Receiving& receiving) {
  const CallLabel& call = *receiving.call;
  Link& link = *receiving.link;
  FrameHeader header;
  if (decode_header(receiving.wire.data(), max_frame_bytes, header) != HeaderProblem::none)
    throw Error(ExitCode::unavailable, call.text(), call_attempted,
                "malformed message from PE " + std::to_string(link.peer),
                "run the same version of shmemctl on all hosts");
  const std::size_t wanted = receiving.pieces[1].size_bytes + receiving.pieces[2].size_bytes;
  if (header.kind == FrameKind::failure || header.kind == FrameKind::goodbye) {
    // Puts the header back into the stash, before the rest that was read ahead, so that scan() sees
    // the whole frame.
    link.stash.erase(link.stash.begin(),
                     link.stash.begin() + static_cast<std::ptrdiff_t>(link.stash_at));
    link.stash.insert(link.stash.begin(), receiving.wire.begin(), receiving.wire.end());
    link.stash_at = 0;
    read_ahead(link);
    scan(call, link);
    lost(call, link, "it left the job");
  }
  if (!(label_of(header) == call) || header.round != receiving.round || header.size_bytes != wanted)
    not_in_step(call, header, link.peer);
}

void PeerLinks::wait(const CallLabel& call, Link* sending, Link* receiving,
                     const Deadline& deadline) {
  if (deadline.passed())
    health_->give_up(call.text(), (receiving ? receiving : sending)->peer);
  set_.clear();
  for_each_link([&](Link& link) {
    const int events =
        (&link == receiving ? POLLIN : 0) | (&link == sending ? POLLOUT : 0) | POLLRDHUP;
    link.slot =
        link.ended ? PollSet::none : set_.add(link.socket.descriptor(), static_cast<short>(events));
  });
  set_.wake_after(deadline.poll_ms());
  set_.wait();
  for_each_link([&](Link& link) {
    // The awaited connection is read in order, so its end is noticed after its data.
    if (&link != receiving && (set_.events(link.slot) & hung_up) != 0)
      on_hangup(call, link);
  });
  health_->check();
}

void PeerLinks::on_hangup(const CallLabel& call, Link& link) {
  const bool open = read_ahead(link);
  scan(call, link);
  if (!open && !link.ended)
    lost(call, link, "its connection was closed");
}

bool PeerLinks::read_ahead(Link& link) {
  const std::size_t enough = link.stash.size() + max_read_ahead_bytes;
  for (;;) {
    const std::size_t before = link.stash.size();
    link.stash.resize(before + read_ahead_bytes);
    std::size_t received = 0;
    bool open = true;
    try {
      received = link.socket.receive_some(link.stash.data() + before, read_ahead_bytes);
    } catch (const Error&) {
      open = false;
    }
    link.stash.resize(before + received);
    if (received == 0 || link.stash.size() >= enough)
      return open;
  }
}

void PeerLinks::scan(const CallLabel& call, Link& link) {
  std::size_t at = link.stash_at;
  FrameHeader header;
  while (link.stash.size() - at >= FrameHeader::wire_bytes &&
         decode_header(link.stash.data() + at, max_frame_bytes, header) == HeaderProblem::none) {
    const std::size_t begin = at + FrameHeader::wire_bytes;
    if (link.stash.size() - begin < header.size_bytes)
      return;
    at = begin + static_cast<std::size_t>(header.size_bytes);
    if (header.kind == FrameKind::goodbye)
      link.ended = true;
    if (header.kind == FrameKind::failure)
      fail_with(call,
                FailureReport::decode(Bytes(link.stash.begin() + static_cast<std::ptrdiff_t>(begin),
                                            link.stash.begin() + static_cast<std::ptrdiff_t>(at))));
  }
}

void PeerLinks::fail_with(const CallLabel& call, const std::optional<FailureReport>& report) {
  received_failure_ = report.value_or(FailureReport{ExitCode::unavailable, -1,
                                                    "a PE failed and sent a malformed message",
                                                    "check the output of the other PEs"});
  health_->await_cause(received_failure_->reporter);
  throw error_of(*received_failure_, call.text(), call_attempted);
}

void PeerLinks::lost(const CallLabel& call, const Link& link, const std::string& problem) {
  // The peer may have closed because of a failure of another PE, which it or another neighbour has
  // reported.
  for_each_link([&](Link& other) {
    read_ahead(other);
    scan(call, other);
  });
  health_->await_cause(link.peer);
  const std::string peer = "PE " + std::to_string(link.peer);
  throw Error(ExitCode::unavailable, call.text(), call_attempted, peer + " was lost: " + problem,
              "check the output of " + peer + ": it has exited or was killed");
}

void PeerLinks::not_in_step(const CallLabel& local, const FrameHeader& remote, int peer) const {
  const std::string other = "PE " + std::to_string(peer);
  if (label_of(remote) == local)
    throw Error(ExitCode::unavailable, local.text(), call_attempted,
                other + " sent " + std::to_string(remote.size_bytes) + " bytes as round " +
                    std::to_string(remote.round) + ", which was not expected",
                "run the same version of shmemctl on all hosts");
  throw Error(ExitCode::unavailable, local.text(), call_attempted,
              "PEs are out of step: PE " + std::to_string(rank_) + " is in " + local.text() + ", " +
                  other + " in " + label_of(remote).text(),
              "make the same collective calls with the same sizes in the same order on all PEs");
}

void PeerLinks::send_whole(Link& link, const Bytes& frame) {
  try {
    if (link.socket && !link.sending)
      link.socket.send_some(frame.data(), frame.size());
    link.socket.end_sending();
  } catch (const Error&) {
    // The peer has gone away; there is no one to notify.
    link.ended = true;
  }
}

void PeerLinks::send_failure(const FailureReport& report) noexcept {
  const Bytes frame =
      encode_frame(FrameKind::failure, (received_failure_ ? *received_failure_ : report).encode());
  for_each_link([&frame](Link& link) { send_whole(link, frame); });
}

void PeerLinks::say_goodbye(const Deadline& deadline) noexcept {
  const Bytes frame = encode_frame(FrameKind::goodbye);
  for_each_link([&frame](Link& link) { send_whole(link, frame); });
  // Closing a socket with unread bytes would discard sent data that has not arrived yet.
  const Deadline end = deadline.at_most(leave_timeout);
  std::size_t open = forward_.size() + backward_.size();
  while (open > 0 && !end.passed()) {
    set_.clear();
    for_each_link([&](Link& link) {
      if (link.socket)
        link.slot = set_.add(link.socket.descriptor(), POLLIN);
    });
    set_.wake_after(end.poll_ms());
    set_.wait();
    for_each_link([&](Link& link) {
      if (!link.socket || set_.events(std::exchange(link.slot, PollSet::none)) == 0 ||
          read_ahead(link))
        return;
      link.socket.close();
      --open;
    });
  }
}

} // namespace shmemctl
