#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "src/runtime/failure_detector_link.h"

namespace shmemctl::failure_detector {

namespace {

bool would_wait(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

std::string ending_reason(int error_number) {
  if (error_number == ETIMEDOUT || error_number == EHOSTUNREACH || error_number == ENETUNREACH)
    return std::string(out_of_reach) + ": " + std::strerror(error_number);
  return "its connection ended";
}

void set_integer(int descriptor, int level, int name, int value) {
  ::setsockopt(descriptor, level, name, &value, sizeof value);
}

} // namespace

void watch_for_silence(const Socket& socket) {
  constexpr int interval_s = 3, probes = 3, unanswered_ms = 15000;
  int domain = AF_UNSPEC;
  socklen_t length = sizeof domain;
  const int descriptor = socket.descriptor();
  if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain == AF_UNIX)
    return;
  set_integer(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_integer(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, probe_after_s);
  set_integer(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set_integer(descriptor, IPPROTO_TCP, TCP_KEEPCNT, probes);
  set_integer(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, unanswered_ms);
}

Link::Link(int peer, Socket socket, std::string received)
    : peer_(peer), socket_(std::move(socket)), received_(std::move(received)) {
  watch_for_silence(socket_);
}

void Link::offer_phase(const PhaseNotice& phase) {
  if (!unsent_.empty() || phase_sent_ == phase.number)
    return;
  phase_sent_ = phase.number;
  queue(phase);
}

void Link::flush() {
  while (!unsent_.empty()) {
    const ssize_t sent =
        ::send(descriptor(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EINTR) {
      continue;
    } else {
      write_closed_ = !would_wait(errno);
      if (write_closed_)
        unsent_.clear();
      return;
    }
  }
}

Ending Link::receive(const std::function<void(Message)>& take) {
  std::array<char, max_frame_bytes> buffer;
  // Bounded, so that a neighbour that sends without end does not keep the others waiting.
  for (int run_once = 0; run_once < 16; ++run_once) {
    if (Ending ending = decode_received(take))
      return ending;
    const ssize_t count = ::recv(descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count == 0)
      return ending_reason(0);
    if (count < 0)
      return would_wait(errno) ? Ending{} : ending_reason(errno);
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return decode_received(take);
}

Ending Link::decode_received(const std::function<void(Message)>& take) {
  std::size_t used = 0;
  for (;;) {
    Decoded decoded = decode(std::string_view(received_).substr(used), max_frame_bytes);
    if (decoded.state == Decoding::garbage)
      return "it sent a malformed message";
    if (decoded.state == Decoding::incomplete) {
      received_.erase(0, used);
      return {};
    }
    used += decoded.size_bytes;
    take(std::move(decoded.message));
  }
}

void Link::drain() {
  std::array<char, max_frame_bytes> buffer;
  for (int run_once = 0; run_once < 16; ++run_once)
    if (::recv(descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT) <= 0)
      return;
}

Decoding PendingConnection::receive() {
  std::array<char, max_unproven_bytes> buffer;
  const ssize_t count = ::recv(descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count == 0 || (count < 0 && !would_wait(errno)))
    return Decoding::garbage;
  if (count > 0)
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  for (;;) {
    Decoded decoded = decode(received_, max_unproven_bytes);
    if (decoded.state != Decoding::complete)
      return decoded.state;
    received_.erase(0, decoded.size_bytes);
    message_ = std::move(decoded.message);
    const auto* connect_request = std::get_if<ConnectionRequest>(&message_);
    if (!connect_request)
      break;
    if (handshake_)
      return Decoding::garbage;
    handshake_ = Handshake{connect_request->nonce, random_nonce()};
    answer(Challenge{handshake_->listener});
  }
  const bool expected =
      std::holds_alternative<Hello>(message_) || std::holds_alternative<Query>(message_);
  return expected && handshake_ ? Decoding::complete : Decoding::garbage;
}

void PendingConnection::answer(const Message& message) {
  const std::string frame = encode(message);
  // A response is smaller than any socket buffer; a peer that cannot take it has gone away.
  [[maybe_unused]] const ssize_t sent =
      ::send(descriptor(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace shmemctl::failure_detector
