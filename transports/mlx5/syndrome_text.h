// Texts for the device's error codes.
#pragma once

#include <cstdint>
#include <string>

namespace shmemctl::mlx5 {

struct SyndromeText {
  std::string status; ///< "remote access error"
  std::string fix;    ///< one line
};

/// The text of a syndrome; says so if the syndrome is unknown.
SyndromeText syndrome_text(std::uint8_t syndrome);

/// "RDMA WRITE"; "operation 0x2a" for an opcode that shmemctl does not use.
std::string opcode_text(std::uint8_t opcode);

} // namespace shmemctl::mlx5
