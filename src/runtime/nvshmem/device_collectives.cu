// The device library's collectives (nvshmem_compat/device/library.cuh), for each scope and number.
#define SHMEMCTL_DEVICE_LIBRARY_DEFINES
#include "nvshmem_compat/types.h"

#include "nvshmem_compat/device/library.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

#define FOR_SCOPE(Scope)                                                                           \
  template __device__ bool broadcast_bytes<Scope>(int, void*, const void*, std::size_t, int);      \
  template __device__ bool gather_bytes<Scope>(int, void*, const void*, std::size_t, std::size_t); \
  template __device__ bool same_call<Scope>(int, CollectiveCall);                                  \
  FOR_NUMBER(Scope, std::int8_t)                                                                   \
  FOR_NUMBER(Scope, std::int16_t)                                                                  \
  FOR_NUMBER(Scope, std::int32_t)                                                                  \
  FOR_NUMBER(Scope, std::int64_t)                                                                  \
  FOR_NUMBER(Scope, std::uint8_t)                                                                  \
  FOR_NUMBER(Scope, std::uint16_t)                                                                 \
  FOR_NUMBER(Scope, std::uint32_t)                                                                 \
  FOR_NUMBER(Scope, std::uint64_t)                                                                 \
  FOR_NUMBER(Scope, float)                                                                         \
  FOR_NUMBER(Scope, double)                                                                        \
  FOR_NUMBER(Scope, device::Bf16)                                                                  \
  FOR_NUMBER(Scope, device::Fp16)
#define FOR_NUMBER(Scope, Number)                                                                  \
  template __device__ bool reduce_numbers<Scope, Number>(int, Number*, const Number*, std::size_t, \
                                                         ReduceOp, bool);
FOR_SCOPE(Thread)
FOR_SCOPE(Warp)
FOR_SCOPE(Block)
template __device__ bool reduce_maxloc<Block>(int, void*, const void*, std::size_t);

} // namespace shmemctl::nvshmem
#endif
