/* Expert parallelism: dispatch of tokens to the ranks of their experts and combine of the experts'
 * outputs, by kernels, within an NVLink domain and over a network. For programs that were
 * initialised by shmemx_gpu_init (shmemx.h). See docs/explanation/moe_library.md.
 *
 * Terms. A rank is a PE. All PEs of the job take part; n is their number. Expert e belongs to rank
 * e / (num_experts / n). A token has a row of `hidden` channels, and num_topk experts with their
 * weights; expert -1 means none. A token is sent once to each rank that has one of its experts.
 * There it is a row, with a record of its experts, weights and origin. "Device memory" is any
 * memory that this rank's GPU can load and store, such as that of cudaMalloc. The names of sizes in
 * bytes contain "bytes".
 *
 * Order. Calls on streams enqueue kernels and return. Work that a call depends on must be enqueued
 * in the same stream before it, and work that is enqueued after it sees the call's results.
 * (Between streams: cudaEventRecord, cudaStreamWaitEvent.) All calls of one exchange go into one
 * stream at a time, in the same order on all ranks. They may be captured in CUDA graphs; arguments
 * are read at capture. The kernels of a call wait for the other ranks: launch the call on all of
 * them, and leave SMs for other work (num_sms).
 *
 * Errors. Every function that returns int returns SHMEMCTL_MOE_OK, or one of the codes below; then
 * shmemctl_moe_error() says what failed, and shmemctl_moe_fix() what to do. After INVALID nothing
 * was enqueued, and the job can continue. If a call on a stream returns another code, some of its
 * kernels may have been enqueued, and this rank is out of step with the others. No C++ exception
 * leaves a function. Errors that a kernel detects, such as a rank that does not respond within
 * SHMEMCTL_TIMEOUT seconds in high throughput, are returned by shmemctl_moe_wait,
 * shmemctl_moe_create and every later call with a stream; then the job cannot continue.
 *
 * Threads. An exchange and its plans may be used by one thread at a time. Error texts belong to the
 * calling thread.
 *
 * Structs begin with their size, from which the library knows the version of the header that the
 * program was compiled with. Initialise them with the _INIT macros. Members that the program's
 * header does not have get the values of those macros. */
#ifndef SHMEMCTL_MOE_H
#define SHMEMCTL_MOE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return values of the functions. They are the values of shmemctl's exit codes. */
enum {
  SHMEMCTL_MOE_OK = 0,
  SHMEMCTL_MOE_INVALID = 2,     /* a wrong argument, a call out of order, or a job without GPUs */
  SHMEMCTL_MOE_UNAVAILABLE = 3, /* no path to a rank, no memory, or a kernel or its launch failed */
  SHMEMCTL_MOE_TIMEOUT = 124    /* a rank did not respond in time */
};
/* About the last function of this file that failed in this thread: one line that says what failed
 * and why, and one line that says what to do. "" if none has failed. Valid until the next failure.
 */
const char* shmemctl_moe_error(void);
const char* shmemctl_moe_fix(void);

/* A cudaStream_t. */
typedef struct CUstream_st* shmemctl_moe_stream_t;
/* An exchange: a configuration, and the memory through which ranks exchange rows. */
typedef struct shmemctl_moe_exchange* shmemctl_moe_t;
/* A plan: the destinations of the rows of one set of tokens, which dispatch and combine share. */
typedef struct shmemctl_moe_plan* shmemctl_moe_plan_t;

/* shmemctl_moe_config_t::mode */
enum {
  /* Many tokens (training, prefill): counts are exchanged first, received rows are contiguous by
   * source rank, and combine returns one row for each token and rank. */
  SHMEMCTL_MOE_HIGH_THROUGHPUT = 0,
  /* Few tokens (decoding): fixed slots, no counts are exchanged first, and calls have a send and a
   * receive half. */
  SHMEMCTL_MOE_LOW_LATENCY = 1
};
/* ::format of the rows of a dispatch; rows of a combine are always BF16. */
enum {
  SHMEMCTL_MOE_BF16 = 0,
  SHMEMCTL_MOE_FP8 = 1 /* e4m3, with one scale for every 128 channels */
};
/* ::scales of FP8 */
enum {
  SHMEMCTL_MOE_SCALES_FLOAT = 0,
  /* Powers of two. Records of low latency contain them as UE8M0 bytes, four in a word. */
  SHMEMCTL_MOE_SCALES_POWER = 1
};
/* ::combine of low latency. (High throughput adds the outputs of the ranks, to which the experts'
 * ranks have applied the weights.) */
