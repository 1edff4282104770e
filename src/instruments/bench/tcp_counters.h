// Counts the TCP segments that a network namespace has sent and retransmitted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/finding.h"
#include "src/base/sysroot.h"

namespace shmemctl::bench {

/// Counts since boot, or between two readings. They include all connections of the network
/// namespace, also those of other programs, because Linux has no count per process.
struct TcpCounters {
  std::optional<std::uint64_t> sent, sent_again;
};

/// Reads OutSegs and RetransSegs in /proc/net/snmp, finding them by the names in its header line. A
/// counter that is missing or malformed remains empty.
TcpCounters parse_tcp_counters(std::string_view snmp);
TcpCounters read_tcp_counters(const Sysroot& sysroot);
/// The difference of two readings. A counter is empty if a reading is missing or it has decreased.
TcpCounters change_between(const TcpCounters& before, const TcpCounters& after);
void add_to(TcpCounters& sum, const TcpCounters& more);

/// Returns `bench-tcp-retransmits` if at least 10 segments, and more than one in a thousand, were
/// retransmitted on a host.
/// @param hosts hosts whose PEs use a transport over TCP, with their counters during the case
std::optional<Finding> tcp_finding(const std::string& subject,
                                   const std::vector<std::pair<std::string, TcpCounters>>& hosts);

} // namespace shmemctl::bench
