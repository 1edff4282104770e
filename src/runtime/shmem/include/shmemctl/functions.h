/* Declares every function under the name SHMEMCTL_NAME(shmem_x), which is shmem_x or pshmem_x.
 * There is no include guard, because pshmem.h includes this file a second time. */

#ifdef __cplusplus
extern "C" {
#endif

/* Set-up, exit and queries */
void SHMEMCTL_NAME(shmem_init)(void);
int SHMEMCTL_NAME(shmem_init_thread)(int requested, int* provided);
void SHMEMCTL_NAME(shmem_query_thread)(int* provided);
void SHMEMCTL_NAME(shmem_finalize)(void);
SHMEMCTL_NORETURN void SHMEMCTL_NAME(shmem_global_exit)(int status);
int SHMEMCTL_NAME(shmem_my_pe)(void);
int SHMEMCTL_NAME(shmem_n_pes)(void);
int SHMEMCTL_NAME(shmem_pe_accessible)(int pe);
int SHMEMCTL_NAME(shmem_addr_accessible)(const void* addr, int pe);
void* SHMEMCTL_NAME(shmem_ptr)(const void* dest, int pe);
void SHMEMCTL_NAME(shmem_info_get_version)(int* major, int* minor);
void SHMEMCTL_NAME(shmem_info_get_name)(char* name);
void SHMEMCTL_NAME(shmem_pcontrol)(int level, ...);

/* Memory */
void* SHMEMCTL_NAME(shmem_malloc)(size_t size);
void* SHMEMCTL_NAME(shmem_malloc_with_hints)(size_t size, long hints);
void* SHMEMCTL_NAME(shmem_calloc)(size_t count, size_t size);
void* SHMEMCTL_NAME(shmem_align)(size_t alignment, size_t size);
void* SHMEMCTL_NAME(shmem_realloc)(void* ptr, size_t size);
void SHMEMCTL_NAME(shmem_free)(void* ptr);

/* Teams and contexts */
int SHMEMCTL_NAME(shmem_team_my_pe)(shmem_team_t team);
int SHMEMCTL_NAME(shmem_team_n_pes)(shmem_team_t team);
int SHMEMCTL_NAME(shmem_team_get_config)(shmem_team_t team, long config_mask,
                                         shmem_team_config_t* config);
int SHMEMCTL_NAME(shmem_team_translate_pe)(shmem_team_t src_team, int src_pe,
                                           shmem_team_t dest_team);
int SHMEMCTL_NAME(shmem_team_split_strided)(shmem_team_t parent_team, int start, int stride,
                                            int size, const shmem_team_config_t* config,
                                            long config_mask, shmem_team_t* new_team);
int SHMEMCTL_NAME(shmem_team_split_2d)(shmem_team_t parent_team, int xrange,
                                       const shmem_team_config_t* xaxis_config, long xaxis_mask,
                                       shmem_team_t* xaxis_team,
                                       const shmem_team_config_t* yaxis_config, long yaxis_mask,
                                       shmem_team_t* yaxis_team);
void SHMEMCTL_NAME(shmem_team_destroy)(shmem_team_t team);
int SHMEMCTL_NAME(shmem_ctx_create)(long options, shmem_ctx_t* ctx);
int SHMEMCTL_NAME(shmem_team_create_ctx)(shmem_team_t team, long options, shmem_ctx_t* ctx);
void SHMEMCTL_NAME(shmem_ctx_destroy)(shmem_ctx_t ctx);
int SHMEMCTL_NAME(shmem_ctx_get_team)(shmem_ctx_t ctx, shmem_team_t* team);

/* Ordering, synchronisation, locks */
void SHMEMCTL_NAME(shmem_fence)(void);
void SHMEMCTL_NAME(shmem_ctx_fence)(shmem_ctx_t ctx);
void SHMEMCTL_NAME(shmem_quiet)(void);
void SHMEMCTL_NAME(shmem_ctx_quiet)(shmem_ctx_t ctx);
void SHMEMCTL_NAME(shmem_barrier_all)(void);
void SHMEMCTL_NAME(shmem_sync_all)(void);
int SHMEMCTL_NAME(shmem_team_sync)(shmem_team_t team);
void SHMEMCTL_NAME(shmem_set_lock)(long* lock);
void SHMEMCTL_NAME(shmem_clear_lock)(long* lock);
int SHMEMCTL_NAME(shmem_test_lock)(long* lock);

/* Put and get by type */
#define SHMEMCTL_X(T, N)                                                                           \
  void SHMEMCTL_NAME(shmem_##N##_put)(T * dest, const T* source, size_t nelems, int pe);           \
  void SHMEMCTL_NAME(shmem_ctx_##N##_put)(shmem_ctx_t ctx, T * dest, const T* source,              \
                                          size_t nelems, int pe);                                  \
  void SHMEMCTL_NAME(shmem_##N##_get)(T * dest, const T* source, size_t nelems, int pe);           \
  void SHMEMCTL_NAME(shmem_ctx_##N##_get)(shmem_ctx_t ctx, T * dest, const T* source,              \
                                          size_t nelems, int pe);                                  \
  void SHMEMCTL_NAME(shmem_##N##_put_nbi)(T * dest, const T* source, size_t nelems, int pe);       \
  void SHMEMCTL_NAME(shmem_ctx_##N##_put_nbi)(shmem_ctx_t ctx, T * dest, const T* source,          \
                                              size_t nelems, int pe);                              \
  void SHMEMCTL_NAME(shmem_##N##_get_nbi)(T * dest, const T* source, size_t nelems, int pe);       \
  void SHMEMCTL_NAME(shmem_ctx_##N##_get_nbi)(shmem_ctx_t ctx, T * dest, const T* source,          \
                                              size_t nelems, int pe);                              \
  void SHMEMCTL_NAME(shmem_##N##_iput)(T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,    \
                                       size_t nelems, int pe);                                     \
  void SHMEMCTL_NAME(shmem_ctx_##N##_iput)(shmem_ctx_t ctx, T * dest, const T* source,             \
                                           ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);   \
  void SHMEMCTL_NAME(shmem_##N##_iget)(T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,    \
                                       size_t nelems, int pe);                                     \
  void SHMEMCTL_NAME(shmem_ctx_##N##_iget)(shmem_ctx_t ctx, T * dest, const T* source,             \
                                           ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);   \
  void SHMEMCTL_NAME(shmem_##N##_p)(T * dest, T value, int pe);                                    \
  void SHMEMCTL_NAME(shmem_ctx_##N##_p)(shmem_ctx_t ctx, T * dest, T value, int pe);               \
  T SHMEMCTL_NAME(shmem_##N##_g)(const T* source, int pe);                                         \
  T SHMEMCTL_NAME(shmem_ctx_##N##_g)(shmem_ctx_t ctx, const T* source, int pe);                    \
  void SHMEMCTL_NAME(shmem_##N##_put_signal)(T * dest, const T* source, size_t nelems,             \
                                             uint64_t* sig_addr, uint64_t signal, int sig_op,      \
                                             int pe);                                              \
  void SHMEMCTL_NAME(shmem_ctx_##N##_put_signal)(shmem_ctx_t ctx, T * dest, const T* source,       \
                                                 size_t nelems, uint64_t* sig_addr,                \
                                                 uint64_t signal, int sig_op, int pe);             \
  void SHMEMCTL_NAME(shmem_##N##_put_signal_nbi)(T * dest, const T* source, size_t nelems,         \
                                                 uint64_t* sig_addr, uint64_t signal, int sig_op,  \
                                                 int pe);                                          \
  void SHMEMCTL_NAME(shmem_ctx_##N##_put_signal_nbi)(shmem_ctx_t ctx, T * dest, const T* source,   \
                                                     size_t nelems, uint64_t* sig_addr,            \
                                                     uint64_t signal, int sig_op, int pe);
SHMEMCTL_RMA_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

/* Put and get by size; N is "8" to "128" or, without strides, "mem". */
#define SHMEMCTL_BLOCK(N)                                                                          \
  void SHMEMCTL_NAME(shmem_put##N)(void* dest, const void* source, size_t nelems, int pe);         \
  void SHMEMCTL_NAME(shmem_ctx_put##N)(shmem_ctx_t ctx, void* dest, const void* source,            \
                                       size_t nelems, int pe);                                     \
  void SHMEMCTL_NAME(shmem_get##N)(void* dest, const void* source, size_t nelems, int pe);         \
  void SHMEMCTL_NAME(shmem_ctx_get##N)(shmem_ctx_t ctx, void* dest, const void* source,            \
                                       size_t nelems, int pe);                                     \
  void SHMEMCTL_NAME(shmem_put##N##_nbi)(void* dest, const void* source, size_t nelems, int pe);   \
  void SHMEMCTL_NAME(shmem_ctx_put##N##_nbi)(shmem_ctx_t ctx, void* dest, const void* source,      \
                                             size_t nelems, int pe);                               \
  void SHMEMCTL_NAME(shmem_get##N##_nbi)(void* dest, const void* source, size_t nelems, int pe);   \
  void SHMEMCTL_NAME(shmem_ctx_get##N##_nbi)(shmem_ctx_t ctx, void* dest, const void* source,      \
                                             size_t nelems, int pe);                               \
  void SHMEMCTL_NAME(shmem_put##N##_signal)(void* dest, const void* source, size_t nelems,         \
                                            uint64_t* sig_addr, uint64_t signal, int sig_op,       \
                                            int pe);                                               \
  void SHMEMCTL_NAME(shmem_ctx_put##N##_signal)(shmem_ctx_t ctx, void* dest, const void* source,   \
                                                size_t nelems, uint64_t* sig_addr,                 \
                                                uint64_t signal, int sig_op, int pe);              \
  void SHMEMCTL_NAME(shmem_put##N##_signal_nbi)(void* dest, const void* source, size_t nelems,     \
                                                uint64_t* sig_addr, uint64_t signal, int sig_op,   \
                                                int pe);                                           \
  void SHMEMCTL_NAME(shmem_ctx_put##N##_signal_nbi)(                                               \
      shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr,          \
      uint64_t signal, int sig_op, int pe);
#define SHMEMCTL_X(N, bytes)                                                                       \
  SHMEMCTL_BLOCK(N)                                                                                \
  void SHMEMCTL_NAME(shmem_iput##N)(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,  \
                                    size_t nelems, int pe);                                        \
  void SHMEMCTL_NAME(shmem_ctx_iput##N)(shmem_ctx_t ctx, void* dest, const void* source,           \
                                        ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);      \
  void SHMEMCTL_NAME(shmem_iget##N)(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,  \
                                    size_t nelems, int pe);                                        \
  void SHMEMCTL_NAME(shmem_ctx_iget##N)(shmem_ctx_t ctx, void* dest, const void* source,           \
                                        ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);
SHMEMCTL_SIZES(SHMEMCTL_X)
SHMEMCTL_BLOCK(mem)
#undef SHMEMCTL_X
#undef SHMEMCTL_BLOCK

#include "functions_atomic.h"
#include "functions_collective.h"
#include "functions_wait.h"

#include "functions_deprecated.h"

#ifdef __cplusplus
}
#endif