enum {
  SHMEMCTL_MOE_WEIGHTED = 0, /* an output for each expert; the token's rank applies the weights */
  SHMEMCTL_MOE_PARTIAL = 1   /* an output for each row: the weighted sum over the rank's experts */
};
/* ::layout of received rows, low latency */
enum {
  SHMEMCTL_MOE_BY_SOURCE = 0,
  SHMEMCTL_MOE_BY_EXPERT = 1 /* a copy for each expert, contiguous; needs SHMEMCTL_MOE_WEIGHTED */
};

/* The configuration of an exchange; the same on all ranks. */
typedef struct {
  size_t struct_bytes;
  int32_t mode;
  int32_t num_experts;      /* of all ranks together; a multiple of n */
  int32_t num_topk;         /* 1 to 32 */
  int32_t hidden;           /* channels; a multiple of 8, or of 128 with FP8 */
  int32_t max_tokens;       /* most tokens of a rank in one dispatch */
  int32_t expert_alignment; /* an expert's rows are counted and packed in multiples of this */
  int32_t format;
  int32_t scales;
  int32_t combine;
  int32_t layout;
  int32_t returns_weights; /* high throughput; nonzero: combine also adds the top-k weights */
  /* Number of consecutive ranks that form a node; 0: all ranks form one node. If a network connects
   * the nodes, high throughput uses it to send each row only once to each node. */
  int32_t node_ranks;
  int32_t num_sms; /* most multiprocessors that a kernel uses; 0: chosen for each kernel */
  int32_t reserved;
  /* Low latency: a rank that does not respond within this time is masked, and the others continue.
   * 0: this time is SHMEMCTL_TIMEOUT. Masking is no error of a call: see shmemctl_moe_masked(). */
  double rank_timeout_us;
} shmemctl_moe_config_t;
#define SHMEMCTL_MOE_CONFIG_INIT                                                                   \
  { sizeof(shmemctl_moe_config_t), 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0.0 }

/* Bytes of symmetric memory (shmemx_gpu_malloc) that an exchange with this configuration needs on
 * each rank, and of device memory that each of its plans needs. They depend on the paths by which
 * kernels reach the ranks of this job. The largest parts, for n ranks, T = max_tokens,
 * k = num_topk, H = hidden, E = num_experts / n, v bytes of a value, records of
 * R = 4 (scales + 2k + 2) bytes, rounded up to 16, P = n T min(k, E) + E (expert_alignment - 1),
 * and o outputs for each row (SHMEMCTL_MOE_WEIGHTED: k, SHMEMCTL_MOE_PARTIAL: 1):
 *
 *   high throughput           n T (v H + R) + n T 2H
 *     with returns_weights    + n T 4k
 *     over a network          + about 2 (m - 1) T (v H + 4 (scales + 2k + 1 + node_ranks) + 2H + 8)
 *                             for m nodes
 *   low latency, by source    2 n T (v H + R) + n T o 2H
 *   low latency, by expert    2 n T (v H + R) + P (v H + R + 2H) + 4 T k
 *     over a network          + 2 T v H + 2 n T R + n T o 2H, with FP8 + T (H + H / 32)
 *   a plan                    4 T n + 4 n n
 *     high throughput over a network         + 8 T m + 4 n n + 4 n m
 *     low latency, by expert over a network  + 4 n T k
 *
 * Errors: INVALID (with the nearest legal value), UNAVAILABLE if kernels do not reach a rank. */
