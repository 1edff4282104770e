// Which transports a job has, by its options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "transports/transport.h"

namespace shmemctl {

/// The options that transports read, for validation.
const std::vector<std::string>& transport_option_names();

/// Names of the transports, best first: TRANSPORT as it stands; otherwise shm, and beyond one node,
/// or if it was asked for by name, REMOTE_TRANSPORT, and with IB_ENABLE_IBGDA ibgda besides. The
/// same on all PEs that have the same options. Throws Error (usage) for a name that is none, or
/// twice.
std::vector<std::string> choose_transports(const Options& options, int n_nodes);

/// @param name one that choose_transports() returned
std::unique_ptr<Transport> make_transport(const std::string& name, const TransportSetup& setup);

} // namespace shmemctl
