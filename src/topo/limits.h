// Upper limits of a node description. Everything that is quadratic in devices (the
// distance matrix) stays small then, whatever a file claims.
#pragma once

namespace shmemctl::topo_limits {

inline constexpr int max_devices = 1024; ///< GPUs and NICs together
inline constexpr int max_pci_entries = 65536;
inline constexpr int max_pci_functions = 8192; ///< that a file may list, of any class
inline constexpr int max_os_devices = 16384;
inline constexpr int max_numa_nodes = 1024; ///< as Linux's MAX_NUMNODES
inline constexpr int max_packages = 1024;
inline constexpr int max_host_bridges = 4096;

} // namespace shmemctl::topo_limits
