// Encoding of the data that PEs exchange to connect. For any bytes that a peer sends, decoding
// gives a value within these limits, or nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/archive.h"
#include "transports/mlx5/hca.h"
#include "transports/rc/connect.h"

namespace shmemctl::mlx5 {

namespace wire_limits {
inline constexpr std::size_t ports = 8;
/// The most that options allow: 64 of ibgda for the host (IBGDA_NUM_RC_PER_PE), and as many for
/// kernels that post.
inline constexpr std::size_t qp_sets = 128;
} // namespace wire_limits

/// The data that decide whether a peer can be reached.
struct Summary {
  enum class Kind : std::uint8_t { none, real, emulated };
  Kind kind = Kind::none;
  std::string reason; ///< why there are no devices
  bool ethernet = false;
  std::string over;                    ///< for an emulated HCA: the transport it uses, "shm"
  std::uint64_t network_namespace = 0; ///< memory can be shared only within a namespace
  std::string below;                   ///< local_info() of the transport below
  bool has_atomics = true;             ///< whether a real HCA has atomics of 8 bytes
  bool operator==(const Summary&) const = default;
};

/// A PE's ports, for planning connections.
struct Hello {
  struct Port {
    std::string device;
    std::uint8_t port = 1;
    bool operator==(const Port&) const = default;
  };
  std::string host;
  std::uint8_t qp_sets = 1;
  std::vector<Port> ports;
  bool operator==(const Hello&) const = default;
};

void serialize(Archive& archive, Summary& summary);
void serialize(Archive& archive, Hello& hello);

} // namespace shmemctl::mlx5
