/* What programs with MoE ask of the host, over a fake CUDA driver, whose GPUs run no kernels:
 * sizes, addresses, and errors by return value, after which the job goes on. Silent, exit status 0.
 * "launch" also launches kernels, where there is no GPU; "optional" is for a job without GPUs. */
#include <string.h>

#include "check.h"
#include <shmemctl/moe.h>
#include <shmemx.h>

enum { tokens = 37, topk = 4, hidden = 2176, experts_of_rank = 8 };

static int me, n;
static int by_network; /* SHMEMCTL_DEVICE_PATH=proxy: each rank is a node */

#define OK(call) CHECK((call) == SHMEMCTL_MOE_OK)
#define REFUSED(call, code, text)                                                                  \
  do {                                                                                             \
    CHECK((call) == (code));                                                                       \
    if (!strstr(shmemctl_moe_error(), text))                                                       \
      fprintf(stderr, "error: %s\n", shmemctl_moe_error());                                        \
    CHECK(strstr(shmemctl_moe_error(), text) != NULL);                                             \
    CHECK(strlen(shmemctl_moe_fix()) > 0 && !strchr(shmemctl_moe_error(), '\n'));                  \
  } while (0)
#define INVALID(call, text) REFUSED(call, SHMEMCTL_MOE_INVALID, text)

static shmemctl_moe_config_t some_config(int mode) {
  shmemctl_moe_config_t config = SHMEMCTL_MOE_CONFIG_INIT;
  config.mode = mode;
  config.num_experts = n * experts_of_rank;
  config.num_topk = topk;
  config.hidden = hidden;
  config.max_tokens = tokens;
  return config;
}

static size_t workspace_of(const shmemctl_moe_config_t* config) {
  size_t size_bytes = 0;
  OK(shmemctl_moe_workspace_bytes(config, &size_bytes));
  return size_bytes;
}

/* The formulas of the header; flags, and what is rounded up, are small. */
static void expect_near(size_t found, size_t formula) {
  CHECK(found >= formula && found <= formula + (400u << 10));
}

static void test_sizes(void) {
  const size_t ranks = (size_t)n, rows = ranks * tokens;
  const size_t record = (4 * (2 * topk + 2) + 15) / 16 * 16;
  const size_t crossing = (4 * (2 * topk + 1 + 1) + 15) / 16 * 16;
  const size_t rails = by_network ? 2 * (ranks - 1) * tokens * (4 * hidden + crossing + 8) : 0;
  const size_t sent = by_network ? 2 * tokens * 2 * hidden + 2 * rows * record : 0;
  const size_t back = by_network ? rows * (2 * hidden + 8) : 0; /* for each output */
  shmemctl_moe_config_t config = some_config(SHMEMCTL_MOE_HIGH_THROUGHPUT);
  size_t plan_bytes = 0;
  expect_near(workspace_of(&config), rows * (2 * hidden + record + 2 * hidden) + rails);
  config.returns_weights = 1;
  expect_near(workspace_of(&config), rows * (2 * hidden + record + 2 * hidden + 4 * topk) + rails);
  OK(shmemctl_moe_plan_bytes(&config, &plan_bytes));
  expect_near(plan_bytes, 4 * rows + 4 * ranks * ranks);
  config = some_config(SHMEMCTL_MOE_LOW_LATENCY);
  expect_near(workspace_of(&config),
              2 * rows * (2 * hidden + record) + rows * topk * 2 * hidden + sent + topk * back);
  config.combine = SHMEMCTL_MOE_PARTIAL;
  expect_near(workspace_of(&config),
              2 * rows * (2 * hidden + record) + rows * 2 * hidden + sent + back);
  config.combine = SHMEMCTL_MOE_WEIGHTED;
  config.layout = SHMEMCTL_MOE_BY_EXPERT;
  expect_near(workspace_of(&config), 2 * rows * (2 * hidden + record) +
                                         rows * topk * (4 * hidden + record) + 4 * tokens * topk +
                                         sent + topk * back);
}

