// How long the threads of this process have run: the one that measures, and those that serve it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "src/base/sysroot.h"

namespace shmemctl::bench {

/// Name of the thread that measures; others have the names that their components gave them.
inline constexpr const char* measuring_thread = "host";

/// Time on a core so far, in ns, by name: the calling thread, the proxy's ("proxy", "proxy 1") and
/// those of transports ("libfabric", "ucx", "ibrc"). Without threads whose times the kernel does
/// not report. Threads with the same name are added up.
std::map<std::string, std::uint64_t> thread_run_ns(const Sysroot& sysroot);

/// Share of one core that each thread had between two such readings.
/// @param wall_s the time between them; nothing unless it is positive
std::map<std::string, double> core_shares(const std::map<std::string, std::uint64_t>& before,
                                          const std::map<std::string, std::uint64_t>& after,
                                          double wall_s);

} // namespace shmemctl::bench
