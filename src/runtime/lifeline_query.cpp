#include "src/runtime/lifeline_query.h"

#include <cerrno>
#include <chrono>
#include <thread>

namespace shmemctl::lifeline {

namespace {

/// Asks on a connection that stands. Nothing if what answers is not that PE.
std::optional<Status> ask_on(Socket& socket, const State& state, int about,
                             const Deadline& deadline, const WaitCheck& check) {
  const Handshake handshake = knock_at(socket, deadline, check);
  const std::string question =
      encode(proven(handshake, state.secret(), Query{state.hello(), about}));
  socket.send_all(question.data(), question.size(), deadline, check);
  const std::optional<Message> answer = receive_message(socket, deadline, check);
  const auto* status = answer ? std::get_if<Status>(&*answer) : nullptr;
  const bool is_true = status && is_proven(handshake, state.secret(), *answer);
  return is_true ? std::optional(*status) : std::nullopt;
}

std::optional<Status> ask_at(const State& state, const SocketAddress& address, int pe, int about,
                             const Deadline& deadline) {
  const WaitCheck check = [&state] { state.check(); };
  try {
    Socket socket = Socket::connect(address, state.words_for(pe), deadline, check);
    return ask_on(socket, state, about, deadline, check);
  } catch (const Error&) {
    state.check();
    return std::nullopt;
  }
}

/// The errno that connecting ends with, 0 if it stands; ETIME if it takes too long.
int connect_once(const SocketAddress& address, const std::string& words, const Deadline& deadline,
                 Socket& socket) {
  int problem = 0;
  socket = Socket::start_connect(address, words, problem);
  while (problem == 0 && (problem = socket.connect_error()) == EINPROGRESS) {
    if (deadline.passed())
      return ETIME;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    problem = 0;
  }
  return problem;
}

/// What the listener at that address tells; nothing if the connection ended without an answer.
std::optional<Presence> presence_at(const State& state, const SocketAddress& address, int pe,
                                    const Deadline& deadline) {
  const WaitCheck check = [&state] { state.check(); };
  try {
    Socket socket;
    const int problem = connect_once(address, state.words_for(pe), deadline, socket);
    if (problem != 0)
      return problem == ECONNREFUSED ? Presence::gone : Presence::silent;
    if (ask_on(socket, state, -1, deadline, check))
      return Presence::answers;
  } catch (const Error& error) {
    state.check();
    if (error.code() == ExitCode::deadline)
      return Presence::silent;
  }
  return std::nullopt;
}

} // namespace

std::optional<Message> receive_message(Socket& socket, const Deadline& deadline,
                                       const WaitCheck& check) {
  std::string received(frame_header_bytes, '\0');
  socket.receive_all(received.data(), received.size(), deadline, check);
  const std::optional<std::size_t> size_bytes = frame_size(received, max_frame_bytes);
  if (!size_bytes)
    return std::nullopt;
  received.resize(*size_bytes);
  socket.receive_all(received.data() + frame_header_bytes, *size_bytes - frame_header_bytes,
                     deadline, check);
  Decoded decoded = decode(received, max_frame_bytes);
  return decoded.state == Decoding::complete ? std::optional(std::move(decoded.message))
                                             : std::nullopt;
}

Handshake knock_at(Socket& socket, const Deadline& deadline, const WaitCheck& check) {
  Handshake handshake;
  handshake.dialer = random_nonce();
  const std::string knock = encode(Knock{handshake.dialer});
  socket.send_all(knock.data(), knock.size(), deadline, check);
  const std::optional<Message> answer = receive_message(socket, deadline, check);
  const auto* challenge = answer ? std::get_if<Challenge>(&*answer) : nullptr;
  if (!challenge)
    throw Error(ExitCode::unavailable, socket.peer(), "connect",
                "the process that listens there is not a PE of this version of shmemctl",
                "run the same version of shmemctl on all hosts");
  handshake.listener = challenge->nonce;
  return handshake;
}

Presence presence_of(const State& state, const AddressBook& addresses, int pe, double limit_s) {
  const std::vector<SocketAddress>& known = addresses[static_cast<std::size_t>(pe)];
  bool silent = false;
  for (const SocketAddress& address : known) {
    const double share_s = limit_s / static_cast<double>(known.size());
    const Deadline deadline = Deadline::after(std::chrono::duration<double>(share_s));
    std::optional<Presence> presence;
    // One that died with the question in hand is asked again, and is not there then.
    while (!presence && !deadline.passed())
      presence = presence_at(state, address, pe, deadline);
    if (presence == Presence::answers)
      return Presence::answers;
    silent = silent || presence != Presence::gone;
  }
  return silent ? Presence::silent : Presence::gone;
}

std::optional<Status> ask(const State& state, const AddressBook& addresses, int pe, int about,
                          double limit_s) {
  const std::vector<SocketAddress>& known = addresses[static_cast<std::size_t>(pe)];
  for (const SocketAddress& address : known) {
    const double share_s = limit_s / static_cast<double>(known.size());
    const Deadline deadline = Deadline::after(std::chrono::duration<double>(share_s));
    if (std::optional<Status> status = ask_at(state, address, pe, about, deadline))
      return status;
  }
  return std::nullopt;
}

} // namespace shmemctl::lifeline
