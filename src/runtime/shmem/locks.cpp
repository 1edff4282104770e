// Locks. A lock is a queue of PEs (MCS lock: Mellor-Crummey and Scott, 1991), so that PEs get it in
// order of arrival, and each PE waits on a word of its own memory.
#include <array>
#include <sched.h>

#include "src/runtime/shmem/api.h"

using namespace shmemctl;
using api::World;

namespace {

static_assert(sizeof(long) == 8, "a lock's two halves need 64 bits");

/// `tail`, used only on the lock's home PE: 1 + the last PE of the queue; 0 if the lock is free.
/// `next`, used on each PE of the queue: 1 + the PE after it, and the bit `handed_over`, which its
/// predecessor sets to pass the lock on.
struct LockHalves {
  std::uint32_t tail;
  std::uint32_t next;
};
constexpr std::uint32_t handed_over = std::uint32_t{1} << 31;

class Lock {
public:
  Lock(World& world, long* lock)
      : rma_(world.rma), halves_(reinterpret_cast<LockHalves*>(lock)), me_(tag(world.rma.pe())) {
    const RemoteAddress place = rma_.locate(lock, rma_.pe());
    if (place.region < 0)
      throw api::wrong_use("lock", "", "not in a symmetric object",
                           "use memory from shmem_malloc, or a global or static variable");
    // The home PE depends on the address, so that locks of an array have different homes.
    home_ = static_cast<int>(place.offset_bytes / sizeof(long) %
                             static_cast<std::uint64_t>(rma_.n_pes()));
  }

  bool try_lock() { return swap_tail_if(0, me_) == 0; }

  void lock() {
    const std::uint32_t before = atomic(&halves_->tail, AtomicOp::swap, me_, home_);
    if (before == 0)
      return;
    const int predecessor = static_cast<int>(before) - 1;
    atomic(&halves_->next, AtomicOp::bit_or, me_, predecessor);
    wait_for(handed_over, "shmem_set_lock", predecessor);
    atomic(&halves_->next, AtomicOp::bit_and, ~handed_over, rma_.pe());
  }

  void unlock() {
    rma_.quiet();
    if (next() == 0) {
      if (swap_tail_if(me_, 0) == me_)
        return;
      wait_for(~handed_over, "shmem_clear_lock", -1); // the successor is about to store its number
    }
    const int successor = static_cast<int>(next()) - 1;
    atomic(&halves_->next, AtomicOp::set, 0, rma_.pe());
    rma_.quiet();
    atomic(&halves_->next, AtomicOp::bit_or, handed_over, successor);
  }

private:
  static std::uint32_t tag(int pe) { return static_cast<std::uint32_t>(pe) + 1; }

  std::uint32_t atomic(std::uint32_t* word, AtomicOp op, std::uint32_t operand, int pe) {
    return static_cast<std::uint32_t>(rma_.atomic(word, {op, sizeof *word, operand, 0}, pe));
  }
  std::uint32_t swap_tail_if(std::uint32_t expected, std::uint32_t value) {
    return static_cast<std::uint32_t>(rma_.atomic(
        &halves_->tail, {AtomicOp::compare_swap, sizeof(std::uint32_t), value, expected}, home_));
  }
  std::uint32_t next() const { return __atomic_load_n(&halves_->next, __ATOMIC_ACQUIRE); }
  /// Waits until any of these bits of `next` is set.
  void wait_for(std::uint32_t bits, const char* step, int peer) {
    if ((next() & bits) == 0)
      rma_.wait([&] { return (next() & bits) != 0; }, step, peer);
  }

  Rma& rma_;
  LockHalves* halves_;
  std::uint32_t me_;
  int home_ = 0;
};

} // namespace

SHMEMCTL_API(void, shmem_set_lock, (long* lock)) {
  api::guarded([&](World& world) { Lock(world, lock).lock(); });
}

SHMEMCTL_API(void, shmem_clear_lock, (long* lock)) {
  api::guarded([&](World& world) { Lock(world, lock).unlock(); });
}

SHMEMCTL_API(int, shmem_test_lock, (long* lock)) {
  return api::guarded([&](World& world) {
    if (Lock(world, lock).try_lock())
      return 0;
    world.rma.progress();
    sched_yield(); // the holder may need this core
    return 1;
  });
}
