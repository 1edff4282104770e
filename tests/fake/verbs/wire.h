// What processes of the fake RDMA network send each other: datagrams of a local socket, one
// socket for requests and one for responses each, named by the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_verbs {

inline constexpr std::size_t max_bytes = 32 << 10; ///< of a message's data

enum class Op : std::uint32_t { write, read, fetch_add, compare_swap, stop };
/// What ibv_wc_status the answer has: success, remote access error, remote operation error.
struct Head {
  Op op = Op::write;
  std::int32_t from = 0; ///< process
  std::uint32_t from_pair = 0, to_pair = 0;
  std::uint64_t position = 0; ///< in its queue pair
  std::uint64_t address = 0;
  std::uint32_t key = 0, size_bytes = 0;
  std::uint64_t operand = 0, compare = 0;
  std::uint32_t status = 0; ///< of an answer
  std::uint32_t padding = 0;
};
struct Datagram {
  Head head;
  std::byte data[max_bytes];
};

enum class Box { requests, responses };
/// A socket that is bound to this process's name; -1 if there is none.
int open_box(Box box);
/// False if nobody has that box.
bool send_to(int socket, std::int32_t process, Box box, const Datagram& datagram,
             std::size_t data_bytes);
/// Waits. False if the socket is broken.
bool receive(int socket, Datagram& datagram);

} // namespace fake_verbs