static void test_configurations_that_are_refused(void) {
  size_t size_bytes = 0;
  shmemctl_moe_config_t config = some_config(SHMEMCTL_MOE_HIGH_THROUGHPUT);
  INVALID(shmemctl_moe_workspace_bytes(NULL, &size_bytes), "shmemctl_moe_config_t: it is NULL");
  INVALID(shmemctl_moe_workspace_bytes(&config, NULL), "size_bytes: it is NULL");
  config.struct_bytes = 8;
  INVALID(shmemctl_moe_plan_bytes(&config, &size_bytes), "struct_bytes is 8");
  config.struct_bytes = sizeof config + 8;
  INVALID(shmemctl_moe_plan_bytes(&config, &size_bytes), "the library supports 72 to 72");
#define WRONG(member, value, text)                                                                 \
  do {                                                                                             \
    config = some_config(SHMEMCTL_MOE_HIGH_THROUGHPUT);                                            \
    config.member = (value);                                                                       \
    INVALID(shmemctl_moe_workspace_bytes(&config, &size_bytes), text);                             \
  } while (0)
  WRONG(mode, 2, "mode: 2 is none");
  WRONG(format, -1, "format: -1 is none");
  WRONG(hidden, 2180, "must be a multiple of 8");
  if (!by_network)
    WRONG(hidden, 1 << 19, "a block's shared memory has to hold a row");
  WRONG(num_topk, 33, "num-topk");
  WRONG(num_experts, 0, "num-experts");
  WRONG(max_tokens, -1, "num-tokens");
  WRONG(expert_alignment, 0, "expert-alignment");
  WRONG(num_sms, 133, "num-sms");
  WRONG(num_sms, -1, "num_sms");
  WRONG(reserved, 1, "num_sms");
  WRONG(node_ranks, n + 1, "node_ranks");
  WRONG(rank_timeout_us, 5.0, "rank_timeout_us");
  WRONG(rank_timeout_us, -5.0, "rank_timeout_us");
  WRONG(layout, SHMEMCTL_MOE_BY_EXPERT, "rows by expert are for low latency");
  WRONG(combine, SHMEMCTL_MOE_PARTIAL, "SHMEMCTL_MOE_PARTIAL is for low latency");
  WRONG(scales, SHMEMCTL_MOE_SCALES_POWER, "BF16 has none");
  config = some_config(SHMEMCTL_MOE_LOW_LATENCY);
  config.returns_weights = 1;
  REFUSED(shmemctl_moe_workspace_bytes(&config, &size_bytes), SHMEMCTL_MOE_UNAVAILABLE,
          "does not send them back");
  CHECK(size_bytes == 0);
}

/* Collective calls fail on all PEs, whoever is wrong. */
static void test_an_exchange_that_is_refused(void* workspace) {
  shmemctl_moe_config_t config = some_config(SHMEMCTL_MOE_HIGH_THROUGHPUT);
  shmemctl_moe_t moe = (shmemctl_moe_t)&config;
  INVALID(shmemctl_moe_create(&config, NULL, &moe), "workspace");
  CHECK(moe == NULL);
  INVALID(shmemctl_moe_create(&config, &config, &moe), "not in the symmetric heap");
  INVALID(shmemctl_moe_create(&config, (char*)workspace + 16, &moe), "aligned to 256");
  if (n == 1)
    return;
  INVALID(shmemctl_moe_create(&config, me == 0 ? NULL : workspace, &moe),
          me == 0 ? "workspace" : "PE 0 has refused its arguments");
  if (me == n - 1)
    config.hidden -= 8;
  INVALID(shmemctl_moe_create(&config, workspace, &moe), "another configuration");
  CHECK(moe == NULL);
}

static int is_in(const void* address, const void* begin, size_t size_bytes) {
  return (const char*)address >= (const char*)begin &&
         (const char*)address < (const char*)begin + size_bytes;
}

static void test_addresses(shmemctl_moe_plan_t plan, const void* workspace, size_t workspace_bytes,
                           const void* plan_memory, size_t plan_bytes) {
  shmemctl_moe_received_t in = SHMEMCTL_MOE_RECEIVED_INIT;
  OK(shmemctl_moe_received(plan, &in));
  CHECK(in.struct_bytes == sizeof in && in.me == me && in.n == n);
  CHECK(in.num_local_experts == experts_of_rank && in.num_topk == topk && in.max_tokens == tokens);
  CHECK(in.row_bytes == 2 * hidden && in.output_row_bytes == 2 * hidden);
  CHECK(in.outputs_per_row == 1 && in.scale_words == 0);
  CHECK(in.experts_at == 0 && in.weights_at == topk && in.source_at == 2 * topk);
  CHECK(in.token_at == in.source_at + 1 && in.record_words >= in.token_at + 1);
  CHECK(is_in(in.rows, workspace, workspace_bytes) &&
        is_in(in.records, workspace, workspace_bytes));
  CHECK(is_in(in.outputs, workspace, workspace_bytes));
  CHECK(is_in(in.counts, plan_memory, plan_bytes));
  CHECK(is_in(in.expert_counts, plan_memory, plan_bytes));
  in.struct_bytes = 8;
  INVALID(shmemctl_moe_received(plan, &in), "struct_bytes is 8");
}

