// Operations through UCX (libucp), which chooses devices and protocols by itself.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "transports/transport.h"

namespace shmemctl {

/// UCX's settings by their names without "UCX_" ("TLS"): stronger than the environment. For tests;
/// users have UCX's own variables.
using UcxSettings = std::map<std::string, std::string>;

/// The library is option UCX_LIBRARY. In a build without UCX's headers the transport reaches no PE
/// and says so.
std::unique_ptr<Transport> make_ucx_transport(const TransportSetup& setup,
                                              const UcxSettings& settings = {});

} // namespace shmemctl
