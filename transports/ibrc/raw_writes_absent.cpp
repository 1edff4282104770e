// Replaces raw_writes.cpp in builds without the headers of libibverbs.
#if !__has_include(<infiniband/verbs.h>)

#include "transports/ibrc/raw_writes.h"

namespace shmemctl::ibrc {

std::unique_ptr<RawWrites> open_raw_writes(const TransportSetup&, const std::vector<HcaPort>&,
                                           std::string& why) {
  why = "this build has no verbs: the headers of libibverbs were missing";
  return nullptr;
}

} // namespace shmemctl::ibrc

#endif
