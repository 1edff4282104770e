/* Expert parallelism: dispatch of tokens to the ranks of their experts and combine of the experts'
 * outputs, by kernels, within an NVLink domain and over a network. For programs that were
 * initialised by shmemx_gpu_init (shmemx.h); docs/explanation/moe_library.md.
 *
 * Words. A rank is a PE: all PEs of the job take part, n of them. Expert e belongs to rank
 * e / (num_experts / n). A token is a row of `hidden` channels with num_topk experts and their
 * weights; -1 is no expert. A token goes once to each rank that has one of its experts: there it is
 * a row, with a record of its experts, weights and origin. "Device memory" is memory that this
 * rank's GPU loads and stores, such as cudaMalloc's. Sizes in bytes are in names.
 *
 * Order. Calls on streams put kernels into the stream and return; what a call needs must have been
 * put into that stream before, and work put into it later sees what the call has written. (Between
 * streams: cudaEventRecord, cudaStreamWaitEvent.) All calls of one exchange go into one stream at a
 * time, in the same order on all ranks. They may be captured in CUDA graphs; arguments are taken
 * when they are captured. Kernels of a call wait for the other ranks: launch it on all of them, and
 * leave SMs for other work (num_sms).
 *
 * Errors. Every function that returns int returns SHMEMCTL_MOE_OK, or one of the codes below; then
 * shmemctl_moe_error() says what failed, and shmemctl_moe_fix() what to do. After INVALID nothing
 * was put into a stream, and the job goes on; after another code of a call on a stream, some of its
 * kernels may have been, and this rank is out of step with the others. No C++ exception leaves a
 * function. What a kernel meets, such as a rank that does not come in SHMEMCTL_TIMEOUT seconds, is
 * returned by shmemctl_moe_wait and by every later call; the job cannot go on after it.
 *
 * Threads. One thread at a time uses an exchange and its plans; the text of an error is that of the
 * calling thread.
 *
 * Structs begin with their size, by which the library knows the version of the header that the
 * program was compiled with: initialise them by the _INIT macros. Members that a program's header
 * does not have are as in those macros. */
#ifndef SHMEMCTL_MOE_H
#define SHMEMCTL_MOE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return; the values are those of shmemctl's exit codes. */
enum {
  SHMEMCTL_MOE_OK = 0,
  SHMEMCTL_MOE_INVALID = 2,     /* a wrong call: an argument, or a call out of order */
  SHMEMCTL_MOE_UNAVAILABLE = 3, /* not here: no GPU, no path to a rank, a kernel is not launched */
  SHMEMCTL_MOE_TIMEOUT = 124    /* a rank was waited for too long */
};
/* Of the last function of this file that failed in this thread: one line, what failed and why; and
 * one line, what to do. "" if none has failed. Valid until the next one fails. */
const char* shmemctl_moe_error(void);
const char* shmemctl_moe_fix(void);

/* A cudaStream_t. */
typedef struct CUstream_st* shmemctl_moe_stream_t;
/* An exchange: a configuration with the memory by which ranks exchange rows. */
typedef struct shmemctl_moe_exchange* shmemctl_moe_t;
/* Where the rows of one set of tokens go: what dispatch and combine share. */
typedef struct shmemctl_moe_plan* shmemctl_moe_plan_t;

/* shmemctl_moe_config_t::mode */
enum {
  /* Many tokens (training, prefill): counts go ahead, received rows are contiguous by source rank,
   * one row for each token and rank comes back. */
  SHMEMCTL_MOE_HIGH_THROUGHPUT = 0,
  /* Few tokens (decoding): fixed slots, nothing goes ahead, calls have a send and a receive half.
   */
  SHMEMCTL_MOE_LOW_LATENCY = 1
};
/* ::format of the rows of a dispatch; a combine has BF16. */
enum {
  SHMEMCTL_MOE_BF16 = 0,
  SHMEMCTL_MOE_FP8 = 1 /* e4m3, a scale for each 128 channels */
};
/* ::scales of FP8 */
enum {
  SHMEMCTL_MOE_SCALES_FLOAT = 0,
  /* Powers of two. In low latency, records have them as UE8M0 bytes, four in a word. */
  SHMEMCTL_MOE_SCALES_POWER = 1
};
/* ::combine of low latency. (High throughput adds up the ranks' outputs, which have been weighted.)
 */
enum {
  SHMEMCTL_MOE_WEIGHTED = 0, /* an output for each expert; the token's rank applies the weights */
  SHMEMCTL_MOE_PARTIAL = 1   /* an output for each row: the weighted sum over the rank's experts */
};
/* ::layout of received rows, low latency */
enum {
  SHMEMCTL_MOE_BY_SOURCE = 0,
  SHMEMCTL_MOE_BY_EXPERT = 1 /* of SHMEMCTL_MOE_WEIGHTED: a copy for each expert, contiguous */
};

