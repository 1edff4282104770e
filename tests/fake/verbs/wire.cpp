#include "tests/fake/verbs/wire.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace fake_verbs {

namespace {

sockaddr_un address_of(std::int32_t process, Box box, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // An abstract name: nothing stays behind.
  const int written =
      std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "fake-verbs-%d-%s", process,
                    box == Box::requests ? "requests" : "responses");
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<std::size_t>(written));
  return address;
}

} // namespace

int open_box(Box box) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  socklen_t length = 0;
  const sockaddr_un address = address_of(::getpid(), box, length);
  if (socket >= 0 && ::bind(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0)
    return socket;
  ::close(socket);
  return -1;
}

bool send_to(int socket, std::int32_t process, Box box, const Datagram& datagram,
             std::size_t data_bytes) {
  socklen_t length = 0;
  const sockaddr_un address = address_of(process, box, length);
  const std::size_t size_bytes = sizeof datagram.head + data_bytes;
  for (;;) {
    const ssize_t sent = ::sendto(socket, &datagram, size_bytes, MSG_NOSIGNAL,
                                  reinterpret_cast<const sockaddr*>(&address), length);
    if (sent == static_cast<ssize_t>(size_bytes))
      return true;
    if (errno != EINTR && errno != ENOBUFS)
      return false;
  }
}

bool receive(int socket, Datagram& datagram) {
  for (;;) {
    const ssize_t got = ::recv(socket, &datagram, sizeof datagram, 0);
    if (got >= static_cast<ssize_t>(sizeof datagram.head))
      return true;
    if (got >= 0 || errno != EINTR)
      return false;
  }
}

} // namespace fake_verbs
