// What the device's error codes mean, for people.
#pragma once

#include <cstdint>
#include <string>

namespace shmemctl::mlx5 {

struct SyndromeText {
  std::string status; ///< "remote access error"
  std::string fix;    ///< one line
};

/// For any number: unknown ones say so.
SyndromeText syndrome_text(std::uint8_t syndrome);

/// "RDMA WRITE"; "operation 0x2a" for one that is not ours.
std::string opcode_text(std::uint8_t opcode);

} // namespace shmemctl::mlx5
