// Atomics. Nonblocking fetching atomics deliver their value before they return, too.
#include <bit>

#include "src/runtime/shmem/api.h"

using namespace shmemctl;
using api::World;

namespace {

constexpr shmem_ctx_t default_context = SHMEM_CTX_DEFAULT;

/// The bits of a value, as an unsigned integer of its size.
template <class T>
std::uint64_t word_of(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return std::bit_cast<api::WordOf<sizeof(T)>>(value);
}

template <class T>
T value_of(std::uint64_t word) {
  return std::bit_cast<T>(static_cast<api::WordOf<sizeof(T)>>(word));
}

[[gnu::noinline]] std::uint64_t execute(shmem_ctx_t ctx, void* dest, AtomicOp op,
                                        std::uint8_t size_bytes, std::uint64_t operand,
                                        std::uint64_t compare, int pe) {
  return api::guarded([&](World& world) {
    const shmemctl_context& context = api::checked(ctx);
    return world.rma.atomic(dest, {op, size_bytes, operand, compare},
                            api::world_pe(world, context, pe), context.number);
  });
}

[[gnu::noinline]] void execute_unasked(shmem_ctx_t ctx, void* dest, AtomicOp op,
                                       std::uint8_t size_bytes, std::uint64_t operand, int pe) {
  api::guarded([&](World& world) {
    const shmemctl_context& context = api::checked(ctx);
    world.rma.post_atomic(dest, {op, size_bytes, operand}, api::world_pe(world, context, pe),
                          context.number);
  });
}

template <class T>
[[gnu::always_inline]] inline T atomic(shmem_ctx_t ctx, const T* dest, AtomicOp op, T operand,
                                       int pe, T compare = {}) {
  auto* const target = const_cast<T*>(dest);
  const AtomicRequest request{op, sizeof(T), word_of(operand), word_of(compare)};
  if (std::byte* word = api::mapped_atomic(ctx, target, sizeof(T), pe); __builtin_expect(!!word, 1))
    return value_of<T>(execute_atomic(word, request));
  return value_of<T>(execute(ctx, target, op, sizeof(T), request.operand, request.compare, pe));
}

/// An atomic that does not fetch the old value.
template <class T>
[[gnu::always_inline]] inline void post(shmem_ctx_t ctx, T* target, AtomicOp op, T operand,
                                        int pe) {
  const AtomicRequest request{op, sizeof(T), word_of(operand)};
  if (std::byte* word = api::mapped_atomic(ctx, target, sizeof(T), pe); __builtin_expect(!!word, 1))
    execute_atomic(word, request);
  else
    execute_unasked(ctx, target, op, sizeof(T), request.operand, pe);
}

} // namespace

// Defines two routines: one without a context and one with a context.
#define SHMEMCTL_PAIR(result, N, OP, formal, call)                                                 \
  SHMEMCTL_API(result, shmem_##N##_##OP, (SHMEMCTL_UNWRAP formal)) {                               \
    constexpr shmem_ctx_t ctx = default_context;                                                   \
    call                                                                                           \
  }                                                                                                \
  SHMEMCTL_API(result, shmem_ctx_##N##_##OP, (shmem_ctx_t ctx, SHMEMCTL_UNWRAP formal)) {          \
    call                                                                                           \
  }
#define SHMEMCTL_UNWRAP(...) __VA_ARGS__

#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_PAIR(T, N, atomic_compare_swap, (T * dest, T cond, T value, int pe),                    \
                return atomic<T>(ctx, dest, AtomicOp::compare_swap, value, pe, cond);)             \
  SHMEMCTL_PAIR(void, N, atomic_compare_swap_nbi, (T * fetch, T * dest, T cond, T value, int pe),  \
                *fetch = atomic<T>(ctx, dest, AtomicOp::compare_swap, value, pe, cond);)           \
  SHMEMCTL_PAIR(T, N, atomic_fetch_inc, (T * dest, int pe),                                        \
                return atomic<T>(ctx, dest, AtomicOp::add, 1, pe);)                                \
  SHMEMCTL_PAIR(void, N, atomic_fetch_inc_nbi, (T * fetch, T * dest, int pe),                      \
                *fetch = atomic<T>(ctx, dest, AtomicOp::add, 1, pe);)                              \
  SHMEMCTL_PAIR(void, N, atomic_inc, (T * dest, int pe),                                           \
                post<T>(ctx, dest, AtomicOp::add, 1, pe);)                                         \
  SHMEMCTL_PAIR(T, N, atomic_fetch_add, (T * dest, T value, int pe),                               \
                return atomic<T>(ctx, dest, AtomicOp::add, value, pe);)                            \
  SHMEMCTL_PAIR(void, N, atomic_fetch_add_nbi, (T * fetch, T * dest, T value, int pe),             \
                *fetch = atomic<T>(ctx, dest, AtomicOp::add, value, pe);)                          \
  SHMEMCTL_PAIR(void, N, atomic_add, (T * dest, T value, int pe),                                  \
                post<T>(ctx, dest, AtomicOp::add, value, pe);)
