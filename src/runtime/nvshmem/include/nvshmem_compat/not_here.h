/* Names of NVSHMEM that this library does not have. A C++ program that calls one does not compile,
 * and the compiler prints a line that names the function. The tiers are those of
 * docs/explanation/nvshmem_programs.md. */
#ifndef NVSHMEM_COMPAT_NOT_HERE_H
#define NVSHMEM_COMPAT_NOT_HERE_H

#ifdef __cplusplus

#include "host.h"

/* The condition depends on the call, so that the template itself is well formed. */
#define NVSHMEM_COMPAT_NOT_HERE(NAME, WHY)                                                         \
  template <class... Arguments>                                                                    \
  NVSHMEM_COMPAT_HD inline int NAME(Arguments&&...) {                                              \
    static_assert(sizeof...(Arguments) > 1000, #NAME " is not in this library: " WHY);             \
    return 0;                                                                                      \
  }
#define NVSHMEM_COMPAT_TYPE_NOT_HERE(NAME, WHY)                                                    \
  template <class... Arguments>                                                                    \
  struct NAME {                                                                                    \
    static_assert(sizeof...(Arguments) > 1000, #NAME " is not in this library: " WHY);             \
  };
#define NVSHMEM_COMPAT_NOT_HERE_SCOPES(NAME, WHY)                                                  \
  NVSHMEM_COMPAT_NOT_HERE(NAME, WHY)                                                               \
  NVSHMEM_COMPAT_NOT_HERE(NAME##_warp, WHY)                                                        \
  NVSHMEM_COMPAT_NOT_HERE(NAME##_block, WHY)

/* Tier B, the internals of NVSHMEM's IBGDA: device_host_transport/nvshmem_common_ibgda.h refuses
 * programs that include it. */

/* Tier C: newer than the interface that version.h names, and tiles. */
#define NVSHMEM_COMPAT_WHY "tier C, calls for one queue pair (NVSHMEM 3.5)"
NVSHMEM_COMPAT_NOT_HERE(nvshmemx_qp_create, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_qp_quiet, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_qp_fence, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE(nvshmemx_qp_signal_op, NVSHMEM_COMPAT_WHY)
#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_NOT_HERE(nvshmemx_qp_##N##_p, NVSHMEM_COMPAT_WHY)                                 \
  NVSHMEM_COMPAT_NOT_HERE(nvshmemx_qp_##N##_g, NVSHMEM_COMPAT_WHY)                                 \
  NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_qp_##N##_put, NVSHMEM_COMPAT_WHY)                        \
  NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_qp_##N##_get, NVSHMEM_COMPAT_WHY)                        \
  NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_qp_##N##_put_nbi, NVSHMEM_COMPAT_WHY)                    \
  NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_qp_##N##_get_nbi, NVSHMEM_COMPAT_WHY)                    \
  NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_qp_##N##_put_signal, NVSHMEM_COMPAT_WHY)                 \
  NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_qp_##N##_put_signal_nbi, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#undef NVSHMEM_COMPAT_WHY

#define NVSHMEM_COMPAT_WHY                                                                         \
  "tier C, flush (NVSHMEM 3.7); nvshmem_quiet does what it does, and waits for more"
NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_flush, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE(nvshmemx_flush_on_stream, NVSHMEM_COMPAT_WHY)
#undef NVSHMEM_COMPAT_WHY

#define NVSHMEM_COMPAT_WHY "tier C, shared memory for TMA (NVSHMEM 3.7)"
NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_ask_smem, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_give_smem, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_release_smem, NVSHMEM_COMPAT_WHY)
#undef NVSHMEM_COMPAT_WHY

#define NVSHMEM_COMPAT_WHY "tier C, regions (NVSHMEM 3.8)"
NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_region_start, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(nvshmemx_region_stop, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE(nvshmemx_region_is_active, NVSHMEM_COMPAT_WHY)
#undef NVSHMEM_COMPAT_WHY

namespace nvshmemx {
#define NVSHMEM_COMPAT_WHY "tier C, tiles (NVSHMEM 3.4)"
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_put, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_get, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_broadcast, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_allgather, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_sum_reduce, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_min_reduce, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_max_reduce, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_sum_rooted_reduce, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_min_rooted_reduce, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_max_rooted_reduce, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE_SCOPES(tile_collective_wait, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE(make_shape, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE(make_stride, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_NOT_HERE(make_layout, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_TYPE_NOT_HERE(shape, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_TYPE_NOT_HERE(stride, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_TYPE_NOT_HERE(Layout, NVSHMEM_COMPAT_WHY)
NVSHMEM_COMPAT_TYPE_NOT_HERE(Tensor, NVSHMEM_COMPAT_WHY)
#undef NVSHMEM_COMPAT_WHY
} // namespace nvshmemx

#undef NVSHMEM_COMPAT_NOT_HERE
#undef NVSHMEM_COMPAT_TYPE_NOT_HERE
#undef NVSHMEM_COMPAT_NOT_HERE_SCOPES

#endif
#endif
