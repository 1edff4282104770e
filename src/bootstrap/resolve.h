// Host names, with a deadline.
#pragma once

#include <string>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/socket.h"

namespace shmemctl {

/// The addresses of a host name. A name server that is out of order is asked again until the
/// deadline. Throws Error (unavailable: no such host; deadline).
/// @param family AF_UNSPEC, AF_INET or AF_INET6
std::vector<SocketAddress> resolve(const std::string& host, int port, int family,
                                   const Deadline& deadline);

} // namespace shmemctl