int shmemctl_moe_workspace_bytes(const shmemctl_moe_config_t* config, size_t* size_bytes);
int shmemctl_moe_plan_bytes(const shmemctl_moe_config_t* config, size_t* size_bytes);

/* Collective over all PEs; waits for them. Clears `workspace` and compares the configuration with
 * that of the other ranks. The caller keeps the ownership of the workspace, but nothing else may
 * use it until all ranks have destroyed the exchange. No kernel of an earlier exchange may still
 * use it.
 *
 * @param workspace shmemctl_moe_workspace_bytes() bytes of shmemx_gpu_malloc, aligned to 256, the
 *                  same object on all ranks
 * Errors: as above; INVALID on all ranks if the configuration or workspace of a rank differs. */
int shmemctl_moe_create(const shmemctl_moe_config_t* config, void* workspace, shmemctl_moe_t* moe);
/* Not collective. Destroy the plans of the exchange first. Its calls must have completed on all
 * ranks before the workspace is used again or freed. NULL is allowed. */
int shmemctl_moe_destroy(shmemctl_moe_t moe);

/* Not collective. An exchange may have any number of plans: one for each layer whose combine is
 * still to come, or whose routing is used again.
 *
 * @param memory shmemctl_moe_plan_bytes() bytes of device memory, aligned to 256. The caller owns
 *               it, and keeps it until the plan is destroyed and its calls have completed. */
int shmemctl_moe_plan_create(shmemctl_moe_t moe, void* memory, shmemctl_moe_plan_t* plan);
int shmemctl_moe_plan_destroy(shmemctl_moe_plan_t plan);

/* The tokens of this rank, in device memory. The call's kernels read it; it may be written again
 * when they have completed. */
typedef struct {
  size_t struct_bytes;
  int32_t num_tokens; /* 0 to max_tokens; may differ between ranks */
  int32_t reserved;
  /* [num_tokens][hidden], aligned to 16: BF16, or e4m3 for high throughput with FP8 (low latency
   * casts BF16 itself) */
  const void* values;
  const float* scales; /* high throughput with FP8: [num_tokens][hidden / 128]; else unused */
  /* [num_tokens][num_topk]: 0 to num_experts - 1, or -1 for none; distinct within a token */
  const int32_t* experts;
  const float* weights; /* [num_tokens][num_topk] */
} shmemctl_moe_tokens_t;
#define SHMEMCTL_MOE_TOKENS_INIT                                                                   \
  { sizeof(shmemctl_moe_tokens_t), 0, 0, NULL, NULL, NULL, NULL }

/* The results of a combine, and what is added to them; in device memory. */
typedef struct {
  size_t struct_bytes;
  void* values;     /* [num_tokens][hidden] BF16 */
  const void* bias; /* high throughput: [num_tokens][hidden] BF16, added first; or NULL */
  float* weights;   /* [num_tokens][num_topk], if the configuration returns weights */
} shmemctl_moe_result_t;
#define SHMEMCTL_MOE_RESULT_INIT                                                                   \
  { sizeof(shmemctl_moe_result_t), NULL, NULL, NULL }

/* Casts BF16 tokens to e4m3 values and scales, for high throughput with FP8. Not collective.
 *
 * @param values [num_tokens][hidden] BF16, aligned to 16
 * @param casts  [num_tokens][hidden] e4m3, aligned to 16
 * @param scales [num_tokens][hidden / 128]: value = cast * scale; powers of two if configured */
int shmemctl_moe_cast(shmemctl_moe_t moe, int32_t num_tokens, const void* values, void* casts,
                      float* scales, shmemctl_moe_stream_t stream);

/* High throughput -------------------------------------------------------------------------------
 */

/* Collective. Exchanges how many rows each rank sends to each other rank, and how many tokens each
 * expert gets, and computes the destination of every row. The plan may be used for any number of
 * dispatches and combines of tokens with the same experts (a cached dispatch), until it is made
 * again.
 *
 * @param experts [num_tokens][num_topk], device memory */
int shmemctl_moe_plan_make(shmemctl_moe_plan_t plan, int32_t num_tokens, const int32_t* experts,
                           shmemctl_moe_stream_t stream);
