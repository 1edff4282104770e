#include "src/runtime/lifeline_query.h"

#include <array>

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

} // namespace

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
