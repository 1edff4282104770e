// Put and get: blocking, nonblocking, strided, and with a signal.
#include <bit>

#include "src/runtime/shmem/api.h"

using namespace shmemctl;
using api::World;

namespace {

constexpr shmem_ctx_t default_context = SHMEM_CTX_DEFAULT;

void put(shmem_ctx_t ctx, void* dest, const void* source, std::size_t size_bytes, int pe,
         bool blocking) {
  api::guarded([&](World& world) {
    const shmemctl_context& context = api::checked(ctx);
    world.rma.put(dest, source, size_bytes, api::world_pe(world, context, pe), context.number,
                  blocking);
  });
}

void get(shmem_ctx_t ctx, void* dest, const void* source, std::size_t size_bytes, int pe,
         bool blocking) {
  api::guarded([&](World& world) {
    const shmemctl_context& context = api::checked(ctx);
    world.rma.get(dest, source, size_bytes, api::world_pe(world, context, pe), context.number,
                  blocking);
  });
}

template <class T>
constexpr bool is_word = sizeof(T) <= 8 && std::has_single_bit(sizeof(T));

[[gnu::noinline]] void put_word(shmem_ctx_t ctx, void* dest, std::uint64_t value,
                                std::size_t size_bytes, int pe) {
  put(ctx, dest, &value, size_bytes, pe, true); // little-endian: the value's bytes come first
}

[[gnu::noinline]] std::uint64_t get_word(shmem_ctx_t ctx, const void* source,
                                         std::size_t size_bytes, int pe) {
  std::uint64_t value = 0;
  get(ctx, &value, source, size_bytes, pe, true);
  return value;
}

template <class T>
[[gnu::always_inline]] inline void put_one(shmem_ctx_t ctx, T* dest, T value, int pe) {
  if constexpr (is_word<T>) {
    using Word = api::WordOf<sizeof(T)>;
    const auto bits = std::bit_cast<Word>(value);
    if (std::byte* word = api::mapped_word(ctx, dest, sizeof(T), pe); __builtin_expect(!!word, 1))
      return std::atomic_ref(*reinterpret_cast<Word*>(word)).store(bits, std::memory_order_release);
    put_word(ctx, dest, bits, sizeof(T), pe);
  } else {
    put(ctx, dest, &value, sizeof(T), pe, true);
  }
}

template <class T>
[[gnu::always_inline]] inline T get_one(shmem_ctx_t ctx, const T* source, int pe) {
  if constexpr (is_word<T>) {
    using Word = api::WordOf<sizeof(T)>;
    if (std::byte* word = api::mapped_word(ctx, source, sizeof(T), pe); __builtin_expect(!!word, 1))
      return std::bit_cast<T>(
          std::atomic_ref(*reinterpret_cast<Word*>(word)).load(std::memory_order_acquire));
    return std::bit_cast<T>(static_cast<Word>(get_word(ctx, source, sizeof(T), pe)));
  } else {
    T value{};
    get(ctx, &value, source, sizeof(T), pe, true);
    return value;
  }
}

/// Strides and `nelems` count elements of `element_bytes`.
struct Strides {
  std::ptrdiff_t dest, source;
  std::size_t nelems, element_bytes;
  bool contiguous() const { return dest == 1 && source == 1; }
  std::ptrdiff_t bytes(std::ptrdiff_t elements) const {
    return elements * static_cast<std::ptrdiff_t>(element_bytes);
  }
};

/// Calls move(offset in dest, offset in source) for each element, in bytes.
template <class Move>
void for_each_element(const Strides& strides, Move&& move) {
  for (std::size_t i = 0; i < strides.nelems; ++i) {
    const auto index = static_cast<std::ptrdiff_t>(i);
    move(strides.bytes(index * strides.dest), strides.bytes(index * strides.source));
  }
}

void put_strided(shmem_ctx_t ctx, void* dest, const void* source, const Strides& strides, int pe) {
  if (strides.contiguous())
    return put(ctx, dest, source, strides.nelems * strides.element_bytes, pe, true);
  api::guarded([&](World& world) {
    const shmemctl_context& context = api::checked(ctx);
    const int target = api::world_pe(world, context, pe);
    for_each_element(strides, [&](std::ptrdiff_t to, std::ptrdiff_t from) {
      world.rma.put(static_cast<std::byte*>(dest) + to,
                    static_cast<const std::byte*>(source) + from, strides.element_bytes, target,
                    context.number, true);
    });
  });
}

void get_strided(shmem_ctx_t ctx, void* dest, const void* source, const Strides& strides, int pe) {
  if (strides.contiguous())
    return get(ctx, dest, source, strides.nelems * strides.element_bytes, pe, true);
  api::guarded([&](World& world) {
    const shmemctl_context& context = api::checked(ctx);
    const int origin = api::world_pe(world, context, pe);
    for_each_element(strides, [&](std::ptrdiff_t to, std::ptrdiff_t from) {
      world.rma.get(static_cast<std::byte*>(dest) + to,
                    static_cast<const std::byte*>(source) + from, strides.element_bytes, origin,
                    context.number, true);
    });
  });
}

struct Signal {
  std::uint64_t* address;
  std::uint64_t value;
  int op;
};

void put_signal(shmem_ctx_t ctx, void* dest, const void* source, std::size_t size_bytes,
                const Signal& signal, int pe, bool blocking) {
  api::guarded([&](World& world) {
    const shmemctl_context& context = api::checked(ctx);
    world.rma.put_signal(dest, source, size_bytes, signal.address, signal.value,
                         api::signal_op(signal.op), api::world_pe(world, context, pe),
                         context.number, blocking);
  });
}

} // namespace

