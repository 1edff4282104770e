#include "src/runtime/lifeline_query.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

namespace shmemctl::lifeline {

namespace {

std::optional<Status> receive_status(Socket& socket, const Deadline& deadline,
                                     const WaitCheck& check) {
  std::string received;
  std::array<char, 1> byte{};
  // Byte by byte is slow and simple; this runs once, when a job has come to a stop.
  while (received.size() < max_frame_bytes) {
    socket.receive_all(byte.data(), byte.size(), deadline, check);
    received += byte[0];
    const Decoded decoded = decode(received, max_frame_bytes);
    if (decoded.state == Decoding::garbage)
      return std::nullopt;
    if (decoded.state == Decoding::complete) {
      const auto* status = std::get_if<Status>(&decoded.message);
      return status ? std::optional(*status) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<Status> ask_at(const State& state, const SocketAddress& address, int pe, int about,
                             const Deadline& deadline) {
  const WaitCheck check = [&state] { state.check(); };
  try {
    Socket socket = Socket::connect(address, state.words_for(pe), deadline, check);
    const std::string question = encode(Query{state.hello(), about});
    socket.send_all(question.data(), question.size(), deadline, check);
    return receive_status(socket, deadline, check);
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
    const std::string question = encode(Query{state.hello(), -1});
    socket.send_all(question.data(), question.size(), deadline, check);
    if (receive_status(socket, deadline, check))
      return Presence::answers;
  } catch (const Error& error) {
    state.check();
    if (error.code() == ExitCode::deadline)
      return Presence::silent;
  }
  return std::nullopt;
}

} // namespace

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