static void test_settings(shmemctl_moe_t moe) {
  shmemctl_moe_settings_t settings = SHMEMCTL_MOE_SETTINGS_INIT;
  OK(shmemctl_moe_get_settings(moe, SHMEMCTL_MOE_OF_DISPATCH, &settings));
  CHECK(settings.sms > 0 && (settings.warps > 0) == !by_network);
  CHECK(settings.chunk_rows == (by_network ? 16 : -1));
  {
    const shmemctl_moe_settings_t none = SHMEMCTL_MOE_SETTINGS_INIT;
    settings = none;
  }
  settings.sms = 12;
  OK(shmemctl_moe_set_settings(moe, SHMEMCTL_MOE_OF_COMBINE, &settings));
  OK(shmemctl_moe_get_settings(moe, SHMEMCTL_MOE_OF_COMBINE, &settings));
  CHECK(settings.sms == 12 && (settings.chunk_bytes > 0) == !by_network);
  settings.warps = 17;
  INVALID(shmemctl_moe_set_settings(moe, SHMEMCTL_MOE_OF_COMBINE, &settings),
          by_network ? "there is no warps here" : "warps 17 is not from 1 to 16");
  INVALID(shmemctl_moe_get_settings(moe, 2, &settings), "direction");
}

static void test_high_throughput(void* plan_memory, int launches) {
  shmemctl_moe_config_t config = some_config(SHMEMCTL_MOE_HIGH_THROUGHPUT);
  const size_t workspace_bytes = workspace_of(&config);
  void* workspace = shmemx_gpu_malloc(workspace_bytes);
  shmemctl_moe_t moe = NULL;
  shmemctl_moe_plan_t plan = NULL;
  shmemctl_moe_tokens_t given = SHMEMCTL_MOE_TOKENS_INIT;
  shmemctl_moe_result_t result = SHMEMCTL_MOE_RESULT_INIT;
  size_t plan_bytes = 0;
  int32_t rows = 0, masked = -1;
  OK(shmemctl_moe_plan_bytes(&config, &plan_bytes));
  test_an_exchange_that_is_refused(workspace);
  OK(shmemctl_moe_create(&config, workspace, &moe));
  INVALID(shmemctl_moe_plan_create(moe, (char*)plan_memory + 16, &plan), "aligned to 256");
  INVALID(shmemctl_moe_plan_create(NULL, plan_memory, &plan), "shmemctl_moe_t: it is NULL");
  OK(shmemctl_moe_plan_create(moe, plan_memory, &plan));
  test_addresses(plan, workspace, workspace_bytes, plan_memory, plan_bytes);
  test_settings(moe);

  /* The addresses of tokens are looked at by kernels only. */
  given.num_tokens = tokens;
  given.values = given.experts = plan_memory;
  given.weights = plan_memory;
  result.values = plan_memory;
  INVALID(shmemctl_moe_dispatch(plan, &given, NULL), "plan has not been made");
  INVALID(shmemctl_moe_combine(plan, &result, NULL), "plan has not been made");
  INVALID(shmemctl_moe_counts(plan, shmemx_gpu_stream(), &rows, NULL), "plan has not been made");
  INVALID(shmemctl_moe_plan_make(plan, tokens + 1, plan_memory, NULL), "0 to 37");
  INVALID(shmemctl_moe_plan_make(plan, tokens, NULL, NULL), "experts");
  INVALID(shmemctl_moe_low_latency_dispatch(plan, &given, SHMEMCTL_MOE_BOTH, NULL),
          "the exchange is for high throughput");
  INVALID(shmemctl_moe_low_latency_drop(moe), "the exchange is for high throughput");
  INVALID(shmemctl_moe_cast(moe, tokens, plan_memory, plan_memory, plan_memory, NULL), "BF16 rows");
  if (launches) {
    REFUSED(shmemctl_moe_plan_make(plan, tokens, plan_memory, NULL), SHMEMCTL_MOE_UNAVAILABLE,
            "cannot launch a MoE kernel");
    INVALID(shmemctl_moe_dispatch(plan, &given, NULL), "plan has not been made");
  }
  OK(shmemctl_moe_masked(moe, NULL, &masked));
  CHECK(masked == 0);
  OK(shmemctl_moe_wait(moe, shmemx_gpu_stream()));
  INVALID(shmemctl_moe_destroy(moe), "plans not destroyed: 1");
  OK(shmemctl_moe_plan_destroy(plan));
  OK(shmemctl_moe_destroy(moe));
  shmemx_gpu_free(workspace);
}

