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

} // namespace shmemctl::rc
