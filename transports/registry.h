// The registry of transports: one row each, which the runtime, the option table, `doctor` and `env`
// read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transports/transport.h"

namespace shmemctl {

/// Options that may name a transport, besides TRANSPORT, which may name any; bits.
namespace transport_use {
inline constexpr unsigned remote = 1;    ///< REMOTE_TRANSPORT
inline constexpr unsigned automatic = 2; ///< tried for REMOTE_TRANSPORT=auto, in the rows' order
inline constexpr unsigned carrier =
    4; ///< EMULATED_HCA_OVER: executes the emulated HCA's operations
} // namespace transport_use

/// The NICs of a transport, each of which doctor's loopback check uses in turn.
enum class TransportNics {
  none,              ///< memory of the node only: there is no loopback check
  chosen_by_library, ///< one check, by whatever the library chooses
  rdma,              ///< every RDMA port with reliable connections: all but EFA's
  mlx5               ///< mlx5 ports, or the emulated HCA
};

/// One transport. docs/development.md shows how to add one.
struct TransportRow {
  std::string name;    ///< "ibrc": what options and reports call it
  std::string summary; ///< what moves the data, in one clause: "UCX (libucp)"
  unsigned uses = 0;   ///< value of transport_use
  TransportNics nics = TransportNics::none;
  std::vector<std::string> options; ///< options that it reads, as the option table names them
  /// Throws Error (usage) for invalid options, and for nothing that is missing.
  std::unique_ptr<Transport> (*make)(const TransportSetup& setup) = nullptr;
  /// Without this package's headers the transport is left out of a build; "": it never is.
  std::string package = "";
  bool built = true; ///< whether this build has it; if not, what make() returns reaches no PE
};

/// All transports, by preference where several are tried.
const std::vector<TransportRow>& transport_registry();
/// The row of a transport; nullptr for an unknown name.
const TransportRow* find_transport(std::string_view name);
/// Names of the transports that have all of these uses, in the order of the registry.
std::vector<std::string> transport_names(unsigned uses);
/// Why this build has no such transport, in one clause; "" if it has.
std::string why_absent(const TransportRow& row);
/// What provides it then.
std::string absent_fix(const TransportRow& row);

/// Throws std::logic_error for a name that is not in the registry, and as its make() does.
std::unique_ptr<Transport> make_transport(const std::string& name, const TransportSetup& setup);

} // namespace shmemctl