/* The same on all ranks. */
typedef struct {
  size_t struct_bytes;
  int32_t mode;
  int32_t num_experts;      /* of all ranks: a multiple of n */
  int32_t num_topk;         /* 1 to 32 */
  int32_t hidden;           /* channels; a multiple of 8, with FP8 of 128 */
  int32_t max_tokens;       /* that a rank may have in one dispatch */
  int32_t expert_alignment; /* rows of an expert are counted, and packed, in multiples of it */
  int32_t format;
  int32_t scales;
  int32_t combine;
  int32_t layout;
  int32_t returns_weights; /* high throughput: nonzero: combine also adds up top-k weights */
  /* Ranks of a node, consecutive: 0: as kernels reach each other, all ranks as one node. Where
   * nodes are joined by a network, their size lets each row cross once for each node (high
   * throughput). */
  int32_t node_ranks;
  int32_t num_sms; /* most multiprocessors of a kernel; 0: chosen for each */
  int32_t reserved;
  /* Low latency: a rank that does not respond in that time is masked, and the others go on. 0: it
   * is an error after SHMEMCTL_TIMEOUT. */
  double rank_timeout_us;
} shmemctl_moe_config_t;
#define SHMEMCTL_MOE_CONFIG_INIT                                                                   \
  { sizeof(shmemctl_moe_config_t), 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0.0 }

/* Bytes of symmetric memory (shmemx_gpu_malloc) that an exchange of that configuration takes on
 * each rank, and of device memory that each of its plans takes. They depend on how this job's
 * kernels reach each other. Largest parts, for n ranks, T = max_tokens, k = num_topk,
 * H = hidden, E = num_experts / n, v bytes of a value, R bytes of a record (4 (scales + 2k + 2),
 * rounded up to 16), P = n T min(k, E) + E (expert_alignment - 1):
 *
 *   high throughput              n T (v H + R) + n T 2H                  returns_weights: + n T 4k
 *   over a network, m nodes      + about 2 (m - 1) T (v H + 4 (scales + 2k + 1 + node_ranks) + 2H +
 * 8) low latency, by source       2 n T (v H + R) + n T o 2H              o: weighted k, partial 1
 *   low latency, by expert       2 n T (v H + R) + P (v H + R + 2H) + 4 T k
 *   over a network               + 2 T v H + 2 n T R + n T o 2H          FP8: + T (H + H / 32)
 *   a plan                       4 T n + 4 n n                           and less than that again
 *
 * Errors: INVALID (with the nearest legal value), UNAVAILABLE for what kernels do not reach here.
 */
int shmemctl_moe_workspace_bytes(const shmemctl_moe_config_t* config, size_t* size_bytes);
int shmemctl_moe_plan_bytes(const shmemctl_moe_config_t* config, size_t* size_bytes);

/* Collective over all PEs, waits. Clears `workspace` and compares the configuration with that of
 * the other ranks. The workspace stays the caller's: nothing else may use it until all ranks have
 * destroyed the exchange. No kernel of an earlier exchange may still use it.
 *
 * @param workspace shmemctl_moe_workspace_bytes() of shmemx_gpu_malloc, aligned to 256, the same
 *                  object on all ranks
 * Errors: as above; INVALID on all ranks where a rank's configuration or workspace is another. */
int shmemctl_moe_create(const shmemctl_moe_config_t* config, void* workspace, shmemctl_moe_t* moe);
/* Not collective. Its calls must be done on all ranks before the workspace is used again or freed,
 * and its plans are destroyed before it. NULL is left alone. */
int shmemctl_moe_destroy(shmemctl_moe_t moe);

/* Not collective. An exchange may have any number: one for each layer whose combine is still to
 * come, or whose routing comes again.
 *
 * @param memory shmemctl_moe_plan_bytes() of device memory, aligned to 256; the caller's, until the
 *               plan is destroyed and its calls are done */
int shmemctl_moe_plan_create(shmemctl_moe_t moe, void* memory, shmemctl_moe_plan_t* plan);
int shmemctl_moe_plan_destroy(shmemctl_moe_plan_t plan);

/* The tokens of this rank, in device memory that the call's kernels read: it may be written again
 * once they are done. */
typedef struct {
  size_t struct_bytes;
  int32_t num_tokens; /* 0 to max_tokens; ranks differ */
  int32_t reserved;
  /* [num_tokens][hidden], aligned to 16: BF16; in high throughput with FP8, e4m3 (low latency casts
   * by itself) */
  const void* values;
  const float* scales;    /* high throughput with FP8: [num_tokens][hidden / 128]; else unused */
  const int32_t* experts; /* [num_tokens][num_topk], of all ranks; -1: none. No expert twice. */
  const float* weights;   /* [num_tokens][num_topk] */
} shmemctl_moe_tokens_t;
#define SHMEMCTL_MOE_TOKENS_INIT                                                                   \
  { sizeof(shmemctl_moe_tokens_t), 0, 0, NULL, NULL, NULL, NULL }

