// The deprecated collectives over active sets.
#include <algorithm>

#include "src/shmem/active_set.h"
#include "src/shmem/api.h"
#include "src/shmem/element_type.h"

using namespace shmemctl;
using api::ActiveSet;
using api::ActiveSetArguments;
using api::World;

namespace {

/// A PE that is not in the set does nothing: the specification leaves that open, and old programs
/// let all PEs call.
template <class Body>
void over_active_set(const ActiveSetArguments& arguments, Body&& body) {
  api::guarded([&](World& world) {
    ActiveSet set(world, arguments);
    if (set.member())
      body(set);
  });
}

} // namespace

SHMEMCTL_API(void, shmem_barrier, (int PE_start, int logPE_stride, int PE_size, long* pSync)) {
  over_active_set({PE_start, logPE_stride, PE_size, pSync}, [](ActiveSet& set) { set.barrier(); });
}

SHMEMCTL_API(void, shmem_sync, (int PE_start, int logPE_stride, int PE_size, long* pSync)) {
  over_active_set({PE_start, logPE_stride, PE_size, pSync}, [](ActiveSet& set) { set.sync(); });
}

#define SHMEMCTL_SIZED(N, bytes)                                                                   \
  SHMEMCTL_API(void, shmem_broadcast##N,                                                           \
               (void* dest, const void* source, size_t nelems, int PE_root, int PE_start,          \
                int logPE_stride, int PE_size, long* pSync)) {                                     \
    over_active_set({PE_start, logPE_stride, PE_size, pSync}, [&](ActiveSet& set) {                \
      set.broadcast(dest, source, nelems*(bytes), PE_root);                                        \
    });                                                                                            \
  }                                                                                                \
  SHMEMCTL_API(void, shmem_collect##N,                                                             \
               (void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride,     \
                int PE_size, long* pSync)) {                                                       \
    over_active_set({PE_start, logPE_stride, PE_size, pSync},                                      \
                    [&](ActiveSet& set) { set.collect(dest, source, nelems*(bytes)); });           \
  }                                                                                                \
  SHMEMCTL_API(void, shmem_fcollect##N,                                                            \
               (void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride,     \
                int PE_size, long* pSync)) {                                                       \
    over_active_set({PE_start, logPE_stride, PE_size, pSync},                                      \
                    [&](ActiveSet& set) { set.fcollect(dest, source, nelems*(bytes)); });          \
  }                                                                                                \
  SHMEMCTL_API(void, shmem_alltoall##N,                                                            \
               (void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride,     \
                int PE_size, long* pSync)) {                                                       \
    over_active_set({PE_start, logPE_stride, PE_size, pSync},                                      \
                    [&](ActiveSet& set) { set.alltoall(dest, source, nelems*(bytes)); });          \
  }                                                                                                \
  SHMEMCTL_API(void, shmem_alltoalls##N,                                                           \
               (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,       \
                int PE_start, int logPE_stride, int PE_size, long* pSync)) {                       \
    over_active_set({PE_start, logPE_stride, PE_size, pSync}, [&](ActiveSet& set) {                \
      set.alltoalls(dest, source, dst, sst, nelems, bytes);                                        \
    });                                                                                            \
  }
SHMEMCTL_SIZED(32, 4)
SHMEMCTL_SIZED(64, 8)

#define SHMEMCTL_TO_ALL(T, N, OP, OPERATION)                                                       \
  SHMEMCTL_API(void, shmem_##N##_##OP##_to_all,                                                    \
               (T * dest, const T* source, int nreduce, int PE_start, int logPE_stride,            \
                int PE_size, T*, long* pSync)) {                                                   \
    over_active_set({PE_start, logPE_stride, PE_size, pSync}, [&](ActiveSet& set) {                \
      set.reduce(dest, source, static_cast<std::size_t>(std::max(nreduce, 0)), sizeof(T),          \
                 reduce_kernel(api::element_type<T>(), OPERATION));                                \
    });                                                                                            \
  }
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_TO_ALL(T, N, and, ReduceOp::bit_and)                                                    \
  SHMEMCTL_TO_ALL(T, N, or, ReduceOp::bit_or)                                                      \
  SHMEMCTL_TO_ALL(T, N, xor, ReduceOp::bit_xor)
SHMEMCTL_TO_ALL_BITWISE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_TO_ALL(T, N, max, ReduceOp::maximum) SHMEMCTL_TO_ALL(T, N, min, ReduceOp::minimum)
SHMEMCTL_TO_ALL_COMPARABLE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_TO_ALL(T, N, sum, ReduceOp::sum) SHMEMCTL_TO_ALL(T, N, prod, ReduceOp::product)
SHMEMCTL_TO_ALL_NUMBER_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
