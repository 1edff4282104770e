// The transport ucx: operations through UCX (libucp), which chooses devices and protocols itself.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "transports/transport.h"

namespace shmemctl {

/// UCX's settings by their names without "UCX_" ("TLS"). They override the environment. For tests
/// only; users set UCX's own variables.
using UcxSettings = std::map<std::string, std::string>;

/// Opens the library that the option UCX_LIBRARY names. Without it, or in a build without UCX's
/// headers, the transport reaches no PE and says why.
std::unique_ptr<Transport> make_ucx_transport(const TransportSetup& setup,
                                              const UcxSettings& settings = {});

} // namespace shmemctl
