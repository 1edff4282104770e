// Stands in for the registry of transports in a build of fuzz targets without the runtime: the
// option table needs the names of transports, and not what makes them.
#include "src/base/options.h"

namespace shmemctl {

TransportChoices transport_choices() {
  return {{"shm", "ibrc", "ibdevx", "ibgda", "libfabric", "ucx"},
          {"ibrc", "ibdevx", "libfabric", "ucx"},
          {"ibrc", "libfabric", "ucx"},
          {"shm", "ibrc", "libfabric", "ucx"}};
}

} // namespace shmemctl
