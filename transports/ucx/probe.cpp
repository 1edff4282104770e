#include "transports/ucx/probe.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace shmemctl {

namespace {

constexpr std::size_t longest_name_bytes = sizeof(sockaddr_un::sun_path) - 1;

FileDescriptor new_socket() {
  return FileDescriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Fills an abstract address, which starts with a null byte and is not a file. Returns its length.
socklen_t to_address(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

const sockaddr* raw(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

} // namespace

UcxPresence::UcxPresence() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    return;
  const std::string name = "shmemctl-ucx-" + std::to_string(number);
  sockaddr_un address;
  const socklen_t length = to_address(name, address);
  socket_ = new_socket();
  if (socket_ && ::bind(socket_.get(), raw(address), length) == 0)
    name_ = name;
}

bool UcxPresence::is_there(const std::string& name) {
  if (name.empty() || name.size() > longest_name_bytes)
    return false;
  sockaddr_un address;
  const socklen_t length = to_address(name, address);
  const FileDescriptor probe = new_socket();
  // Without a socket, the state is unknown; the peer is then assumed to be alive.
  return !probe || ::connect(probe.get(), raw(address), length) == 0;
}

} // namespace shmemctl
