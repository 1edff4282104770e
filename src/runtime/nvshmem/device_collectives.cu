// The device library's strided copies and collectives (nvshmem_compat/device/library.cuh),
// instantiated for each scope and type of elements or numbers.
#define SHMEMCTL_DEVICE_LIBRARY_DEFINES
#include "nvshmem_compat/types.h"

#include "nvshmem_compat/device/library.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

#define FOR_SCOPE(Scope)                                                                           \
  template __device__ bool broadcast_bytes<Scope>(int, void*, const void*, std::size_t, int);      \
  template __device__ bool gather_bytes<Scope>(int, void*, const void*, std::size_t, std::size_t); \
  template __device__ bool same_call<Scope>(int, CollectiveCall);                                  \
  FOR_ELEMENT(Scope, std::uint8_t)                                                                 \
  FOR_ELEMENT(Scope, std::uint16_t)                                                                \
  FOR_ELEMENT(Scope, std::uint32_t)                                                                \
  FOR_ELEMENT(Scope, std::uint64_t)                                                                \
  FOR_ELEMENT(Scope, SixteenBytes)                                                                 \
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
#define FOR_ELEMENT(Scope, Element)                                                                \
  template __device__ void put_strided<Scope, Element>(Element*, const Element*, std::ptrdiff_t,   \
                                                       std::ptrdiff_t, std::size_t, int);          \
  template __device__ void get_strided<Scope, Element>(Element*, const Element*, std::ptrdiff_t,   \
                                                       std::ptrdiff_t, std::size_t, int);
FOR_SCOPE(Thread)
FOR_SCOPE(Warp)
FOR_SCOPE(Block)
template __device__ bool reduce_maxloc<Block>(int, void*, const void*, std::size_t);

} // namespace shmemctl::nvshmem
#endif
