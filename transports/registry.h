// The registry of transports: one row for each transport that options can name. The runtime, the
// option table, `doctor` and `env` read it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transports/transport.h"

namespace shmemctl {

/// Which options may name a transport, one bit for each. TRANSPORT, which may name any, has none.
namespace transport_use {
inline constexpr unsigned remote = 1;    ///< REMOTE_TRANSPORT
inline constexpr unsigned automatic = 2; ///< tried for REMOTE_TRANSPORT=auto, in the rows' order
inline constexpr unsigned carrier =
    4; ///< EMULATED_HCA_OVER: executes the emulated HCA's operations
} // namespace transport_use

/// The NICs of a transport; the loopback check of `doctor` uses each of them in turn.
enum class TransportNics {
  none,              ///< none; it reaches memory of the node only, so there is no loopback check
  chosen_by_library, ///< one check, over the NIC that the library chooses
  rdma,              ///< every active RDMA port with reliable connections: all but EFA's
  mlx5               ///< active mlx5 ports, or the emulated HCA
};

/// One transport. docs/development.md shows how to add one.
struct TransportRow {
  std::string name;    ///< the name in options and reports: "ibrc"
  std::string summary; ///< what moves the data, in one clause: "UCX (libucp)"
  unsigned uses = 0;   ///< bits of transport_use
  TransportNics nics = TransportNics::none;
  std::vector<std::string> options; ///< options that it reads, as the option table names them
  /// Throws Error (usage) for invalid options. Does not throw for missing libraries or devices.
  std::unique_ptr<Transport> (*make)(const TransportSetup& setup) = nullptr;
  /// A build without this package's headers lacks the transport; "" if every build has it.
  std::string package = "";
  bool built = true; ///< if false, make() returns a transport that reaches no PE
};

/// All rows, in the order in which REMOTE_TRANSPORT=auto tries them.
const std::vector<TransportRow>& transport_registry();
/// The row of a transport; nullptr for an unknown name.
const TransportRow* find_transport(std::string_view name);
/// Names of the transports that have all of these uses, in the order of the registry.
std::vector<std::string> transport_names(unsigned uses);
/// Why this build lacks the transport, in one clause; "" if it has the transport.
std::string why_absent(const TransportRow& row);
/// How to get a build with the transport, in one clause.
std::string absent_fix(const TransportRow& row);

/// Throws std::logic_error for a name that is not in the registry, and what its make() throws.
std::unique_ptr<Transport> make_transport(const std::string& name, const TransportSetup& setup);

} // namespace shmemctl
