// Settings of a machine that both the checks and the host facts use. They are defined in the source
// files of the checks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

// system.cpp
/// CPU frequency governors; the value lists the files that name the governor.
std::map<std::string, std::vector<std::string>> governors(const Sysroot& sysroot);

// memory.cpp
/// The kernel's MemTotal in bytes, which is slightly less than the installed memory.
std::optional<std::uint64_t> memory_bytes(const Sysroot& sysroot);
/// The size of /dev/shm in bytes. Empty if it is not mounted or its size is unknown.
std::optional<std::uint64_t> shm_bytes(const Sysroot& sysroot);
/// Reserved huge pages by pool: "hugepages-2048kB" -> 0.
std::map<std::string, long long> huge_page_pools(const Sysroot& sysroot);
/// "always", "madvise" or "never".
std::optional<std::string> transparent_huge_pages(const Sysroot& sysroot);

// rdma.cpp
/// The active MTU of an RDMA port in bytes, as the port reports it or, for RoCE, derived from the
/// MTU of its netdev.
std::optional<int> port_mtu_bytes(const Sysroot& sysroot, const RdmaPort& at);
/// Lists the indices and kinds of a port's GIDs, without addresses: "1 RoCE v2 link-local, 3 RoCE
/// v2 IPv4"; "none" if the port has no GIDs.
std::string gid_kinds(const NicPort& port);
/// The indices of the GIDs that connections use. For a RoCE port: the GIDs that reach other hosts
/// and those that environment variables name; all of them if there are none of these. For other
/// ports: the first.
std::set<int> gid_indices_in_use(const RdmaPort& at, const Environment& environment);

} // namespace shmemctl::doctor
