// CPU time of the threads of this process: the one that measures, and those that move data for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "src/base/sysroot.h"

namespace shmemctl::bench {

/// Name of the thread that measures; other threads have the names that their components set.
inline constexpr const char* measuring_thread = "host";

/// The CPU time of each thread so far, in ns, by name: the calling thread, the proxy's ("proxy",
/// "proxy 1"), the transports' ("libfabric", "ucx", "ibrc", "staged agent", "emulated-mlx5").
/// Threads with the same name are added up. Missing: other threads, and times that are not known.
std::map<std::string, std::uint64_t> thread_run_ns(const Sysroot& sysroot);

/// The share of one core that each thread used between two readings of thread_run_ns().
/// @param wall_s the time between them; empty result unless it is positive
std::map<std::string, double> core_shares(const std::map<std::string, std::uint64_t>& before,
                                          const std::map<std::string, std::uint64_t>& after,
                                          double wall_s);

} // namespace shmemctl::bench
