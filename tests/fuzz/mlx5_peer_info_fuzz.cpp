// What a peer says of its mlx5 queue.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "transports/mlx5/hca.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    // What is taken says what it was.
    if (shmemctl::mlx5::PeerInfo::decode(bytes).encode() != bytes)
      std::abort();
  } catch (const shmemctl::Error&) {
  }
  return 0;
}
