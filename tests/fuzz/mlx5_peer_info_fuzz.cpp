// What a peer says of its mlx5 queue.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/archive.h"
#include "transports/mlx5/hca.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto info = shmemctl::from_bytes<shmemctl::mlx5::PeerInfo>(bytes);
  // What is taken says what it was.
  if (info && shmemctl::to_bytes(*info) != bytes)
    std::abort();
  return 0;
}
