#include "src/model/topo/nvlink_traffic.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "src/base/archive.h"

namespace shmemctl {

namespace {

using Count = Fact<std::uint64_t>;

/// 2^53 bytes: no run moves that much over one link, and the sum over all links fits in 64 bits.
constexpr std::uint64_t max_KiB = std::uint64_t{1} << 43;

/// The increase of a counter between two readings, in KiB.
Count step(const Count& before, const Count& after) {
  if (!before || !after)
    return unknown<std::uint64_t>(before ? after.origin : before.origin);
  if (*after < *before)
    return unknown<std::uint64_t>(
        fmt::format("went back from {} to {} KiB: it was reset", *before, *after));
  const std::uint64_t KiB = *after - *before;
  if (KiB > max_KiB)
    return unknown<std::uint64_t>(
        fmt::format("went from {} to {} KiB: more than a link can carry", *before, *after));
  return known(KiB, after.origin);
}

const NvlinkCounter* find(const std::vector<NvlinkCounter>& links, unsigned link) {
  const auto found = std::find_if(links.begin(), links.end(),
                                  [link](const NvlinkCounter& one) { return one.link == link; });
  return found == links.end() ? nullptr : &*found;
}

struct Steps {
  unsigned link = 0;
  Count sent_KiB, received_KiB;
};

/// A link that is only in one of the readings went down or came up between them.
std::vector<Steps> steps_of_links(const NvlinkCounters& before, const NvlinkCounters& after) {
  std::vector<Steps> all;
  const auto half = [&all](unsigned link, const char* words) {
    const Count none = unknown<std::uint64_t>(words);
    all.push_back({link, none, none});
  };
  for (const NvlinkCounter& now : after.links) {
    if (const NvlinkCounter* then = find(before.links, now.link))
      all.push_back({now.link, step(then->sent_KiB, now.sent_KiB),
                     step(then->received_KiB, now.received_KiB)});
    else
      half(now.link, "became active between the readings");
  }
  for (const NvlinkCounter& then : before.links)
    if (!find(after.links, then.link))
      half(then.link, "became inactive between the readings");
  std::sort(all.begin(), all.end(),
            [](const Steps& left, const Steps& right) { return left.link < right.link; });
  return all;
}

Count in_bytes(const Count& KiB) {
  return KiB ? known(*KiB * nvlink_counter_step_bytes, KiB.origin) : KiB;
}

/// Whether the two values agree, except for less than one step per link and the traffic between two
/// queries.
bool agree(std::uint64_t sum_KiB, std::uint64_t total_KiB, std::size_t links) {
  const auto [least, most] = std::minmax(sum_KiB, total_KiB);
  return most - least <= links + 1 + most / 100;
}

/// @param total the driver's own sum; may be unknown
Count sum(const std::vector<Steps>& links, Count Steps::*direction, const Count& total) {
  std::uint64_t KiB = 0;
  for (const Steps& link : links) {
    const Count& one = link.*direction;
    if (!one)
      return unknown<std::uint64_t>(fmt::format("NVLink {}: {}", link.link, one.origin));
    KiB += *one;
  }
  if (total && !agree(KiB, *total, links.size()))
    return unknown<std::uint64_t>(
        fmt::format("the sum of {} NVLink counters is {} KiB, the driver's total is {} KiB",
                    links.size(), KiB, *total));
  return in_bytes(known(KiB, (links.front().*direction).origin));
}

} // namespace

NvlinkTraffic nvlink_traffic(const NvlinkCounters& before, const NvlinkCounters& after) {
  NvlinkTraffic traffic;
  for (const NvlinkCounters* reading : {&before, &after})
    if (reading->links.empty()) {
      traffic.out_bytes = traffic.in_bytes = unknown<std::uint64_t>(reading->problem);
      return traffic;
    }
  const std::vector<Steps> links = steps_of_links(before, after);
  for (const Steps& link : links)
    traffic.links.push_back({link.link, in_bytes(link.sent_KiB), in_bytes(link.received_KiB)});
  traffic.out_bytes = sum(links, &Steps::sent_KiB, step(before.sent_KiB, after.sent_KiB));
  traffic.in_bytes =
      sum(links, &Steps::received_KiB, step(before.received_KiB, after.received_KiB));
  return traffic;
}

void serialize(Archive& archive, NvlinkTraffic::OfLink& link) {
  archive(link.link, link.out_bytes.value, link.out_bytes.origin, link.in_bytes.value,
          link.in_bytes.origin);
}

void serialize(Archive& archive, NvlinkTraffic& traffic) {
  archive(traffic.links, traffic.out_bytes.value, traffic.out_bytes.origin, traffic.in_bytes.value,
          traffic.in_bytes.origin);
}

} // namespace shmemctl
