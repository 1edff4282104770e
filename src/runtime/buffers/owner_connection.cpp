#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <utility>

#include "src/base/error.h"
#include "src/runtime/buffers/owner_connection.h"

namespace shmemctl::buffers {

namespace {

constexpr int check_interval_ms = 50;

std::string name_of(int pe) {
  return "registered buffers of PE " + std::to_string(pe);
}

} // namespace

OwnerConnection::OwnerConnection(const JobSecret& secret, int my_pe, int owner_pe,
                                 JobHealth& health, double timeout_s)
    : secret_(secret), me_(my_pe), owner_(owner_pe), health_(health), timeout_s_(timeout_s),
      socket_(packet_socket()) {
  connect(Deadline::after(std::chrono::duration<double>(timeout_s)));
  Reply welcome = call({.kind = RequestKind::hello});
  if (welcome.descriptors.empty())
    throw Error(ExitCode::unavailable, name_of(owner_), "connect", welcome.response.reason,
                "raise the limit of open files: ulimit -n");
  table_ = std::make_unique<RegistrationTable>(std::move(welcome.descriptors[0]),
                                               welcome.response.shape);
}

void OwnerConnection::connect(const Deadline& deadline) {
  const SocketAddress address = SocketAddress::abstract_unix(socket_name(secret_, owner_));
  while (::connect(socket_.get(), address.raw(), address.length()) != 0) {
    const int error = errno;
    health_.check();
    if (error == ECONNREFUSED)
      throw Error(ExitCode::unavailable, name_of(owner_), "connect", "no process listens",
                  "register a buffer on that PE first; all PEs of a node must run in one network "
                  "namespace (container)");
    if (error != EAGAIN && error != EINTR)
      throw system_error(name_of(owner_), "connect", error,
                         "run again; if it persists, report it as a bug in shmemctl");
    pause(0, 1, deadline); // the owner's queue is full
  }
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
    process_ = peer.pid;
}

bool OwnerConnection::alive() const {
  pollfd event{socket_.get(), POLLRDHUP, 0};
  return ::poll(&event, 1, 0) == 0;
}

void OwnerConnection::throw_ended() {
  health_.check();
  throw Error(ExitCode::unavailable, name_of(owner_), "make a request",
              "that PE has closed the connection", "check the output of that PE");
}

void OwnerConnection::pause(short events, int longest_ms, const Deadline& deadline) {
  pollfd event{socket_.get(), events, 0};
  ::poll(&event, events == 0 ? 0 : 1, deadline.poll_ms(longest_ms));
  health_.check();
  if (deadline.passed())
    health_.give_up("request for a registered buffer", owner_);
}

Packet OwnerConnection::wait_for_packet(const Deadline& deadline) {
  while (true) {
    Packet packet = receive_packet(socket_.get());
    if (packet.state == Packet::State::here)
      return packet;
    if (packet.state == Packet::State::ended)
      throw_ended();
    pause(POLLIN, check_interval_ms, deadline);
  }
}

Reply OwnerConnection::call(Request request) {
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(timeout_s_));
  request.from_pe = static_cast<std::uint32_t>(me_);
  request.to_pe = static_cast<std::uint32_t>(owner_);
  request.sequence = ++sequence_;
  health_.waiting_for(owner_);
  int error = 0;
  const std::string bytes = encode(request, secret_);
  while (!send_packet(socket_.get(), bytes, {}, error)) {
    if (error != EAGAIN && error != ENOBUFS && error != ENOMEM)
      throw_ended();
    pause(POLLOUT, check_interval_ms, deadline);
  }
  while (true) {
    Packet packet = wait_for_packet(deadline);
    auto response = decode_response(packet.bytes.data(), packet.bytes.size(), secret_);
    if (!response)
      throw Error(ExitCode::unavailable, name_of(owner_), "make a request", "malformed reply",
                  "run the same version of shmemctl on all hosts");
    if (response->sequence != request.sequence)
      continue; // the response to an earlier call that was given up
    health_.waiting_for(-1);
    if (packet.descriptors.size() != response->descriptors) {
      response->parts.clear();
      packet.descriptors.clear();
      response->reason = "this PE has too many open files (ulimit -n)";
    }
    return {std::move(*response), std::move(packet.descriptors)};
  }
}

void OwnerConnection::require_done(const Response& response, const char* attempted) const {
  if (response.outcome == Outcome::done)
    return;
  throw Error(response.outcome == Outcome::refused ? ExitCode::usage : ExitCode::unavailable,
              "buffer of PE " + std::to_string(owner_), attempted, response.reason,
              response.fix.empty() ? "check the output of that PE" : response.fix);
}

Reply OwnerConnection::open(const BufferHandle& handle) {
  const std::lock_guard lock(mutex_);
  Reply reply = call({.kind = RequestKind::open, .handle = handle});
  require_done(reply.response, "open");
  return reply;
}

void OwnerConnection::require_stage() {
  const std::lock_guard lock(mutex_);
  if (staged_)
    return;
  const Response response = call({.kind = RequestKind::stage}).response;
  if (response.outcome != Outcome::done)
    throw Error(ExitCode::unavailable, "PE " + std::to_string(owner_), "allocate staging memory",
                response.reason, "check the output of that PE");
  staged_ = true;
}

void OwnerConnection::staged_put(const BufferHandle& handle, std::uint64_t offset_bytes,
                                 const void* source, std::size_t size_bytes, std::uint32_t user,
                                 const LocalCopy& copy) {
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t done = 0; done < size_bytes;) {
    const std::lock_guard lock(mutex_);
    const std::size_t step =
        std::min<std::size_t>(size_bytes - done, table_->shape().staging_bytes);
    copy(table_->stage(user), from + done, step);
    const Request request{.kind = RequestKind::put,
                          .handle = handle,
                          .offset_bytes = offset_bytes + done,
                          .size_bytes = step};
    require_done(call(request).response, "write to it (put)");
    done += step;
  }
}

void OwnerConnection::staged_get(void* target, const BufferHandle& handle,
                                 std::uint64_t offset_bytes, std::size_t size_bytes,
                                 std::uint32_t user, const LocalCopy& copy) {
  auto* to = static_cast<std::byte*>(target);
  for (std::size_t done = 0; done < size_bytes;) {
    const std::lock_guard lock(mutex_);
    const std::size_t step =
        std::min<std::size_t>(size_bytes - done, table_->shape().staging_bytes);
    const Request request{.kind = RequestKind::get,
                          .handle = handle,
                          .offset_bytes = offset_bytes + done,
                          .size_bytes = step};
    require_done(call(request).response, "read from it (get)");
    copy(to + done, table_->stage(user), step);
    done += step;
  }
}

void OwnerConnection::close(const BufferHandle& handle) {
  const std::lock_guard lock(mutex_);
  require_done(call({.kind = RequestKind::close, .handle = handle}).response, "close");
}

} // namespace shmemctl::buffers
