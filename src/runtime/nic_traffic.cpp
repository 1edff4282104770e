#include "src/runtime/nic_traffic.h"

#include <algorithm>

namespace shmemctl {

std::vector<NicTraffic> traffic_of(Runtime& runtime) {
  std::vector<NicTraffic> all;
  for (const TransportEntry& entry : runtime.transports())
    for (const NicTraffic& traffic : entry.transport->traffic())
      all.push_back(traffic);
  return all;
}

std::vector<NicTraffic> traffic_since(const std::vector<NicTraffic>& before,
                                      std::vector<NicTraffic> now) {
  const auto take = [](std::uint64_t& from, std::uint64_t what) { from -= std::min(from, what); };
  for (NicTraffic& moved : now)
    for (const NicTraffic& then : before)
      if (then.nic == moved.nic) {
        take(moved.put_bytes, then.put_bytes);
        take(moved.get_bytes, then.get_bytes);
        take(moved.operations, then.operations);
        take(moved.long_bytes, then.long_bytes);
        take(moved.long_ns, then.long_ns);
      }
  return now;
}

} // namespace shmemctl
