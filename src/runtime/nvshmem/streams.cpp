// Operations on streams: put, get, signals, waits, ordering.
#include <cstring>
#include <type_traits>

#include "src/runtime/nvshmem/job.h"
#include "src/runtime/nvshmem/stream_kernels.h"
#include "src/runtime/rma.h"

using namespace shmemctl;
using nvshmem::World;

namespace {

void put(void* dest, const void* source, std::size_t size_bytes, int pe, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, dest);
    on_stream::put(nvshmem::stream_job(world), dest, source, size_bytes,
                   nvshmem::existing_pe(world, pe), stream);
  });
}

void get(void* dest, const void* source, std::size_t size_bytes, int pe, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, source);
    on_stream::get(nvshmem::stream_job(world), dest, source, size_bytes,
                   nvshmem::existing_pe(world, pe), stream);
  });
}

void iput(const nvshmem::Strided& elements, int pe, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, elements.target);
    nvshmem::iput(nvshmem::stream_job(world), elements, nvshmem::existing_pe(world, pe), stream);
  });
}

void iget(const nvshmem::Strided& elements, int pe, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, elements.source);
    nvshmem::iget(nvshmem::stream_job(world), elements, nvshmem::existing_pe(world, pe), stream);
  });
}

struct Signal {
  std::uint64_t* address;
  std::uint64_t value;
  int op;
};

void put_signal(void* dest, const void* source, std::size_t size_bytes, const Signal& signal,
                int pe, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, dest);
    nvshmem::require_symmetric(world, signal.address);
    on_stream::put_signal(nvshmem::stream_job(world), dest, source, size_bytes, signal.address,
                          signal.value, nvshmem::signal_op(signal.op),
                          nvshmem::existing_pe(world, pe), stream);
  });
}

template <class T>
void put_one(T* dest, const T& value, int pe, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, dest);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value); // little-endian: the first byte is the lowest
    nvshmem::put_value(nvshmem::stream_job(world), dest, bits, sizeof value,
                       nvshmem::existing_pe(world, pe), stream);
  });
}

/// Returns the value to the host, so it waits for the stream first.
void get_one(void* value, const void* source, std::size_t size_bytes, int pe, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    const int origin = nvshmem::existing_pe(world, pe);
    nvshmem::require_symmetric(world, source);
    nvshmem::gpu_of(world).wait(stream, "nvshmemx_g_on_stream");
    world.rma.get(value, source, size_bytes, origin);
  });
}

template <class T>
constexpr nvshmem::WordType word_type() {
  using enum nvshmem::WordType;
  constexpr bool has_sign = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 2)
    return has_sign ? int16 : uint16;
  else if constexpr (sizeof(T) == 4)
    return has_sign ? int32 : uint32;
  else
    return has_sign ? int64 : uint64;
}

template <class T>
void wait_all(const T* words, std::size_t count, const int* status, int cmp, T value,
              const T* values, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    nvshmem::wait_until_all(nvshmem::stream_job(world),
                            {word_type<T>(), words, count, status, nvshmem::comparison(cmp),
                             static_cast<std::uint64_t>(value), values},
                            stream);
  });
}

void wait_for_signal(const std::uint64_t* word, int cmp, std::uint64_t value, cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    on_stream::wait_until(nvshmem::stream_job(world), word, nvshmem::comparison(cmp), value, -1,
                          stream);
  });
}

int barrier(nvshmem_team_t team, cudaStream_t stream) {
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, team))
      return -1;
    on_stream::barrier(nvshmem::stream_job(world), team, stream);
    return 0;
  });
}

int sync(nvshmem_team_t team, cudaStream_t stream) {
  return nvshmem::guarded([&](World& world) {
    if (!nvshmem::is_member(world, team))
      return -1;
    on_stream::sync(nvshmem::stream_job(world), team, stream);
    return 0;
  });
}

} // namespace