/* Collective. Sends each token's row to the ranks of its experts. The next dispatch of any rank
 * overwrites received rows, but only after this rank has entered that dispatch, too. So enqueue the
 * work that reads them before this rank's next dispatch.
 *
 * INVALID: the plan has not been made, or was made for another number of tokens. */
int shmemctl_moe_dispatch(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                          shmemctl_moe_stream_t stream);
/* Collective. The result of each token is bf16(bias + outputs of its rows), added in FP32 in the
 * order of ranks. (With several nodes, the outputs of each node are added and rounded first, then
 * the sums of the nodes.) If the configuration returns weights, output_weights are added in the
 * same way. Outputs may be written again when the call has completed. */
int shmemctl_moe_combine(shmemctl_moe_plan_t plan, const shmemctl_moe_result_t* result,
                         shmemctl_moe_stream_t stream);

/* Low latency -----------------------------------------------------------------------------------
 */

/* `halves`: a whole call, or one of its two launches. Between a SEND and its RECEIVE no SM is
 * occupied (as with DeepEP's receive hook). Launch both on the same stream. */
enum {
  SHMEMCTL_MOE_BOTH = 0,
  SHMEMCTL_MOE_SEND = 1,
  SHMEMCTL_MOE_RECEIVE = 2 /* of a dispatch: with the arguments of its SEND */
};
/* Collective. Also makes the plan. Each dispatch must be followed by its combine, or be dropped,
 * before the next dispatch of the exchange; the text of INVALID says which call is missing. (The
 * order is checked at capture, so a graph must contain whole pairs.) Received rows stay valid until
 * the second dispatch after this one; by expert, until the next dispatch. */
int shmemctl_moe_low_latency_dispatch(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                                      int halves, shmemctl_moe_stream_t stream);
/* Collective. Adds the outputs of each token in FP32 and rounds the sum once: in the order of its
 * experts if weighted, in the order of ranks if partial. Outputs may be written again when the next
 * dispatch has been received. Pass the same `tokens` as to the dispatch: the experts and weights
 * are read, the values are not. Outputs of masked ranks are left out. SEND only announces that this
 * rank's outputs are ready (over a network it sends them); RECEIVE fetches and adds them. */
int shmemctl_moe_low_latency_combine(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                                     const shmemctl_moe_result_t* result, int halves,
                                     shmemctl_moe_stream_t stream);
/* Drops the dispatch that was received last, so that it needs no combine. Call it on all ranks. */
int shmemctl_moe_low_latency_drop(shmemctl_moe_t moe);
/* The ranks that this one has masked so far, in ascending order; `pes` must have room for n. Does
 * not wait for enqueued calls, so wait for their stream first. */
int shmemctl_moe_masked(shmemctl_moe_t moe, int32_t* pes, int32_t* count);

/* What experts read and write ---------------------------------------------------------------------
 */

/* Addresses in device memory, and the format of the data there. They are the same for every call of
 * the plan, so that they may be passed to kernels by value, also in graphs. The data are valid when
 * the dispatch has completed, in stream order.
 *
 * The rows that were received:
 *   high throughput  rows 0 to r - 1, ordered by source rank, then token, with
 *                    r = counts[0 * n + me] + counts[1 * n + me] + ...
 *   by source        of rank s: rows h + s * max_tokens + i, for i < counts[s] (-1: s is masked),
 *                    with h = half_rows if *dispatches is odd, otherwise 0. Their outputs have the
 *                    index s * max_tokens + i.
 *   by expert        of local expert e: rows expert_offsets[e] + i, for i < expert_counts[e]
 *
 * Row r has its values at rows + r * row_bytes, its record at records + r * record_words, and its
 * output at outputs + r * outputs_per_row * output_row_bytes. If outputs_per_row is num_topk, there
 * is one output for each of the token's experts, in their order; those of experts of other ranks
 * are not read. */
