#include "src/instruments/bench/tcp_counters.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/text.h"

namespace shmemctl::bench {

namespace {

constexpr std::uint64_t few_segments = 10;
constexpr double typical_share = 1e-3;

std::optional<std::uint64_t> count_of(const std::string& word) {
  const std::optional<long long> value = parse_integer(word);
  return value && *value >= 0 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<std::uint64_t> grown(const std::optional<std::uint64_t>& before,
                                   const std::optional<std::uint64_t>& after) {
  return before && after && *after >= *before ? std::optional(*after - *before) : std::nullopt;
}

void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& more) {
  if (more)
    sum = sum.value_or(0) + *more;
}

} // namespace

TcpCounters parse_tcp_counters(std::string_view snmp) {
  // The header "Tcp: RtoAlgorithm RtoMin ... OutSegs RetransSegs ..." precedes a line of numbers.
  TcpCounters counters;
  std::vector<std::string> names;
  for (const std::string& line : split(std::string(snmp), '\n')) {
    if (!starts_with(line, "Tcp: "))
      continue;
    const std::vector<std::string> words = split(line, ' ');
    if (names.empty()) {
      names = words;
      continue;
    }
    for (std::size_t i = 1; i < std::min(names.size(), words.size()); ++i) {
      if (names[i] == "OutSegs")
        counters.sent = count_of(words[i]);
      if (names[i] == "RetransSegs")
        counters.sent_again = count_of(words[i]);
    }
    break;
  }
  return counters;
}

TcpCounters read_tcp_counters(const Sysroot& sysroot) {
  return parse_tcp_counters(sysroot.read("/proc/net/snmp").value_or(""));
}

TcpCounters change_between(const TcpCounters& before, const TcpCounters& after) {
  return {grown(before.sent, after.sent), grown(before.sent_again, after.sent_again)};
}

void add_to(TcpCounters& sum, const TcpCounters& more) {
  add(sum.sent, more.sent);
  add(sum.sent_again, more.sent_again);
}

std::optional<Finding> tcp_finding(const std::string& subject,
                                   const std::vector<std::pair<std::string, TcpCounters>>& hosts) {
  std::vector<std::string> words;
  for (const auto& [host, tcp] : hosts) {
    if (!tcp.sent || !tcp.sent_again || *tcp.sent_again < few_segments ||
        static_cast<double>(*tcp.sent_again) <= typical_share * static_cast<double>(*tcp.sent))
      continue;
    words.push_back(fmt::format("{} sent {} of {} TCP segments again", host, *tcp.sent_again,
                                std::max(*tcp.sent, *tcp.sent_again)));
  }
  if (words.empty())
    return std::nullopt;
  return Finding{
      "bench-tcp-retransmits", Severity::warning, subject,
      join(words, "; ") + ": packets were lost or came too late, and the transport runs "
                          "over TCP",
      "check for drops with shmemctl hotspots and ethtool -S, and compare the MTU of all hosts"};
}

} // namespace shmemctl::bench
