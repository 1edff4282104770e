#include "transports/rc/qp_path.h"

namespace shmemctl::rc {

PathOptions read_path_options(const Options& options) {
  PathOptions path;
  path.service_level = static_cast<int>(options.integer("IB_SL"));
  path.traffic_class = static_cast<int>(options.integer("IB_TRAFFIC_CLASS"));
  path.ack_timeout = static_cast<int>(options.integer("IB_TIMEOUT"));
  path.retry_count = static_cast<int>(options.integer("IB_RETRY_COUNT"));
  return path;
}

std::optional<UnfitOption> unfit_option(const PathOptions& path, bool ethernet) {
  constexpr int last_priority = 7; // three bits of the VLAN tag, and of mlx5's eth_prio
  if (ethernet && path.service_level > last_priority)
    return UnfitOption{"SHMEMCTL_IB_SL is " + std::to_string(path.service_level) +
                           ", and over RoCE it is the Ethernet priority, which is at most " +
                           std::to_string(last_priority),
                       "set SHMEMCTL_IB_SL (--ib-sl) to a value from 0 to " +
                           std::to_string(last_priority)};
  if (!ethernet && path.traffic_class != 0)
    return UnfitOption{"SHMEMCTL_IB_TRAFFIC_CLASS is " + std::to_string(path.traffic_class) +
                           ", and over InfiniBand it must be 0",
                       "unset SHMEMCTL_IB_TRAFFIC_CLASS; over InfiniBand, SHMEMCTL_IB_SL sets "
                       "the service level"};
  return std::nullopt;
}

} // namespace shmemctl::rc
