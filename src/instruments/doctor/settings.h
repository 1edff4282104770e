// Settings of a machine that both checks and the host's facts are made of; defined beside the
// checks.
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
/// CPU frequency governors, each with the files that name it.
std::map<std::string, std::vector<std::string>> governors(const Sysroot& sysroot);

// memory.cpp
/// The kernel's MemTotal: a little less than the installed memory.
std::optional<std::uint64_t> memory_bytes(const Sysroot& sysroot);
/// The size of /dev/shm; empty if it is not mounted, or if its size is unknown.
std::optional<std::uint64_t> shm_bytes(const Sysroot& sysroot);
/// Reserved huge pages by pool: "hugepages-2048kB" -> 0.
std::map<std::string, long long> huge_page_pools(const Sysroot& sysroot);
/// "always", "madvise" or "never".
std::optional<std::string> transparent_huge_pages(const Sysroot& sysroot);

// rdma.cpp
/// The active MTU of an RDMA port, from the port itself or, for RoCE, from its netdev.
std::optional<int> port_mtu_bytes(const Sysroot& sysroot, const RdmaPort& at);
/// The kinds of a port's GIDs by index, without their addresses: "1 RoCE v2 link-local, 3 RoCE v2
/// IPv4"; "none".
std::string gid_kinds(const NicPort& port);
/// The indices of a port's GIDs that connections use: of RoCE those that reach other hosts and
/// those that variables name, or all if there are none; of other ports the first.
std::set<int> gid_indices_in_use(const RdmaPort& at, const Environment& environment);

} // namespace shmemctl::doctor