static void test_low_latency(void* plan_memory, int launches) {
  shmemctl_moe_config_t config = some_config(SHMEMCTL_MOE_LOW_LATENCY);
  void* workspace;
  shmemctl_moe_t moe = NULL;
  shmemctl_moe_plan_t plan = NULL;
  shmemctl_moe_tokens_t given = SHMEMCTL_MOE_TOKENS_INIT;
  shmemctl_moe_result_t result = SHMEMCTL_MOE_RESULT_INIT;
  shmemctl_moe_received_t in = SHMEMCTL_MOE_RECEIVED_INIT;
  int32_t masked = -1, pes[8];
  uint64_t dispatches = 7;
  config.format = SHMEMCTL_MOE_FP8;
  config.scales = SHMEMCTL_MOE_SCALES_POWER;
  workspace = shmemx_gpu_malloc(workspace_of(&config));
  OK(shmemctl_moe_create(&config, workspace, &moe));
  OK(shmemctl_moe_plan_create(moe, plan_memory, &plan));
  OK(shmemctl_moe_received(plan, &in));
  CHECK(in.row_bytes == hidden && in.scale_words == (hidden / 128 + 3) / 4);
  CHECK(in.outputs_per_row == topk && in.half_rows == (int64_t)n * tokens);
  CHECK(in.expert_counts == NULL && in.dispatches != NULL);
  shmem_getmem(&dispatches, in.dispatches, sizeof dispatches, me);
  CHECK(dispatches == 0); /* the workspace is clear, whatever was there */
  given.num_tokens = tokens;
  given.values = given.experts = plan_memory;
  given.weights = plan_memory;
  result.values = plan_memory;
  INVALID(shmemctl_moe_low_latency_combine(plan, &given, &result, SHMEMCTL_MOE_BOTH, NULL),
          "plan has not been made");
  INVALID(shmemctl_moe_low_latency_dispatch(plan, &given, SHMEMCTL_MOE_RECEIVE, NULL),
          "launch its send half first");
  INVALID(shmemctl_moe_low_latency_dispatch(plan, &given, 3, NULL), "halves");
  INVALID(shmemctl_moe_plan_make(plan, tokens, plan_memory, NULL),
          "the exchange is for low latency");
  given.values = (const char*)plan_memory + 4;
  INVALID(shmemctl_moe_low_latency_dispatch(plan, &given, SHMEMCTL_MOE_BOTH, NULL),
          "aligned to 16");
  given.values = plan_memory;
  if (launches)
    REFUSED(shmemctl_moe_low_latency_dispatch(plan, &given, SHMEMCTL_MOE_BOTH, NULL),
            SHMEMCTL_MOE_UNAVAILABLE, "cannot launch a MoE kernel");
  OK(shmemctl_moe_low_latency_drop(moe));
  OK(shmemctl_moe_masked(moe, pes, &masked));
  CHECK(masked == 0);
  OK(shmemctl_moe_plan_destroy(plan));
  OK(shmemctl_moe_destroy(moe));
  shmemx_gpu_free(workspace);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  shmemctl_moe_config_t config = SHMEMCTL_MOE_CONFIG_INIT;
  size_t size_bytes = 0;
  void* plan_memory;
  if (strcmp(shmemctl_moe_error(), "") != 0 || strcmp(shmemctl_moe_fix(), "") != 0 ||
      shmemctl_moe_workspace_bytes(&config, &size_bytes) != SHMEMCTL_MOE_INVALID ||
      !strstr(shmemctl_moe_error(), "not initialized")) {
    fprintf(stderr, "before shmemx_gpu_init: %s\n", shmemctl_moe_error());
    return 1;
  }
  if (strcmp(mode, "optional") == 0) {
    const shmemx_gpu_init_t wanted = {SHMEM_THREAD_SINGLE, SHMEMX_GPU_BY_TURNS, 1};
    CHECK(shmemx_gpu_init(&wanted) != 0);
    INVALID(shmemctl_moe_workspace_bytes(&config, &size_bytes), "GPU");
    shmem_finalize();
    return 0;
  }
  shmemx_gpu_init(NULL);
  me = shmem_my_pe();
  n = shmem_n_pes();
  by_network = n > 1 && getenv("SHMEMCTL_DEVICE_PATH") != NULL;
  plan_memory = shmemx_gpu_malloc(1 << 20);
  test_sizes();
  test_configurations_that_are_refused();
  test_high_throughput(plan_memory, strcmp(mode, "launch") == 0);
  test_low_latency(plan_memory, strcmp(mode, "launch") == 0);
  shmemx_gpu_free(plan_memory);
  OK(shmemctl_moe_destroy(NULL));
  OK(shmemctl_moe_plan_destroy(NULL));
  shmem_finalize();
  return shmemctl_moe_workspace_bytes(&config, &size_bytes) != SHMEMCTL_MOE_INVALID;
}