/* Where results go, and what is added to them: device memory. */
typedef struct {
  size_t struct_bytes;
  void* values;     /* [num_tokens][hidden] BF16 */
  const void* bias; /* high throughput: [num_tokens][hidden] BF16, added first; or NULL */
  float* weights;   /* [num_tokens][num_topk], where the configuration returns weights */
} shmemctl_moe_result_t;
#define SHMEMCTL_MOE_RESULT_INIT                                                                   \
  { sizeof(shmemctl_moe_result_t), NULL, NULL, NULL }

/* BF16 tokens to e4m3 and scales, for high throughput with FP8; on this rank alone.
 *
 * @param values [num_tokens][hidden] BF16, aligned to 16
 * @param casts  [num_tokens][hidden] e4m3, aligned to 16
 * @param scales [num_tokens][hidden / 128]: value = cast * scale; powers of two if configured */
int shmemctl_moe_cast(shmemctl_moe_t moe, int32_t num_tokens, const void* values, void* casts,
                      float* scales, shmemctl_moe_stream_t stream);

/* High throughput -------------------------------------------------------------------------------
 */

/* Collective. Exchanges how many rows each rank sends to each, and how many tokens each expert
 * gets, and computes where every row goes. The plan serves any number of dispatches and combines of
 * tokens with the same experts (a cached dispatch), until it is made again.
 *
 * @param experts [num_tokens][num_topk], device memory */
int shmemctl_moe_plan_make(shmemctl_moe_plan_t plan, int32_t num_tokens, const int32_t* experts,
                           shmemctl_moe_stream_t stream);
/* Collective. Each token's row goes to the ranks of its experts. Received rows are overwritten by
 * the next dispatch of any rank, which begins only after this rank has entered it too: work that
 * reads them is put into the stream before this rank's next dispatch.
 *
 * INVALID: the plan has not been made, or for another number of tokens. */
int shmemctl_moe_dispatch(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                          shmemctl_moe_stream_t stream);
/* Collective. For each token: bf16(bias + the outputs of its rows), added in FP32 in the order of
 * ranks (over nodes: of each node, rounded, then of nodes); with weights the same sum of
 * output_weights. Outputs may be written again once the call is done. */
int shmemctl_moe_combine(shmemctl_moe_plan_t plan, const shmemctl_moe_result_t* result,
                         shmemctl_moe_stream_t stream);

/* Low latency -----------------------------------------------------------------------------------
 */

/* `halves`: a whole call, or one of its two launches. After a SEND nothing of the GPU is occupied
 * until its RECEIVE is launched (DeepEP's receive hook), on the same stream. */
enum {
  SHMEMCTL_MOE_BOTH = 0,
  SHMEMCTL_MOE_SEND = 1,
  SHMEMCTL_MOE_RECEIVE = 2 /* of a dispatch: arguments as in its SEND */
};
/* Collective. Makes the plan, too. Each dispatch is followed by its combine, or given up, before
 * the exchange's next one: INVALID says which call is missing. (A captured graph is checked when it
 * is captured, so it holds whole pairs.) Received rows stay until the second dispatch after this
 * one; by expert, until the next. */
int shmemctl_moe_low_latency_dispatch(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                                      int halves, shmemctl_moe_stream_t stream);
/* Collective. Sums of each token's outputs, in FP32, rounded once: weighted, in the order of its
 * experts; partial, in the order of ranks. Outputs may be written again once the next dispatch has
 * been received. `tokens` as given to the dispatch: its experts and weights are read, its values
 * are not. Of masked ranks nothing is added. SEND only says that this rank's outputs are there
 * (over a network it sends them), RECEIVE fetches. */
int shmemctl_moe_low_latency_combine(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                                     const shmemctl_moe_result_t* result, int halves,
                                     shmemctl_moe_stream_t stream);
/* Gives up the dispatch that was received last; on all ranks. */
int shmemctl_moe_low_latency_drop(shmemctl_moe_t moe);
/* The ranks that this one has masked, in order: pes has room for n. Waits for the PE's own stream
 * only, so wait for the calls' stream before. */
int shmemctl_moe_masked(shmemctl_moe_t moe, int32_t* pes, int32_t* count);

/* What experts read and write ---------------------------------------------------------------------
 */