typedef struct {
  size_t struct_bytes;
  int32_t me, n;
  int32_t num_local_experts;
  int32_t max_tokens;
  void* rows;
  size_t row_bytes;
  uint32_t* records;
  int32_t record_words;
  /* Word offsets of the parts of a record: the scales (FP8: scale_words words, each one FP32 scale
   * or four UE8M0 scales, the first in the lowest byte); num_topk local experts, -1 for experts of
   * other ranks; their weights, FP32, 0 for experts of other ranks; the source rank; the index of
   * the token on the source rank. */
  int32_t scales_at, scale_words, experts_at, weights_at, source_at, token_at;
  int32_t num_topk;
  int32_t outputs_per_row;
  void* outputs; /* BF16; written by the experts */
  size_t output_row_bytes;
  float* output_weights;        /* [rows][num_topk], which combine adds and returns; or NULL */
  const int32_t* counts;        /* high throughput: [n][n] by source and destination; else [n] */
  const int32_t* expert_counts; /* [num_local_experts]; high throughput: rows of the expert, rounded
                                   up to expert_alignment; low latency by source: NULL */
  const int32_t* expert_offsets; /* by expert: [num_local_experts + 1]; else NULL */
  const uint64_t* dispatches;    /* low latency: dispatches that this rank has received */
  int64_t half_rows;             /* low latency by source: rows of one half of `rows` */
} shmemctl_moe_received_t;
#define SHMEMCTL_MOE_RECEIVED_INIT                                                                 \
  {                                                                                                \
    sizeof(shmemctl_moe_received_t), 0, 0, 0, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL,   \
        0, NULL, NULL, NULL, NULL, NULL, 0                                                         \
  }
/* Does not wait. The caller sets struct_bytes of `received`. */
int shmemctl_moe_received(shmemctl_moe_plan_t plan, shmemctl_moe_received_t* received);

/* Waits for the stream and copies counts to the host, for programs that size the experts' work
 * there. Not allowed in a capture. rows: number of received rows of this rank; expert_counts: NULL,
 * or [num_local_experts] as in shmemctl_moe_received_t (INVALID for rows by source). To be called
 * after plan_make (high throughput) or after a dispatch (low latency). */
int shmemctl_moe_counts(shmemctl_moe_plan_t plan, shmemctl_moe_stream_t stream, int32_t* rows,
                        int32_t* expert_counts);

/* Waits until all work in the stream has completed, for SHMEMCTL_TIMEOUT at most, and returns
 * errors that kernels have reported. TIMEOUT: the text names the PE that was waited for; all ranks
 * end their calls, and the results of that call are undefined on all of them. The job cannot
 * continue then: soon after, a thread of the library ends it, if the program does not
 * (shmemx_gpu_wait). */
int shmemctl_moe_wait(shmemctl_moe_t moe, shmemctl_moe_stream_t stream);

/* Launches --------------------------------------------------------------------------------------
 */

enum { SHMEMCTL_MOE_OF_DISPATCH = 0, SHMEMCTL_MOE_OF_COMBINE = 1 };
/* Launch settings of one direction, as `shmemctl moe --tune` finds them.
 * docs/explanation/moe_gpu.md describes them. -1: chosen for the shape, or not a setting of these
 * kernels. */
typedef struct {
  size_t struct_bytes;
  int32_t sms, warps, stages, kept, self_sms, chunk_bytes, chunk_rows;
  int32_t reserved;
} shmemctl_moe_settings_t;
#define SHMEMCTL_MOE_SETTINGS_INIT                                                                 \
  { sizeof(shmemctl_moe_settings_t), -1, -1, -1, -1, -1, -1, -1, 0 }
/* Sets the launch settings of all later calls, which must be the same on all ranks. INVALID: the
 * text has the rule and the nearest legal value. */
int shmemctl_moe_set_settings(shmemctl_moe_t moe, int direction,
                              const shmemctl_moe_settings_t* settings);
/* The settings that calls use. The caller sets struct_bytes of `settings`. */
int shmemctl_moe_get_settings(shmemctl_moe_t moe, int direction, shmemctl_moe_settings_t* settings);

#ifdef __cplusplus
}
#endif

#endif
