// What strangers may send to a PE's socket.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <string>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/runtime/memory/local_peers.h"

namespace shmemctl::test {

inline JobSecret new_secret() {
  JobSecret secret{};
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw std::runtime_error("getrandom");
  return secret;
}

/// Sends bytes and any number of descriptors to an abstract socket; false if it took nothing.
inline bool send_to_name(const std::string& name, const void* data, std::size_t size_bytes,
                         const std::vector<int>& descriptors) {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  iovec piece{const_cast<void*>(data), size_bytes};
  std::vector<std::byte> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr header{};
  header.msg_name = &address;
  header.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return ::sendmsg(socket.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/// A thread that fills a socket's queue with garbage, some of it with descriptors.
class Flood {
public:
  explicit Flood(std::string name)
      : name_(std::move(name)), thread_([this] {
          std::mt19937 random(1);
          const FileDescriptor zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
          std::array<std::uint32_t, 64> garbage;
          while (!stop_.load()) {
            for (std::uint32_t& word : garbage)
              word = static_cast<std::uint32_t>(random());
            const std::vector<int> descriptors(random() % 3, zero.get());
            if (send_to_name(name_, garbage.data(), random() % sizeof garbage, descriptors))
              sent_.fetch_add(1);
            else
              std::this_thread::yield();
          }
        }) {}
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  std::size_t sent() const { return sent_.load(); }

private:
  std::string name_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> sent_{0};
  std::thread thread_;
};

} // namespace shmemctl::test
