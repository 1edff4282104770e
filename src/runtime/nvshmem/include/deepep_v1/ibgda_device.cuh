/* For DeepEP V1, in place of its own csrc/kernels/ibgda_device.cuh: what its kernels between nodes
 * call, by NVSHMEM's public functions. The original writes the queues of NVSHMEM's IBGDA by itself,
 * which no other library has. Compiled with -DNVSHMEM_COMPAT_IBGDA_SEAM:
 * docs/explanation/nvshmem_programs.md.
 *
 * A queue pair delivers in order, and DeepEP relies on that: what it sends by an atomic or a single
 * value says that the data before it have arrived. Here a fence gives that order, over all PEs and
 * queues. */
#ifndef NVSHMEM_COMPAT_DEEPEP_V1_IBGDA_DEVICE_CUH
#define NVSHMEM_COMPAT_DEEPEP_V1_IBGDA_DEVICE_CUH

/* DeepEP's, which its kernels expect from this header. */
#include "configs.cuh"
#include "exception.cuh"
#include "utils.cuh"

#include <nvshmem.h>
#include <nvshmemx.h>

/* Kernels ask that there are as many queues for each PE as blocks, or experts of this PE. There are
 * no queues here to be chosen, so a number that is large enough serves all. */
#ifndef NVSHMEM_COMPAT_IBGDA_QUEUES
#define NVSHMEM_COMPAT_IBGDA_QUEUES 256
#endif

namespace deep_ep {

struct SeamState {
  int num_rc_per_pe, num_devices_initialized;
};
static __constant__ const SeamState seam_state = {NVSHMEM_COMPAT_IBGDA_QUEUES, 1};

__device__ static __forceinline__ const SeamState* ibgda_get_state() {
  return &seam_state;
}

/* By a warp. Complete after nvshmemi_ibgda_quiet; kAlwaysDoPostSend and message_idx say when the
 * original rings a doorbell. */
template <bool kAlwaysDoPostSend = false>
__device__ static __forceinline__ void
nvshmemi_ibgda_put_nbi_warp(uint64_t req_rptr, uint64_t req_lptr, size_t bytes, int dst_pe,
                            int /*qp_id*/, int /*lane_id*/, int /*message_idx*/) {
  nvshmemx_putmem_nbi_warp(reinterpret_cast<void*>(req_rptr),
                           reinterpret_cast<const void*>(req_lptr), bytes, dst_pe);
}

/* By a thread: adds to 32 bits of that PE, or to 64 of this one. */
__device__ static __forceinline__ void nvshmemi_ibgda_amo_nonfetch_add(void* rptr, int value,
                                                                       int pe, int /*qp_id*/,
                                                                       bool is_local_copy = false) {
  if (is_local_copy) {
    atomicAdd(static_cast<unsigned long long*>(rptr),
              static_cast<unsigned long long>(static_cast<long long>(value)));
  } else {
    nvshmem_fence();
    nvshmem_int_atomic_add(static_cast<int*>(rptr), value, pe);
  }
}

__device__ static __forceinline__ void nvshmemi_ibgda_rma_p(int* rptr, int value, int dst_pe,
                                                            int /*qp_id*/,
                                                            uint32_t /*imm*/ = 0xffffffffU) {
  nvshmem_fence();
  nvshmem_int_p(rptr, value, dst_pe);
}

/* All queues, not that one alone. */
__device__ static __forceinline__ void nvshmemi_ibgda_quiet(int /*dst_pe*/, int /*qp_id*/) {
  nvshmem_quiet();
}

/* Where that PE's copy is mapped; 0 where it is not. */
__device__ static __forceinline__ uint64_t nvshmemi_get_p2p_ptr(uint64_t ptr, int rank,
                                                                int dst_rank) {
  return rank == dst_rank
             ? ptr
             : reinterpret_cast<uint64_t>(nvshmem_ptr(reinterpret_cast<void*>(ptr), dst_rank));
}

} // namespace deep_ep

#endif
