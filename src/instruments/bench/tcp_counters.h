// How many TCP segments a network namespace has sent, and sent again.
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

/// Since boot, or between two readings. Of all connections of the network namespace, other
/// programs' too: Linux has no count by process.
struct TcpCounters {
  std::optional<std::uint64_t> sent, sent_again;
};

/// OutSegs and RetransSegs of /proc/net/snmp, by the names in its header line. Nothing for a
/// counter that is missing or malformed.
TcpCounters parse_tcp_counters(std::string_view snmp);
TcpCounters read_tcp_counters(const Sysroot& sysroot);
/// Nothing where a reading is missing or a counter has gone back.
TcpCounters change_between(const TcpCounters& before, const TcpCounters& after);
void add_to(TcpCounters& sum, const TcpCounters& more);

/// `bench-tcp-retransmits`: at least 10 segments, and more than one in a thousand, were sent again.
/// @param hosts with their counters during the case, those whose PEs use a transport over TCP
std::optional<Finding> tcp_finding(const std::string& subject,
                                   const std::vector<std::pair<std::string, TcpCounters>>& hosts);

} // namespace shmemctl::bench
