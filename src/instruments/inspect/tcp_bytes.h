// Bytes of each TCP connection, as the kernel counts them per socket.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"
#include "src/instruments/inspect/process.h"

namespace shmemctl::inspect {

/// Payload since the connection was made.
struct TcpBytes {
  std::uint64_t acknowledged = 0; ///< sent, and acknowledged by the peer
  std::uint64_t received = 0;
};
/// Counts by the inode of the socket.
using TcpBytesByInode = std::map<std::uint64_t, TcpBytes>;

/// Adds the counts of one message (an inet_diag_msg and its attributes, without header). Leaves out
/// sockets without an inode, which belong to no process.
void add_tcp_message(std::string_view body, TcpBytesByInode& to);

/// Adds the lines of a text: "inode 77 acked-bytes 1024 received-bytes 2048".
void add_tcp_text(std::string_view text, TcpBytesByInode& to);
/// The reverse of add_tcp_text(), for a recording.
std::string tcp_text(const TcpBytesByInode& bytes);

/// The path of tcp_text() in a recorded tree.
inline constexpr const char* tcp_record_path = "/shmemctl/tcp";

/// Reads the bytes of the established connections in our network namespace, by NETLINK_SOCK_DIAG;
/// of a recorded tree from tcp_record_path. What could not be read is added to `skipped`.
TcpBytesByInode read_tcp_bytes(const Sysroot& sysroot, std::vector<Skipped>& skipped);

/// Sets the totals of the connections from the second reading and, if `watched`, the bytes moved
/// between the two readings. A connection that a reading lacks gets no value from it.
void fill_tcp_bytes(const TcpBytesByInode& before, const TcpBytesByInode& after, bool watched,
                    std::vector<TcpConnection>& connections);

} // namespace shmemctl::inspect
