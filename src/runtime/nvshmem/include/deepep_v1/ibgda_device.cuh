/* For DeepEP V1, instead of its own csrc/kernels/ibgda_device.cuh: implements the functions that
 * its internode kernels call, with NVSHMEM's public functions. The original writes to the queues of
 * NVSHMEM's IBGDA, which no other library has. Compile with -DNVSHMEM_COMPAT_IBGDA_SEAM; see
 * docs/explanation/nvshmem_programs.md.
 *
 * DeepEP relies on the order within a queue pair: when an atomic or a single value arrives, the
 * data that were sent before it have arrived, too. Here a fence guarantees this order, over all PEs
 * and queues. */
#ifndef NVSHMEM_COMPAT_DEEPEP_V1_IBGDA_DEVICE_CUH
#define NVSHMEM_COMPAT_DEEPEP_V1_IBGDA_DEVICE_CUH

/* Headers of DeepEP that its kernels expect this header to include. */
#include "configs.cuh"
#include "exception.cuh"
#include "utils.cuh"

#include <nvshmem.h>
#include <nvshmemx.h>

/* Kernels require at least as many queues for each PE as they have blocks, or as this PE has
 * experts. This implementation has no choice of queues, so any number that is large enough will do.
 */
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

/* Called by a warp. Complete after nvshmemi_ibgda_quiet. In the original, kAlwaysDoPostSend and
 * message_idx decide when a doorbell is rung; here they have no effect. */
template <bool kAlwaysDoPostSend = false>
__device__ static __forceinline__ void
nvshmemi_ibgda_put_nbi_warp(uint64_t req_rptr, uint64_t req_lptr, size_t bytes, int dst_pe,
                            int /*qp_id*/, int /*lane_id*/, int /*message_idx*/) {
  nvshmemx_putmem_nbi_warp(reinterpret_cast<void*>(req_rptr),
                           reinterpret_cast<const void*>(req_lptr), bytes, dst_pe);
}

/* Called by a thread: adds to a 32-bit word of PE `pe`, or, if is_local_copy, to a 64-bit word of
 * this PE. */
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

/* Completes the operations of all queues, not only those of qp_id. */
__device__ static __forceinline__ void nvshmemi_ibgda_quiet(int /*dst_pe*/, int /*qp_id*/) {
  nvshmem_quiet();
}

/* The address at which dst_rank's copy is mapped; 0 if it is not mapped. */
__device__ static __forceinline__ uint64_t nvshmemi_get_p2p_ptr(uint64_t ptr, int rank,
                                                                int dst_rank) {
  return rank == dst_rank
             ? ptr
             : reinterpret_cast<uint64_t>(nvshmem_ptr(reinterpret_cast<void*>(ptr), dst_rank));
}

} // namespace deep_ep

#endif
