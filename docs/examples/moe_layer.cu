// An MoE layer: tokens go to the ranks of their experts, a kernel runs the experts there, and what
// comes back is compared with what it has to be, to the bit. docs/explanation/moe_library.md
//
//   moe_layer [high|low] [graph]     calls of that mode, as they are or captured in a CUDA graph
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include <cuda_bf16.h>
#include <shmemctl/moe.h>
#include <shmemx.h>

namespace {

constexpr int hidden = 1024, topk = 4, experts_of_rank = 8, max_tokens = 96, rounds = 3;

// Numbers of which BF16 holds every sum: an expert multiplies by 1, 2 or 3.
__host__ __device__ float factor(int expert) {
  return static_cast<float>(1 + expert % 3);
}
__device__ const __nv_bfloat16* row_at(const shmemctl_moe_received_t& in, std::int64_t row) {
  return reinterpret_cast<const __nv_bfloat16*>(static_cast<const char*>(in.rows) +
                                                row * in.row_bytes);
}
__device__ __nv_bfloat16* output_at(const shmemctl_moe_received_t& in, std::int64_t row) {
  return reinterpret_cast<__nv_bfloat16*>(static_cast<char*>(in.outputs) +
                                          row * in.output_row_bytes);
}

/// High throughput: a row is there once, for all of its experts on this rank. Its output is their
/// sum, with the weights.
__global__ void run_experts_of_rows(const shmemctl_moe_received_t in) {
  int rows = 0; // known on the device only: a graph's replays differ in it
  for (int source = 0; source < in.n; ++source)
    rows += in.counts[source * in.n + in.me];
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::uint32_t* const record = in.records + std::int64_t{row} * in.record_words;
    float scale = 0;
    for (int k = 0; k < in.num_topk; ++k) {
      const int local = static_cast<int>(record[in.experts_at + k]);
      if (local >= 0)
        scale += __uint_as_float(record[in.weights_at + k]) *
                 factor(in.me * in.num_local_experts + local);
    }
    for (int channel = threadIdx.x; channel < hidden; channel += blockDim.x)
      output_at(in, row)[channel] =
          __float2bfloat16(scale * __bfloat162float(row_at(in, row)[channel]));
  }
}

/// Low latency, by expert: each expert has its rows one behind the other, and the weights are
/// applied where the tokens come from.
__global__ void run_experts_by_expert(const shmemctl_moe_received_t in) {
  for (int local = 0; local < in.num_local_experts; ++local)
    for (int i = blockIdx.x; i < in.expert_counts[local]; i += gridDim.x) {
      const std::int64_t row = in.expert_offsets[local] + i;
      for (int channel = threadIdx.x; channel < hidden; channel += blockDim.x)
        output_at(in, row)[channel] =
            __float2bfloat16(factor(in.me * in.num_local_experts + local) *
                             __bfloat162float(row_at(in, row)[channel]));
    }
}

[[noreturn]] void fail(const char* what, const char* fix) {
  std::fprintf(stderr, "PE %d: %s\n%s\n", shmem_my_pe(), what, fix);
  shmem_global_exit(1);
}
void must(int result) {
  if (result != SHMEMCTL_MOE_OK)
    fail(shmemctl_moe_error(), shmemctl_moe_fix());
}
void require(cudaError_t result) {
  if (result != cudaSuccess)
    fail(cudaGetErrorString(result), "");
}

template <class T>
T* on_device(std::size_t count) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, count * sizeof(T)));
  return static_cast<T*>(memory);
}

/// This rank's tokens of one round, on the host, and the results that they must have.
struct Round {
  std::vector<__nv_bfloat16> values, expected;
  std::vector<std::int32_t> experts;
  std::vector<float> weights;

  Round(int tokens, int number) {
    const int n_experts = shmem_n_pes() * experts_of_rank;
    for (int token = 0; token < tokens; ++token) {
      float scale = 0;
      for (int k = 0; k < topk; ++k) {
        const int first = shmem_my_pe() * 5 + token * 7 + number * 3;
        experts.push_back((first + k * (n_experts / topk)) % n_experts);
        weights.push_back(k < 2 ? 1.0f : 0.5f);
        scale += weights.back() * factor(experts.back());
      }
      for (int channel = 0; channel < hidden; ++channel) {
        const auto value = static_cast<float>((shmem_my_pe() + token + channel + number) % 4);
        values.push_back(__float2bfloat16(value));
        expected.push_back(__float2bfloat16(scale * value));
      }
    }
  }
};

template <class T>
void upload(T* to, const std::vector<T>& from, cudaStream_t stream) {
  require(
      cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream));
}

} // namespace

