// Who and where: my_pe, n_pes, accessibility, version and name.
#include <cstring>

#include "src/shmem/api.h"

using namespace shmemctl;
using api::World;

SHMEMCTL_API(int, shmem_my_pe, (void)) {
  return api::guarded([](World& world) { return world.rma.pe(); });
}

SHMEMCTL_API(int, shmem_n_pes, (void)) {
  return api::guarded([](World& world) { return world.rma.n_pes(); });
}

SHMEMCTL_API(int, shmem_pe_accessible, (int pe)) {
  return api::guarded([&](World& world) {
    return pe >= 0 && pe < world.rma.n_pes() && world.reachable(pe) ? 1 : 0;
  });
}

SHMEMCTL_API(int, shmem_addr_accessible, (const void* addr, int pe)) {
  return api::guarded([&](World& world) {
    const bool valid = pe >= 0 && pe < world.rma.n_pes() && world.reachable(pe);
    return valid && world.rma.locate(addr, pe).region > region::internal ? 1 : 0;
  });
}

SHMEMCTL_API(void*, shmem_ptr, (const void* dest, int pe)) {
  return api::guarded([&](World& world) { return world.rma.direct(dest, pe); });
}

SHMEMCTL_API(void, shmem_info_get_version, (int* major, int* minor)) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
}

SHMEMCTL_API(void, shmem_info_get_name, (char* name)) {
  static_assert(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN);
  std::memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}

SHMEMCTL_API(void, shmem_query_thread, (int* provided)) {
  api::guarded([&](World& world) { *provided = world.thread_level(); });
}

SHMEMCTL_API(void, shmem_pcontrol, (int, ...)) {}

SHMEMCTL_API(int, _my_pe, (void)) {
  return pshmem_my_pe();
}

SHMEMCTL_API(int, _num_pes, (void)) {
  return pshmem_n_pes();
}
