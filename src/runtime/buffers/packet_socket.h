// Whole messages with descriptors, over connected Unix sockets.
#pragma once

#include <string>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/base/socket.h"

namespace shmemctl::buffers {

/// Non-blocking, close-on-exec, of type SOCK_SEQPACKET.
FileDescriptor packet_socket();

struct Packet {
  enum class State { none, here, ended } state = State::none;
  std::string bytes;
  std::vector<FileDescriptor> descriptors;
  bool descriptors_cut = false; ///< some could not be taken: too many open files
};
/// Takes one message that is there already. Whatever goes wrong on the connection is its end.
Packet receive_packet(int socket);

/// False if it cannot be sent now or ever (`error` has the errno).
bool send_packet(int socket, const std::string& bytes, const std::vector<int>& descriptors,
                 int& error);

} // namespace shmemctl::buffers