extern "C" {

// Blocking and nonblocking calls are the same: later work of the stream begins after the operation.
#define NVSHMEM_COMPAT_MOVES(PUT, GET, T, bytes)                                                   \
  void nvshmemx_##PUT##_on_stream(T* dest, const T* source, size_t nelems, int pe,                 \
                                  cudaStream_t stream) {                                           \
    put(dest, source, nelems*(bytes), pe, stream);                                                 \
  }                                                                                                \
  void nvshmemx_##PUT##_nbi_on_stream(T* dest, const T* source, size_t nelems, int pe,             \
                                      cudaStream_t stream) {                                       \
    put(dest, source, nelems*(bytes), pe, stream);                                                 \
  }                                                                                                \
  void nvshmemx_##GET##_on_stream(T* dest, const T* source, size_t nelems, int pe,                 \
                                  cudaStream_t stream) {                                           \
    get(dest, source, nelems*(bytes), pe, stream);                                                 \
  }                                                                                                \
  void nvshmemx_##GET##_nbi_on_stream(T* dest, const T* source, size_t nelems, int pe,             \
                                      cudaStream_t stream) {                                       \
    get(dest, source, nelems*(bytes), pe, stream);                                                 \
  }                                                                                                \
  void nvshmemx_##PUT##_signal_on_stream(T* dest, const T* source, size_t nelems,                  \
                                         uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,  \
                                         cudaStream_t stream) {                                    \
    put_signal(dest, source, nelems*(bytes), {sig_addr, signal, sig_op}, pe, stream);              \
  }                                                                                                \
  void nvshmemx_##PUT##_signal_nbi_on_stream(T* dest, const T* source, size_t nelems,              \
                                             uint64_t* sig_addr, uint64_t signal, int sig_op,      \
                                             int pe, cudaStream_t stream) {                        \
    put_signal(dest, source, nelems*(bytes), {sig_addr, signal, sig_op}, pe, stream);              \
  }
#define NVSHMEM_COMPAT_STRIDED(PUT, GET, T, bytes)                                                 \
  void nvshmemx_##PUT##_on_stream(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,          \
                                  size_t nelems, int pe, cudaStream_t stream) {                    \
    iput({dest, source, dst, sst, nelems, bytes}, pe, stream);                                     \
  }                                                                                                \
  void nvshmemx_##GET##_on_stream(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,          \
                                  size_t nelems, int pe, cudaStream_t stream) {                    \
    iget({dest, source, dst, sst, nelems, bytes}, pe, stream);                                     \
  }

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_MOVES(N##_put, N##_get, T, sizeof(T))                                             \
  NVSHMEM_COMPAT_STRIDED(N##_iput, N##_iget, T, sizeof(T))                                         \
  void nvshmemx_##N##_p_on_stream(T* dest, const T value, int pe, cudaStream_t stream) {           \
    put_one<T>(dest, value, pe, stream);                                                           \
  }                                                                                                \
  T nvshmemx_##N##_g_on_stream(const T* source, int pe, cudaStream_t stream) {                     \
    T value;                                                                                       \
    get_one(&value, source, sizeof value, pe, stream);                                             \
    return value;                                                                                  \
  }
NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#define NVSHMEM_COMPAT_X(N, bytes)                                                                 \
  NVSHMEM_COMPAT_MOVES(put##N, get##N, void, bytes)                                                \
  NVSHMEM_COMPAT_STRIDED(iput##N, iget##N, void, bytes)
NVSHMEM_COMPAT_SIZES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
NVSHMEM_COMPAT_MOVES(putmem, getmem, void, 1)

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  void nvshmemx_##N##_wait_until_on_stream(T* ivar, int cmp, T cmp_value, cudaStream_t stream) {   \
    wait_all<T>(ivar, 1, nullptr, cmp, cmp_value, nullptr, stream);                                \
  }                                                                                                \
  void nvshmemx_##N##_wait_until_all_on_stream(T* ivars, size_t nelems, const int* status,         \
                                               int cmp, T cmp_value, cudaStream_t stream) {        \
    wait_all<T>(ivars, nelems, status, cmp, cmp_value, nullptr, stream);                           \
  }                                                                                                \
  void nvshmemx_##N##_wait_until_all_vector_on_stream(                                             \
      T* ivars, size_t nelems, const int* status, int cmp, T* cmp_values, cudaStream_t stream) {   \
    wait_all<T>(ivars, nelems, status, cmp, static_cast<T>(0), cmp_values, stream);                \
  }
NVSHMEM_COMPAT_WAIT_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

void nvshmemx_signal_op_on_stream(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                                  cudaStream_t stream) {
  nvshmem::guarded([&](World& world) {
    nvshmem::require_symmetric(world, sig_addr);
    on_stream::signal(nvshmem::stream_job(world), sig_addr, signal, nvshmem::signal_op(sig_op),
                      nvshmem::existing_pe(world, pe), stream);
  });
}

void nvshmemx_signal_wait_until_on_stream(uint64_t* sig_addr, int cmp, uint64_t cmp_value,
                                          cudaStream_t stream) {
  wait_for_signal(sig_addr, cmp, cmp_value, stream);
}

void nvshmemx_quiet_on_stream(cudaStream_t stream) {
  nvshmem::guarded([&](World& world) { on_stream::quiet(nvshmem::stream_job(world), stream); });
}

int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream) {
  return barrier(team, stream);
}

void nvshmemx_barrier_all_on_stream(cudaStream_t stream) {
  barrier(NVSHMEM_TEAM_WORLD, stream);
}

int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream) {
  return sync(team, stream);
}

void nvshmemx_sync_all_on_stream(cudaStream_t stream) {
  sync(NVSHMEM_TEAM_WORLD, stream);
}

} // extern "C"