/* Addresses in device memory, and the form of what lies there; the same for every call of the plan,
 * so that it may be passed to kernels by value, in graphs too. What lies there is valid once the
 * dispatch is done in stream order.
 *
 * Which rows there are:
 *   high throughput  rows 0 to r - 1, by source rank, then token:
 *                    r = counts[0 * n + me] + counts[1 * n + me] + ...
 *   by source        of rank s, rows h + s * max_tokens + i, for i < counts[s] (-1: s is masked),
 *                    h = half_rows where *dispatches is odd, otherwise 0. Outputs are at
 *                    s * max_tokens + i.
 *   by expert        of local expert e, rows expert_offsets[e] + i, for i < expert_counts[e]
 *
 * Row r has its values at rows + r * row_bytes, its record at records + r * record_words, and its
 * output at outputs + r * outputs_per_row * output_row_bytes: where outputs_per_row is num_topk,
 * one for each of the token's experts, in their order (those of other ranks are not read). */
typedef struct {
  size_t struct_bytes;
  int32_t me, n;
  int32_t num_local_experts;
  int32_t max_tokens;
  void* rows;
  size_t row_bytes;
  uint32_t* records;
  int32_t record_words;
  /* Where a record has: scales (FP8: scale_words of them, FP32, or four UE8M0 bytes a word, the
   * first in the lowest byte); num_topk local experts of this rank, -1 for others; their weights,
   * FP32, 0 for others; the source rank; the token's index there. */
  int32_t scales_at, scale_words, experts_at, weights_at, source_at, token_at;
  int32_t num_topk;
  int32_t outputs_per_row;
  void* outputs; /* BF16; written by the experts */
  size_t output_row_bytes;
  float* output_weights;        /* [rows][num_topk], to be returned and added up; or NULL */
  const int32_t* counts;        /* high throughput: [n][n] by source and destination; else [n] */
  const int32_t* expert_counts; /* [num_local_experts]; high throughput: rows that chose it, rounded
                                   up to expert_alignment; by source NULL */
  const int32_t* expert_offsets; /* by expert: [num_local_experts + 1]; else NULL */
  const uint64_t* dispatches;    /* low latency: dispatches that this rank has received */
  int64_t half_rows;             /* low latency by source: from one half to the other */
} shmemctl_moe_received_t;
#define SHMEMCTL_MOE_RECEIVED_INIT                                                                 \
  {                                                                                                \
    sizeof(shmemctl_moe_received_t), 0, 0, 0, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL,   \
        0, NULL, NULL, NULL, NULL, NULL, 0                                                         \
  }
/* Waits for nothing. `received` has its struct_bytes set. */
int shmemctl_moe_received(shmemctl_moe_plan_t plan, shmemctl_moe_received_t* received);

/* Waits for the stream, and copies counts to the host, for who sizes the experts' work there; not
 * in a capture. rows: received rows of this rank; expert_counts: NULL, or [num_local_experts] as in
 * shmemctl_moe_received_t (INVALID by source). High throughput: after plan_make; low latency: after
 * a dispatch. */
int shmemctl_moe_counts(shmemctl_moe_plan_t plan, shmemctl_moe_stream_t stream, int32_t* rows,
                        int32_t* expert_counts);

/* Waits until all that was put into the stream is done, for SHMEMCTL_TIMEOUT at most, and says what
 * kernels have met. TIMEOUT: the text names the PE that was waited for; all ranks end their calls,
 * and results of that call are undefined on all. The job can only end then: soon after, a thread of
 * the library does that (shmemx_gpu_wait), if the program does not. */
int shmemctl_moe_wait(shmemctl_moe_t moe, shmemctl_moe_stream_t stream);

/* Launches --------------------------------------------------------------------------------------
 */

enum { SHMEMCTL_MOE_OF_DISPATCH = 0, SHMEMCTL_MOE_OF_COMBINE = 1 };
/* Launch settings of one direction, as `shmemctl moe --tune` finds them
 * (docs/explanation/moe_gpu.md has what they mean); -1: chosen for the shape, or not a setting of
 * these kernels. */
typedef struct {
  size_t struct_bytes;
  int32_t sms, warps, stages, kept, self_sms, chunk_bytes, chunk_rows;
  int32_t reserved;
} shmemctl_moe_settings_t;
#define SHMEMCTL_MOE_SETTINGS_INIT                                                                 \
  { sizeof(shmemctl_moe_settings_t), -1, -1, -1, -1, -1, -1, -1, 0 }
/* Of all later calls; the same on all ranks. INVALID: with the rule and the nearest legal value. */
int shmemctl_moe_set_settings(shmemctl_moe_t moe, int direction,
                              const shmemctl_moe_settings_t* settings);
/* Those that calls run with. `settings` has its struct_bytes set. */
int shmemctl_moe_get_settings(shmemctl_moe_t moe, int direction, shmemctl_moe_settings_t* settings);

#ifdef __cplusplus
}
#endif

#endif