int main(int argc, char** argv) {
  bool low = false, graphed = false;
  for (int i = 1; i < argc; ++i) {
    low = low || std::strcmp(argv[i], "low") == 0;
    graphed = graphed || std::strcmp(argv[i], "graph") == 0;
  }
  shmemx_gpu_init(nullptr); // every PE gets a GPU, or the job ends and says why
  const int me = shmem_my_pe(), n = shmem_n_pes();

  shmemctl_moe_config_t config = SHMEMCTL_MOE_CONFIG_INIT;
  config.mode = low ? SHMEMCTL_MOE_LOW_LATENCY : SHMEMCTL_MOE_HIGH_THROUGHPUT;
  config.layout = low ? SHMEMCTL_MOE_BY_EXPERT : SHMEMCTL_MOE_BY_SOURCE;
  config.num_experts = n * experts_of_rank;
  config.num_topk = topk;
  config.hidden = hidden;
  config.max_tokens = max_tokens;

  // The program allocates all memory: symmetric memory for the exchange, any device memory for its
  // plan.
  std::size_t workspace_bytes = 0, plan_bytes = 0;
  must(shmemctl_moe_workspace_bytes(&config, &workspace_bytes));
  must(shmemctl_moe_plan_bytes(&config, &plan_bytes));
  void* const workspace = shmemx_gpu_malloc(workspace_bytes);
  if (!workspace)
    fail("no room for the exchange", "raise SHMEMCTL_SYMMETRIC_SIZE");
  shmemctl_moe_t moe = nullptr;
  must(shmemctl_moe_create(&config, workspace, &moe));
  char* const plan_memory = on_device<char>(plan_bytes);
  shmemctl_moe_plan_t plan = nullptr;
  must(shmemctl_moe_plan_create(moe, plan_memory, &plan));
  shmemctl_moe_received_t received = SHMEMCTL_MOE_RECEIVED_INIT;
  must(shmemctl_moe_received(plan, &received));

  auto* const values = on_device<__nv_bfloat16>(max_tokens * hidden);
  auto* const experts = on_device<std::int32_t>(max_tokens * topk);
  auto* const weights = on_device<float>(max_tokens * topk);
  auto* const results = on_device<__nv_bfloat16>(max_tokens * hidden);
  shmemctl_moe_tokens_t tokens = SHMEMCTL_MOE_TOKENS_INIT;
  tokens.num_tokens = max_tokens - me % 3; // ranks may differ
  tokens.values = values;
  tokens.experts = experts;
  tokens.weights = weights;
  shmemctl_moe_result_t result = SHMEMCTL_MOE_RESULT_INIT;
  result.values = results;

  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto layer = [&] {
    if (low) {
      // The halves: work of another kind may lie between them.
      must(shmemctl_moe_low_latency_dispatch(plan, &tokens, SHMEMCTL_MOE_SEND, stream));
      must(shmemctl_moe_low_latency_dispatch(plan, &tokens, SHMEMCTL_MOE_RECEIVE, stream));
      run_experts_by_expert<<<16, 256, 0, stream>>>(received);
      require(cudaGetLastError());
      must(shmemctl_moe_low_latency_combine(plan, &tokens, &result, SHMEMCTL_MOE_BOTH, stream));
      return;
    }
    must(shmemctl_moe_plan_make(plan, tokens.num_tokens, tokens.experts, stream));
    must(shmemctl_moe_dispatch(plan, &tokens, stream));
    run_experts_of_rows<<<16, 256, 0, stream>>>(received);
    require(cudaGetLastError());
    must(shmemctl_moe_combine(plan, &result, stream));
  };

  cudaGraphExec_t graph = nullptr;
  if (graphed) {
    cudaGraph_t captured = nullptr;
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    layer();
    require(cudaStreamEndCapture(stream, &captured));
    require(cudaGraphInstantiate(&graph, captured, 0));
    require(cudaGraphDestroy(captured));
  }

  std::vector<__nv_bfloat16> found(static_cast<std::size_t>(tokens.num_tokens) * hidden);
  for (int number = 0; number < rounds; ++number) {
    const Round round(tokens.num_tokens, number);
    upload(values, round.values, stream);
    upload(experts, round.experts, stream);
    upload(weights, round.weights, stream);
    // What an earlier round has left must not pass for this one's.
    require(cudaMemsetAsync(results, 0xff, found.size() * sizeof found[0], stream));
    if (graphed)
      require(cudaGraphLaunch(graph, stream));
    else
      layer();
    must(shmemctl_moe_wait(moe, stream)); // also for what kernels have met
    require(
        cudaMemcpy(found.data(), results, found.size() * sizeof found[0], cudaMemcpyDeviceToHost));
    if (std::memcmp(found.data(), round.expected.data(), found.size() * sizeof found[0]) != 0)
      fail("a result is wrong", low ? "low latency" : "high throughput");
  }

  shmem_barrier_all(); // nobody needs this rank's memory any more
  if (me == 0)
    std::printf("%d PEs: %d rounds of %s%s are right\n", n, rounds,
                low ? "low latency" : "high throughput", graphed ? " in a graph" : "");
  if (graph)
    require(cudaGraphExecDestroy(graph));
  must(shmemctl_moe_plan_destroy(plan));
  must(shmemctl_moe_destroy(moe));
  for (void* const memory :
       {static_cast<void*>(plan_memory), static_cast<void*>(values), static_cast<void*>(experts),
        static_cast<void*>(weights), static_cast<void*>(results)})
    require(cudaFree(memory));
  require(cudaStreamDestroy(stream));
  shmemx_gpu_free(workspace);
  shmem_finalize();
  return 0;
}
