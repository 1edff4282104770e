// Replaces address_handles.cpp in builds without the headers of libibverbs.
#if !__has_include(<infiniband/verbs.h>)

#include "transports/verbs/address_handles.h"

namespace shmemctl::verbs {

AddressOutcomes try_address_handles(const std::string&, const std::vector<PortAddress>&) {
  AddressOutcomes result;
  result.unusable = "this build has no verbs: the headers of libibverbs were missing";
  return result;
}

} // namespace shmemctl::verbs

#endif