// Defines two routines: one without a context and one with a context.
#define SHMEMCTL_PAIR(result, plain, with_context, formal, call)                                   \
  SHMEMCTL_API(result, plain, (SHMEMCTL_UNWRAP formal)) {                                          \
    constexpr shmem_ctx_t ctx = default_context;                                                   \
    call                                                                                           \
  }                                                                                                \
  SHMEMCTL_API(result, with_context, (shmem_ctx_t ctx, SHMEMCTL_UNWRAP formal)) {                  \
    call                                                                                           \
  }
#define SHMEMCTL_UNWRAP(...) __VA_ARGS__

#define SHMEMCTL_TYPED(T, N)                                                                       \
  SHMEMCTL_PAIR(void, shmem_##N##_put, shmem_ctx_##N##_put,                                        \
                (T * dest, const T* source, size_t nelems, int pe),                                \
                put(ctx, dest, source, nelems * sizeof(T), pe, true);)                             \
  SHMEMCTL_PAIR(void, shmem_##N##_get, shmem_ctx_##N##_get,                                        \
                (T * dest, const T* source, size_t nelems, int pe),                                \
                get(ctx, dest, source, nelems * sizeof(T), pe, true);)                             \
  SHMEMCTL_PAIR(void, shmem_##N##_put_nbi, shmem_ctx_##N##_put_nbi,                                \
                (T * dest, const T* source, size_t nelems, int pe),                                \
                put(ctx, dest, source, nelems * sizeof(T), pe, false);)                            \
  SHMEMCTL_PAIR(void, shmem_##N##_get_nbi, shmem_ctx_##N##_get_nbi,                                \
                (T * dest, const T* source, size_t nelems, int pe),                                \
                get(ctx, dest, source, nelems * sizeof(T), pe, false);)                            \
  SHMEMCTL_PAIR(void, shmem_##N##_iput, shmem_ctx_##N##_iput,                                      \
                (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),  \
                put_strided(ctx, dest, source, {dst, sst, nelems, sizeof(T)}, pe);)                \
  SHMEMCTL_PAIR(void, shmem_##N##_iget, shmem_ctx_##N##_iget,                                      \
                (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),  \
                get_strided(ctx, dest, source, {dst, sst, nelems, sizeof(T)}, pe);)                \
  SHMEMCTL_PAIR(void, shmem_##N##_p, shmem_ctx_##N##_p, (T * dest, T value, int pe),               \
                put_one(ctx, dest, value, pe);)                                                    \
  SHMEMCTL_PAIR(T, shmem_##N##_g, shmem_ctx_##N##_g, (const T* source, int pe),                    \
                return get_one(ctx, source, pe);)                                                  \
  SHMEMCTL_PAIR(                                                                                   \
      void, shmem_##N##_put_signal, shmem_ctx_##N##_put_signal,                                    \
      (T * dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op,  \
       int pe),                                                                                    \
      put_signal(ctx, dest, source, nelems * sizeof(T), {sig_addr, signal, sig_op}, pe, true);)    \
  SHMEMCTL_PAIR(                                                                                   \
      void, shmem_##N##_put_signal_nbi, shmem_ctx_##N##_put_signal_nbi,                            \
      (T * dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op,  \
       int pe),                                                                                    \
      put_signal(ctx, dest, source, nelems * sizeof(T), {sig_addr, signal, sig_op}, pe, false);)
SHMEMCTL_RMA_TYPES(SHMEMCTL_TYPED)

