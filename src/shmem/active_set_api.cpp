// The deprecated collectives over active sets.
#include <algorithm>

#include "src/shmem/active_set.h"
#include "src/shmem/api.h"

using namespace shmemctl;
using api::ActiveSet;
using api::ActiveSetArguments;
using api::World;

namespace {

template <class Body>
void over_active_set(const ActiveSetArguments& arguments, Body&& body) {
  api::guarded([&](World& world) {
    ActiveSet set(world, arguments);
    body(set);
  });
}

template <class T, class Operation>
void combine(void* result, const void* with, std::size_t elements) {
  T* left = static_cast<T*>(result);
  const T* right = static_cast<const T*>(with);
  for (std::size_t i = 0; i < elements; ++i)
    left[i] = Operation{}(left[i], right[i]);
}

/// Sums and products of integers wrap around, as two's complement does.
template <class T, class Operation>
T wrapping(T left, T right) {
  if constexpr (std::is_integral_v<T>) {
    // Narrow types are promoted to int, whose product could overflow.
    using Wide = std::conditional_t<sizeof(T) < sizeof(int), unsigned, std::make_unsigned_t<T>>;
    return static_cast<T>(Operation{}(static_cast<Wide>(left), static_cast<Wide>(right)));
  } else {
    return Operation{}(left, right);
  }
}

struct Sum {
  template <class T>
  T operator()(T left, T right) const {
    return wrapping<T, std::plus<>>(left, right);
  }
};
struct Product {
  template <class T>
  T operator()(T left, T right) const {
    return wrapping<T, std::multiplies<>>(left, right);
  }
};
struct Maximum {
  template <class T>
  T operator()(T left, T right) const {
    return std::max(left, right);
  }
};
struct Minimum {
  template <class T>
  T operator()(T left, T right) const {
    return std::min(left, right);
  }
};
template <class Bits>
struct Bitwise {
  template <class T>
  T operator()(T left, T right) const {
    return static_cast<T>(Bits{}(left, right));
  }
};

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

#define SHMEMCTL_TO_ALL(T, N, OP, Operation)                                                       \
  SHMEMCTL_API(void, shmem_##N##_##OP##_to_all,                                                    \
               (T * dest, const T* source, int nreduce, int PE_start, int logPE_stride,            \
                int PE_size, T*, long* pSync)) {                                                   \
    over_active_set({PE_start, logPE_stride, PE_size, pSync}, [&](ActiveSet& set) {                \
      set.reduce(dest, source, static_cast<std::size_t>(std::max(nreduce, 0)), sizeof(T),          \
                 combine<T, Operation>);                                                           \
    });                                                                                            \
  }
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_TO_ALL(T, N, and, Bitwise<std::bit_and<>>)                                              \
  SHMEMCTL_TO_ALL(T, N, or, Bitwise<std::bit_or<>>)                                                \
  SHMEMCTL_TO_ALL(T, N, xor, Bitwise<std::bit_xor<>>)
SHMEMCTL_TO_ALL_BITWISE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N) SHMEMCTL_TO_ALL(T, N, max, Maximum) SHMEMCTL_TO_ALL(T, N, min, Minimum)
SHMEMCTL_TO_ALL_COMPARABLE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N) SHMEMCTL_TO_ALL(T, N, sum, Sum) SHMEMCTL_TO_ALL(T, N, prod, Product)
SHMEMCTL_TO_ALL_NUMBER_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
