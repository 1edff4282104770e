#include "src/runtime/shmem/active_set.h"

#include <algorithm>
#include <vector>

#include "src/runtime/shmem/api.h"
#include "src/runtime/shmem/element_type.h"

namespace shmemctl::api {

namespace {

/// A reduction processes this many bytes at a time.
constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

std::byte* at(void* base, std::size_t offset_bytes) {
  return static_cast<std::byte*>(base) + offset_bytes;
}

const std::byte* at(const void* base, std::size_t offset_bytes) {
  return static_cast<const std::byte*>(base) + offset_bytes;
}

std::string text(const ActiveSetArguments& arguments) {
  return "active set (" + std::to_string(arguments.start) + ", " +
         std::to_string(arguments.log_stride) + ", " + std::to_string(arguments.n_pes) + ")";
}

} // namespace

ActiveSet::ActiveSet(World& world, const ActiveSetArguments& arguments)
    : world_(world), start_(arguments.start), stride_(0), n_pes_(arguments.n_pes), me_(0),
      work_(arguments.work) {
  const std::int64_t job = world.rma.n_pes();
  // The stride is ignored if the set has only one member.
  const int log_stride = n_pes_ == 1 ? 0 : arguments.log_stride;
  const bool shaped =
      start_ >= 0 && n_pes_ >= 1 && n_pes_ <= job && log_stride >= 0 && log_stride < 31;
  const std::int64_t stride = shaped ? std::int64_t{1} << log_stride : 1;
  if (!shaped || start_ + (n_pes_ - 1) * stride >= job)
    throw wrong_use(text(arguments), "use",
                    "it has members outside of PEs 0 to " + std::to_string(job - 1),
                    "pass PE_start, logPE_stride and PE_size, in this order");
  stride_ = static_cast<int>(stride);
  const int distance = world.rma.pe() - start_;
  me_ = distance / stride_;
  if (distance < 0 || distance % stride_ != 0 || me_ >= n_pes_)
    me_ = -1;
}

std::uint64_t* ActiveSet::word(int index) const {
  static_assert(sizeof(long) == sizeof(std::uint64_t) && SHMEM_SYNC_VALUE == 0);
  return reinterpret_cast<std::uint64_t*>(work_ + index);
}

void ActiveSet::put(void* dest, const void* source, std::size_t size_bytes, int member) {
  world_.rma.put(dest, source, size_bytes, pe(member), 0, false);
}

void ActiveSet::sync() {
  Rma& rma = world_.rma;
  int round = 0;
  for (int distance = 1; distance < n_pes_; distance *= 2, ++round) {
    rma.post_atomic(word(round), {AtomicOp::add, 8, 1, 0}, pe(neighbour(distance)));
    rma.wait_until(word(round), Compare::greater_equal, 1, "barrier of an active set",
                   pe(neighbour(n_pes_ - distance)));
    // A fetching atomic, which is complete before the word is used again.
    rma.atomic(word(round), {AtomicOp::add, 8, ~std::uint64_t{0}, 0}, rma.pe());
  }
}

void ActiveSet::barrier() {
  world_.rma.quiet();
  sync();
}

void ActiveSet::broadcast(void* dest, const void* source, std::size_t size_bytes, int root) {
  if (root < 0 || root >= n_pes_)
    throw wrong_use("root " + std::to_string(root), "broadcast",
                    "the active set has " + std::to_string(n_pes_) + " members",
                    "count the root from 0 within the active set");
  sync();
  if (me_ != root)
    world_.rma.get(dest, source, size_bytes, pe(root));
  sync();
}

void ActiveSet::fcollect(void* dest, const void* source, std::size_t size_bytes) {
  sync();
  for (int distance = 0; distance < n_pes_; ++distance)
    put(at(dest, static_cast<std::size_t>(me_) * size_bytes), source, size_bytes,
        neighbour(distance));
  barrier();
}

void ActiveSet::collect(void* dest, const void* source, std::size_t size_bytes) {
  Rma& rma = world_.rma;
  rma.post_atomic(word(published), {AtomicOp::set, 8, size_bytes, 0}, rma.pe());
  barrier();
  std::size_t offset_bytes = 0;
  for (int member = 0; member < me_; ++member)
    offset_bytes += rma.atomic(word(published), {}, pe(member));
  for (int distance = 0; distance < n_pes_; ++distance)
    put(at(dest, offset_bytes), source, size_bytes, neighbour(distance));
  barrier();
  rma.post_atomic(word(published), {AtomicOp::set, 8, 0, 0}, rma.pe());
  rma.quiet();
}

void ActiveSet::alltoall(void* dest, const void* source, std::size_t block_bytes) {
  sync();
  for (int distance = 0; distance < n_pes_; ++distance) {
    const int member = neighbour(distance);
    put(at(dest, static_cast<std::size_t>(me_) * block_bytes),
        at(source, static_cast<std::size_t>(member) * block_bytes), block_bytes, member);
  }
  barrier();
}

void ActiveSet::alltoalls(void* dest, const void* source, std::ptrdiff_t dest_stride,
                          std::ptrdiff_t source_stride, std::size_t nelems,
                          std::size_t element_bytes) {
  if (dest_stride < 1 || source_stride < 1)
    throw wrong_use("stride below 1", "exchange", "blocks would overlap",
                    "pass strides of 1 or more");
  const auto offset = [&](int block, std::size_t element, std::ptrdiff_t stride) {
    return (static_cast<std::size_t>(block) * nelems + element) * static_cast<std::size_t>(stride) *
           element_bytes;
  };
  sync();
  for (int distance = 0; distance < n_pes_; ++distance) {
    const int member = neighbour(distance);
    for (std::size_t i = 0; i < nelems; ++i)
      put(at(dest, offset(me_, i, dest_stride)), at(source, offset(member, i, source_stride)),
          element_bytes, member);
  }
  barrier();
}

void ActiveSet::reduce(void* dest, const void* source, std::size_t elements,
                       std::size_t element_bytes, ReduceKernel combine) {
  // No other member reads this share of any source, so it may be overwritten at once (dest ==
  // source).
  const auto members = static_cast<std::size_t>(n_pes_);
  const auto me = static_cast<std::size_t>(me_);
  const std::size_t share = elements / members, rest = elements % members;
  const std::size_t first = me * share + std::min(me, rest);
  const std::size_t last = first + share + (me < rest ? 1 : 0);
  const std::size_t at_once = std::max<std::size_t>(chunk_bytes / element_bytes, 1);
  std::vector<std::max_align_t> result(chunk_bytes / sizeof(std::max_align_t) + 1);
  std::vector<std::max_align_t> other(result.size());
  sync();
  for (std::size_t element = first; element < last; element += at_once) {
    const std::size_t count = std::min(at_once, last - element);
    const std::size_t offset_bytes = element * element_bytes, size_bytes = count * element_bytes;
    world_.rma.get(result.data(), at(source, offset_bytes), size_bytes, pe(0));
    for (int member = 1; member < n_pes_; ++member) {
      world_.rma.get(other.data(), at(source, offset_bytes), size_bytes, pe(member));
      combine(result.data(), other.data(), count);
    }
    for (int distance = 0; distance < n_pes_; ++distance)
      world_.rma.put(at(dest, offset_bytes), result.data(), size_bytes, pe(neighbour(distance)));
  }
  barrier();
}

} // namespace shmemctl::api

// The deprecated collectives over active sets.

using namespace shmemctl;
using api::ActiveSet;
using api::ActiveSetArguments;
using api::World;

namespace {

/// A PE that is not in the set does nothing: the specification does not define the behaviour, and
/// in old programs all PEs make the call.
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
