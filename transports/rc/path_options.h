// The options of a reliable connection's path, which every transport over such connections reads.
#pragma once

#include "src/base/options.h"

namespace shmemctl::rc {

struct PathOptions {
  int gid_index = -1; ///< -1: the transport chooses among the port's GIDs
  int service_level = 0;
  int traffic_class = 0; ///< of RoCE
  int ack_timeout = 18;  ///< 4.096 us times 2 to this power
  int retry_count = 6;   ///< 7 is "for ever" on some devices
};

/// Of options that are valid: the transport checks all that its row in the registry names.
PathOptions read_path_options(const Options& options);

} // namespace shmemctl::rc
