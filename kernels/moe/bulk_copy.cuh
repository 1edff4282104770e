// The bulk copy engine of an SM (TMA: cp.async.bulk, from sm_90 on) and the barriers in shared
// memory by which its loads are waited for.
//
// Bulk copies use the async proxy: they and a thread's own loads and stores observe each other only
// across a proxy fence (fence_shared_for_bulk(), fence_global_for_bulk()), or across the completion
// of a bulk copy, which includes one.
#pragma once

#include <cstddef>
#include <cstdint>

/// Older architectures have no bulk copies; launchers refuse them.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define SHMEMCTL_BULK_ASM(...) asm volatile(__VA_ARGS__)
#else
#define SHMEMCTL_BULK_ASM(...) __trap()
#endif

namespace shmemctl::device {

__device__ inline std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

/// A barrier in shared memory: a phase completes when its bytes have arrived.
class ArrivalBarrier {
public:
  /// Called by one thread before others use it, followed by fence_init() and a barrier.
  __device__ void init() {
    SHMEMCTL_BULK_ASM("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&word_))
                      : "memory");
  }
  /// Makes init() visible to the copy engine.
  static __device__ void fence_init() {
    SHMEMCTL_BULK_ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  /// Called by one thread before the loads of this phase begin.
  __device__ void expect(std::uint32_t size_bytes) {
    SHMEMCTL_BULK_ASM(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&word_)),
        "r"(size_bytes)
        : "memory");
  }
  /// Waits for the phase of that parity (0, 1, 0, ...). No deadline: a copy completes, or the
  /// kernel fails.
  __device__ void wait(std::uint32_t parity) const {
    std::uint32_t over = 0;
    do // NOLINT(bugprone-infinite-loop): the instruction sets `over`
      SHMEMCTL_BULK_ASM("{\n\t.reg .pred over;\n\t"
                        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n\t"
                        "selp.u32 %0, 1, 0, over;\n\t}"
                        : "=r"(over)
                        : "r"(shared_address(&word_)), "r"(parity)
                        : "memory");
    while (over == 0);
  }
  __device__ std::uint32_t address() const { return shared_address(&word_); }

private:
  std::uint64_t word_;
};

// Addresses and sizes of bulk copies are multiples of 16 bytes; sizes are not 0.

/// Loads into this block's shared memory; the barrier's phase counts the bytes that arrive.
__device__ inline void bulk_load(void* shared, const void* global, std::uint32_t size_bytes,
                                 const ArrivalBarrier& barrier) {
  SHMEMCTL_BULK_ASM(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(size_bytes), "r"(barrier.address())
      : "memory");
}
/// Stores from shared memory to memory of this GPU or a peer, as part of the thread's current
/// group.
__device__ inline void bulk_store(void* global, const void* shared, std::uint32_t size_bytes) {
  SHMEMCTL_BULK_ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
                    "r"(shared_address(shared)), "r"(size_bytes)
                    : "memory");
}
/// Ends the thread's current group of stores (which may be empty).
__device__ inline void bulk_commit() {
  SHMEMCTL_BULK_ASM("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until the sources of all groups of this thread except the last `kept` have been read:
/// their shared memory may be overwritten.
template <int kept>
__device__ inline void bulk_wait_read() {
  SHMEMCTL_BULK_ASM("cp.async.bulk.wait_group.read %0;" ::"n"(kept) : "memory");
}
/// Waits until all stores of this thread's groups are performed, so that its next release orders
/// them.
__device__ inline void bulk_wait_all() {
  SHMEMCTL_BULK_ASM("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// Orders a thread's accesses to shared memory before later bulk copies of the same bytes: its
/// writes before a bulk store that reads them, its reads before a bulk load that overwrites them.
__device__ inline void fence_shared_for_bulk() {
  SHMEMCTL_BULK_ASM("fence.proxy.async.shared::cta;" ::: "memory");
}
/// The same for global memory: orders what this thread has acquired before bulk loads of it.
__device__ inline void fence_global_for_bulk() {
  SHMEMCTL_BULK_ASM("fence.proxy.async.global;" ::: "memory");
}

} // namespace shmemctl::device

#undef SHMEMCTL_BULK_ASM
