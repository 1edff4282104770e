// Encoding of the data that PEs exchange to connect. For any bytes that a peer sends, decoding
// gives a value within these limits, or nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/archive.h"
#include "transports/ibrc/settings.h"
#include "transports/rc/connect.h"
#include "transports/verbs/gid.h"

namespace shmemctl::ibrc {

namespace wire_limits {
inline constexpr std::size_t ports = 64;
inline constexpr std::size_t qp_sets = 66; ///< one of the sets is for replies
} // namespace wire_limits

/// A PE's capabilities for atomics.
struct AtomicsCapabilities {
  AtomicsPreference preference = AtomicsPreference::automatic;
  bool by_device = true; ///< whether all of its HCAs execute atomics
  /// Number of receives that each of its devices can post; 0 if it cannot receive messages.
  std::uint32_t receives = 0;
  bool operator==(const AtomicsCapabilities&) const = default;
};

/// Data for reach(): every PE gets it before anything is connected.
struct Summary {
  struct Port {
    bool ethernet = true;
    std::uint8_t gid_kinds = 0; ///< bit i is set if the port has a GID of GidKind i
    bool operator==(const Port&) const = default;
  };
  std::string reason; ///< why that PE cannot use ibrc; "" if it can
  std::vector<Port> ports;
  AtomicsCapabilities atomics; ///< what every usable port supports
  bool operator==(const Summary&) const = default;
};

/// A PE's NICs, for planning connections.
struct Hello {
  using Address = verbs::Address;
  struct Nic {
    std::string device;
    std::uint8_t port = 1;
    bool ethernet = true;
    bool grh_required = false;
    std::uint16_t lid = 0;
    std::uint16_t mtu_bytes = 1024; ///< MTU of the port
    std::uint64_t max_message_bytes = 0;
    std::uint8_t outstanding_reads = 1;
    bool orders_writes = false;     ///< whether WRITEs of a queue pair are placed in posting order
    std::vector<Address> addresses; ///< best first
    bool operator==(const Nic&) const = default;
  };
  std::string host;
  std::uint16_t wanted_mtu_bytes = 0; ///< 0: the largest MTU that both ports support
  std::uint8_t qp_sets = 1;
  std::vector<Nic> nics;
  AtomicsCapabilities atomics; ///< what every one of these NICs supports
  bool operator==(const Hello&) const = default;
};

/// The data that a peer needs to connect a QP.
struct QpName {
  std::uint32_t number = 0, first_packet = 0; ///< 24 bits each
  bool operator==(const QpName&) const = default;
};

/// The result of one round of connecting, for one peer.
struct Attempt {
  bool failed_somewhere = false;   ///< this PE failed with some peer; all PEs make another round
  std::vector<std::uint8_t> paths; ///< 1 if this PE's end of that path is ready to receive
  bool operator==(const Attempt&) const = default;
};

void serialize(Archive& archive, Summary& summary);
void serialize(Archive& archive, Hello& hello);
void serialize(Archive& archive, QpName& name);
void serialize(Archive& archive, Attempt& attempt);

} // namespace shmemctl::ibrc
