// Bytes that arrive at a PE's socket.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "src/runtime/memory/local_peers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const shmemctl::JobSecret secret{1, 2, 3};
  // Unsigned bytes are never a message, unless they are one that was written by us.
  const auto message = shmemctl::decode(data, size, secret);
  if (message) {
    const shmemctl::PeerDatagram again = encode(*message, secret);
    if (size != again.size() || std::memcmp(again.data(), data, size) != 0)
      std::abort();
  }
  // Fields made of these bytes come back as they were.
  shmemctl::PeerMessage made;
  if (size >= sizeof made.sequence + 9) {
    std::memcpy(&made.from_pe, data, 4);
    std::memcpy(&made.to_pe, data + 4, 4);
    std::memcpy(&made.sequence, data + 8, 8);
    made.has_descriptor = data[16] % 2 != 0;
    const shmemctl::PeerDatagram datagram = encode(made, secret);
    const auto read = shmemctl::decode(datagram.data(), datagram.size(), secret);
    if (!read || read->from_pe != made.from_pe || read->to_pe != made.to_pe ||
        read->sequence != made.sequence || read->has_descriptor != made.has_descriptor)
      std::abort();
  }
  return 0;
}