#define SHMEMCTL_BLOCK(N, bytes)                                                                   \
  SHMEMCTL_PAIR(void, shmem_put##N, shmem_ctx_put##N,                                              \
                (void* dest, const void* source, size_t nelems, int pe),                           \
                put(ctx, dest, source, nelems*(bytes), pe, true);)                                 \
  SHMEMCTL_PAIR(void, shmem_get##N, shmem_ctx_get##N,                                              \
                (void* dest, const void* source, size_t nelems, int pe),                           \
                get(ctx, dest, source, nelems*(bytes), pe, true);)                                 \
  SHMEMCTL_PAIR(void, shmem_put##N##_nbi, shmem_ctx_put##N##_nbi,                                  \
                (void* dest, const void* source, size_t nelems, int pe),                           \
                put(ctx, dest, source, nelems*(bytes), pe, false);)                                \
  SHMEMCTL_PAIR(void, shmem_get##N##_nbi, shmem_ctx_get##N##_nbi,                                  \
                (void* dest, const void* source, size_t nelems, int pe),                           \
                get(ctx, dest, source, nelems*(bytes), pe, false);)                                \
  SHMEMCTL_PAIR(                                                                                   \
      void, shmem_put##N##_signal, shmem_ctx_put##N##_signal,                                      \
      (void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal,         \
       int sig_op, int pe),                                                                        \
      put_signal(ctx, dest, source, nelems*(bytes), {sig_addr, signal, sig_op}, pe, true);)        \
  SHMEMCTL_PAIR(                                                                                   \
      void, shmem_put##N##_signal_nbi, shmem_ctx_put##N##_signal_nbi,                              \
      (void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal,         \
       int sig_op, int pe),                                                                        \
      put_signal(ctx, dest, source, nelems*(bytes), {sig_addr, signal, sig_op}, pe, false);)
SHMEMCTL_SIZES(SHMEMCTL_BLOCK)
SHMEMCTL_BLOCK(mem, 1)

#define SHMEMCTL_STRIDED(N, bytes)                                                                 \
  SHMEMCTL_PAIR(                                                                                   \
      void, shmem_iput##N, shmem_ctx_iput##N,                                                      \
      (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),       \
      put_strided(ctx, dest, source, {dst, sst, nelems, bytes}, pe);)                              \
  SHMEMCTL_PAIR(                                                                                   \
      void, shmem_iget##N, shmem_ctx_iget##N,                                                      \
      (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),       \
      get_strided(ctx, dest, source, {dst, sst, nelems, bytes}, pe);)
SHMEMCTL_SIZES(SHMEMCTL_STRIDED)

// Fence, quiet, barrier and sync over all PEs or a team; and the removed cache routines.

using namespace shmemctl;
using api::World;

SHMEMCTL_API(void, shmem_ctx_fence, (shmem_ctx_t ctx)) {
  if (ctx)
    api::guarded([&](World& world) { world.rma.fence(ctx->number); });
}

SHMEMCTL_API(void, shmem_ctx_quiet, (shmem_ctx_t ctx)) {
  if (ctx)
    api::guarded([&](World& world) { world.rma.quiet(ctx->number); });
}

SHMEMCTL_API(void, shmem_fence, (void)) {
  pshmem_ctx_fence(SHMEM_CTX_DEFAULT);
}

SHMEMCTL_API(void, shmem_quiet, (void)) {
  pshmem_ctx_quiet(SHMEM_CTX_DEFAULT);
}

SHMEMCTL_API(void, shmem_barrier_all, (void)) {
  api::guarded([](World& world) { world.collectives.barrier(team_world); });
}

SHMEMCTL_API(void, shmem_sync_all, (void)) {
  api::guarded([](World& world) { world.teams.sync(team_world); });
}

SHMEMCTL_API(int, shmem_team_sync, (shmem_team_t team)) {
  if (!team)
    return -1;
  return api::guarded([&](World& world) {
    if (!world.teams.valid(team->id))
      return -1;
    world.teams.sync(team->id);
    return 0;
  });
}

// No-ops, because caches are coherent.
SHMEMCTL_API(void, shmem_set_cache_inv, (void)) {}
SHMEMCTL_API(void, shmem_set_cache_line_inv, (void*)) {}
SHMEMCTL_API(void, shmem_clear_cache_inv, (void)) {}
SHMEMCTL_API(void, shmem_clear_cache_line_inv, (void*)) {}
SHMEMCTL_API(void, shmem_udcflush, (void)) {}
SHMEMCTL_API(void, shmem_udcflush_line, (void*)) {}