SHMEMCTL_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_PAIR(T, N, atomic_fetch, (const T* source, int pe),                                     \
                return atomic<T>(ctx, source, AtomicOp::fetch, {}, pe);)                           \
  SHMEMCTL_PAIR(void, N, atomic_fetch_nbi, (T * fetch, const T* source, int pe),                   \
                *fetch = atomic<T>(ctx, source, AtomicOp::fetch, {}, pe);)                         \
  SHMEMCTL_PAIR(void, N, atomic_set, (T * dest, T value, int pe),                                  \
                post<T>(ctx, dest, AtomicOp::set, value, pe);)                                     \
  SHMEMCTL_PAIR(T, N, atomic_swap, (T * dest, T value, int pe),                                    \
                return atomic<T>(ctx, dest, AtomicOp::swap, value, pe);)                           \
  SHMEMCTL_PAIR(void, N, atomic_swap_nbi, (T * fetch, T * dest, T value, int pe),                  \
                *fetch = atomic<T>(ctx, dest, AtomicOp::swap, value, pe);)
SHMEMCTL_EXTENDED_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

#define SHMEMCTL_BITWISE(T, N, OP, OPERATION)                                                      \
  SHMEMCTL_PAIR(T, N, atomic_fetch_##OP, (T * dest, T value, int pe),                              \
                return atomic<T>(ctx, dest, OPERATION, value, pe);)                                \
  SHMEMCTL_PAIR(void, N, atomic_fetch_##OP##_nbi, (T * fetch, T * dest, T value, int pe),          \
                *fetch = atomic<T>(ctx, dest, OPERATION, value, pe);)                              \
  SHMEMCTL_PAIR(void, N, atomic_##OP, (T * dest, T value, int pe),                                 \
                post<T>(ctx, dest, OPERATION, value, pe);)
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_BITWISE(T, N, and, AtomicOp::bit_and)                                                   \
  SHMEMCTL_BITWISE(T, N, or, AtomicOp::bit_or)                                                     \
  SHMEMCTL_BITWISE(T, N, xor, AtomicOp::bit_xor)
SHMEMCTL_BITWISE_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

// Names of atomics before OpenSHMEM 1.4.
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_API(T, shmem_##N##_cswap, (T * dest, T cond, T value, int pe)) {                        \
    return atomic<T>(default_context, dest, AtomicOp::compare_swap, value, pe, cond);              \
  }                                                                                                \
  SHMEMCTL_API(T, shmem_##N##_finc, (T * dest, int pe)) {                                          \
    return atomic<T>(default_context, dest, AtomicOp::add, 1, pe);                                 \
  }                                                                                                \
  SHMEMCTL_API(void, shmem_##N##_inc, (T * dest, int pe)) {                                        \
    post<T>(default_context, dest, AtomicOp::add, 1, pe);                                          \
  }                                                                                                \
  SHMEMCTL_API(T, shmem_##N##_fadd, (T * dest, T value, int pe)) {                                 \
    return atomic<T>(default_context, dest, AtomicOp::add, value, pe);                             \
  }                                                                                                \
  SHMEMCTL_API(void, shmem_##N##_add, (T * dest, T value, int pe)) {                               \
    post<T>(default_context, dest, AtomicOp::add, value, pe);                                      \
  }
SHMEMCTL_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_API(T, shmem_##N##_fetch, (const T* source, int pe)) {                                  \
    return atomic<T>(default_context, source, AtomicOp::fetch, {}, pe);                            \
  }                                                                                                \
  SHMEMCTL_API(void, shmem_##N##_set, (T * dest, T value, int pe)) {                               \
    post<T>(default_context, dest, AtomicOp::set, value, pe);                                      \
  }                                                                                                \
  SHMEMCTL_API(T, shmem_##N##_swap, (T * dest, T value, int pe)) {                                 \
    return atomic<T>(default_context, dest, AtomicOp::swap, value, pe);                            \
  }
SHMEMCTL_EXTENDED_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
