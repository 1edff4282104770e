// Dispatch and combine for programs (shmemctl/moe.h): a wrapper of src/runtime/moe from which no
// exception escapes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "kernels/moe/cast.h"
#include "src/base/hash.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/moe/exchange.h"
#include "src/runtime/shmem/api.h"
#include "src/runtime/shmem/include/shmemctl/moe.h"

using namespace shmemctl;
using api::World;

/// A shmemctl_moe_t points to this.
struct shmemctl_moe_exchange {
  PeGpu& gpu;
  std::unique_ptr<moe::Exchange> exchange;
  moe::DirectionSettings given = {};
  int plans = 0;
};

/// A shmemctl_moe_plan_t points to this.
struct shmemctl_moe_plan {
  shmemctl_moe_exchange& of;
  std::byte* memory;
  /// Number of tokens of the last plan_make, or low-latency dispatch, that was launched.
  std::optional<std::int32_t> tokens = {};

  moe::Exchange& exchange() const { return *of.exchange; }
};

namespace {

struct LastError {
  std::string message, fix;
};
thread_local LastError last_error;

int code_of(ExitCode code) {
  switch (code) {
  case ExitCode::usage:
    return SHMEMCTL_MOE_INVALID;
  case ExitCode::deadline:
    return SHMEMCTL_MOE_TIMEOUT;
  default:
    return SHMEMCTL_MOE_UNAVAILABLE;
  }
}

/// Runs `body(world, gpu)`. Converts an exception to a return code, and stores it as the thread's
/// last error.
template <class Body>
int returned(const Body& body) {
  try {
    World& world = api::current();
    PeGpu* const gpu = world.gpu();
    if (!gpu)
      throw api::wrong_use("GPU", "use", world.why_no_gpu(),
                           "call shmemx_gpu_init, and check what it returns where GPUs are "
                           "optional");
    body(world, *gpu);
    return SHMEMCTL_MOE_OK;
  } catch (const Error& error) {
    last_error = {error.message(), error.fix()};
    return code_of(error.code());
  } catch (const std::exception& error) {
    last_error = {std::string("shmemctl: ") + error.what(), "report it with what the program does"};
    return SHMEMCTL_MOE_UNAVAILABLE;
  }
}

template <class T>
T& require(T* pointer, const char* name) {
  if (!pointer)
    throw api::wrong_use(name, "", "it is NULL", "pass the address of an object");
  return *pointer;
}

/// The object behind a handle. Throws Error (usage) if it is NULL or from before shmem_finalize.
shmemctl_moe_exchange& require_of(shmemctl_moe_exchange* moe, const PeGpu& gpu) {
  shmemctl_moe_exchange& found = require(moe, "shmemctl_moe_t");
  if (&found.gpu != &gpu)
    throw api::wrong_use("shmemctl_moe_t", "use", "it is from before shmem_finalize",
                         "destroy it before the job is finalized");
  return found;
}
shmemctl_moe_plan& require_of(shmemctl_moe_plan* plan, const PeGpu& gpu) {
  shmemctl_moe_plan& found = require(plan, "shmemctl_moe_plan_t");
  require_of(&found.of, gpu);
  return found;
}

/// The size of a struct in the first version of the header.
template <class T>
constexpr std::size_t first_bytes = 0;
template <>
constexpr std::size_t first_bytes<shmemctl_moe_config_t> = 72;
template <>
constexpr std::size_t first_bytes<shmemctl_moe_tokens_t> = 48;
template <>
constexpr std::size_t first_bytes<shmemctl_moe_result_t> = 32;
template <>
constexpr std::size_t first_bytes<shmemctl_moe_received_t> = 152;
template <>
constexpr std::size_t first_bytes<shmemctl_moe_settings_t> = 40;

/// Throws Error (usage) for a struct that is smaller than any version, or larger than this one.
template <class T>
void require_size(const T& given, const char* name) {
  static_assert(sizeof(T) >= first_bytes<T>);
  if (given.struct_bytes < first_bytes<T> || given.struct_bytes > sizeof(T))
    throw api::wrong_use(
        name, "",
        fmt::format("struct_bytes is {}, and the library supports {} to {}", given.struct_bytes,
                    first_bytes<T>, sizeof(T)),
        "initialize it by its _INIT macro, and compile with the headers that came with the "
        "library");
}

/// A copy of the program's struct; members that its header does not have are as in `defaults`.
template <class T>
T taken(const T* given, const char* name, const T& defaults) {
  require_size(require(given, name), name);
  T all = defaults;
  std::memcpy(&all, given, given->struct_bytes);
  return all;
}
shmemctl_moe_tokens_t taken(const shmemctl_moe_tokens_t* given) {
  return taken<shmemctl_moe_tokens_t>(given, "shmemctl_moe_tokens_t", SHMEMCTL_MOE_TOKENS_INIT);
}
shmemctl_moe_result_t taken(const shmemctl_moe_result_t* given) {
  return taken<shmemctl_moe_result_t>(given, "shmemctl_moe_result_t", SHMEMCTL_MOE_RESULT_INIT);
}

bool chosen(const char* name, std::int32_t value, std::int32_t most = 1) {
  if (value < 0 || value > most)
    throw api::wrong_use(name, "", fmt::format("{} is none of its constants", value),
                         "use the constants of shmemctl/moe.h");
  return value != 0;
}

/// A configuration that this job's kernels support, and their path.
struct Checked {
  moe::ExchangeConfig config;
  moe::MoePath path;
};

/// Converts and checks a configuration. Throws Error (usage, unavailable).
Checked checked(const shmemctl_moe_config_t* given, const World& world, const PeGpu& gpu) {
  const auto user =
      taken<shmemctl_moe_config_t>(given, "shmemctl_moe_config_t", SHMEMCTL_MOE_CONFIG_INIT);
  const int n = world.rma.n_pes();
  Checked all;
  moe::ExchangeConfig& config = all.config;
  const bool low = chosen("mode", user.mode);
  const bool partial = chosen("combine", user.combine);
  config.mode = low ? moe::Mode::low_latency : moe::Mode::high_throughput;
  config.format = chosen("format", user.format) ? moe::Format::fp8 : moe::Format::bf16;
  config.power_scales = chosen("scales", user.scales);
  config.by_expert = chosen("layout", user.layout);
  config.combine = !low      ? moe::Combine::rows
                   : partial ? moe::Combine::partial
                             : moe::Combine::weighted;
  config.combined_weights = user.returns_weights != 0;
  config.shape = {n,           user.num_experts, user.num_topk,
                  user.hidden, user.max_tokens,  user.expert_alignment};
  config.num_sms = user.num_sms;
  config.rank_timeout_us = user.rank_timeout_us;
  if (!low && partial)
    throw api::wrong_use("combine", "", "SHMEMCTL_MOE_PARTIAL is for low latency",
                         "leave it SHMEMCTL_MOE_WEIGHTED, or use SHMEMCTL_MOE_LOW_LATENCY");
  if (config.by_expert && (!low || partial))
    throw api::wrong_use("layout", "", "rows by expert are for low latency and a weighted combine",
                         "use SHMEMCTL_MOE_BY_SOURCE");
  if (config.power_scales && config.format == moe::Format::bf16)
    throw api::wrong_use("scales", "", "BF16 has none", "use SHMEMCTL_MOE_SCALES_FLOAT");
  if (user.num_sms < 0 || user.reserved != 0)
    throw api::wrong_use("num_sms", "",
                         "it is negative, or the member `reserved` after it is not 0",
                         "initialize the configuration by SHMEMCTL_MOE_CONFIG_INIT");
  if (!(user.rank_timeout_us >= 0 && user.rank_timeout_us <= 1e12) ||
      (user.rank_timeout_us > 0 && !low))
    throw api::wrong_use(
        "rank_timeout_us", "",
        "it is not a time from 0 to 1e12, or the mode is high throughput, which has none",
        "leave it 0, or use SHMEMCTL_MOE_LOW_LATENCY and a time from 0 to 1e12");
  if (user.node_ranks < 0 || (user.node_ranks > 0 && n % user.node_ranks != 0))
    throw api::wrong_use(
        "node_ranks", "",
        fmt::format("{} ranks cannot be divided into nodes of {}", n, user.node_ranks),
        "use 0, or a divisor of the number of PEs");
  config.node_ranks = user.node_ranks > 0 ? user.node_ranks : n;
  moe::validate(config.shape, config.format);
  all.path = moe::choose_moe_path(config, gpu.paths_by_pe());
  if (const std::optional<moe::BrokenRule> broken =
          moe::exchange_broken_rule(gpu, config, all.path))
    throw moe::error_of(*broken);
  if (const std::string reason = moe::exchange_cannot(gpu, config, all.path); !reason.empty())
    throw Error(ExitCode::unavailable, "MoE on GPUs", "create an exchange", reason,
                "check with shmemx_gpu_path which PEs kernels reach, and run shmemctl doctor");
  return all;
}

/// A hash that is equal on all ranks if they create the same exchange in the same memory.
std::uint64_t hash_of(const Checked& all, std::size_t workspace_offset) {
  const moe::ExchangeConfig& config = all.config;
  const moe::Shape& shape = config.shape;
  const std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", shape.n_experts, shape.top_k, shape.hidden,
      shape.max_tokens, shape.expert_alignment, static_cast<int>(config.mode),
      static_cast<int>(config.format), config.power_scales, static_cast<int>(config.combine),
      config.by_expert, config.combined_weights, config.node_ranks, config.num_sms,
      config.rank_timeout_us, all.path.node_ranks, workspace_offset);
  return fnv1a(text) | 1; // 0 stands for a rank without a hash
}

/// Collective: compares the hashes of the ranks. Throws Error on all ranks if a rank has a failure
/// or another hash: a rank with `failure` throws that, the others an Error (usage).
void require_agreement(World& world, std::uint64_t mine, const std::optional<Error>& failure) {
  std::uint64_t* word = nullptr;
  {
    const std::lock_guard lock(world.heap_mutex());
    word = static_cast<std::uint64_t*>(world.allocate(sizeof mine, alignof(std::uint64_t)));
  }
  if (!word)
    throw Error(ExitCode::unavailable, "shmemctl_moe_create", "compare the ranks' configurations",
                "there is no room in the symmetric heap", "raise SHMEMCTL_SYMMETRIC_SIZE");
  *word = failure ? 0 : mine;
  world.collectives.barrier(team_world);
  int absent = -1, other = -1;
  for (int pe = world.rma.n_pes(); pe-- > 0;) {
    std::uint64_t theirs = 0;
    world.rma.get(&theirs, word, sizeof theirs, pe);
    if (theirs == 0)
      absent = pe;
    else if (theirs != mine)
      other = pe;
  }
  {
    const std::lock_guard lock(world.heap_mutex());
    world.free(word);
  }
  if (failure)
    throw Error(*failure);
  if (absent >= 0)
    throw api::wrong_use(
        "shmemctl_moe_create", "create an exchange",
        fmt::format("PE {} has refused its arguments; its own error says why", absent),
        fmt::format("read shmemctl_moe_error() on PE {}", absent));
  if (other >= 0)
    throw api::wrong_use("shmemctl_moe_create", "create an exchange",
                         fmt::format("PE {} has another configuration, or its workspace at another "
                                     "place of the symmetric heap",
                                     other),
                         "pass the same on all PEs");
}

/// Offset of the workspace in the GPU's heap. Throws Error (usage) if it is elsewhere or not
/// aligned.
std::size_t workspace_offset(const void* workspace, std::size_t size_bytes, const PeGpu& gpu) {
  const DeviceJob job = gpu.job();
  const auto into =
      reinterpret_cast<std::uintptr_t>(workspace) - reinterpret_cast<std::uintptr_t>(job.heap);
  if (!workspace || into >= job.heap_bytes || size_bytes > job.heap_bytes - into)
    throw api::wrong_use(
        "workspace", "",
        fmt::format("the {} bytes are not in the symmetric heap of the GPU", size_bytes),
        "pass what shmemx_gpu_malloc has returned for the size that "
        "shmemctl_moe_workspace_bytes says");
  if (into % 256 != 0)
    throw api::wrong_use("workspace", "", "it is not aligned to 256 bytes",
                         "pass what shmemx_gpu_malloc has returned");
  return into;
}

void require_aligned(const void* address, std::size_t alignment_bytes, const char* name) {
  if (!address || reinterpret_cast<std::uintptr_t>(address) % alignment_bytes != 0)
    throw api::wrong_use(name, "",
                         fmt::format("it is NULL, or not aligned to {} bytes", alignment_bytes),
                         "pass device memory, as cudaMalloc returns it");
}

moe::Phases phases_of(int halves) {
  static_assert(static_cast<int>(moe::Phases::send) == SHMEMCTL_MOE_SEND &&
                static_cast<int>(moe::Phases::receive) == SHMEMCTL_MOE_RECEIVE);
  chosen("halves", halves, SHMEMCTL_MOE_RECEIVE);
  return static_cast<moe::Phases>(halves);
}

void require_mode(const moe::Exchange& exchange, moe::Mode mode, const char* call) {
  if (exchange.config().mode != mode)
    throw api::wrong_use(call, "",
                         fmt::format("the exchange is for {}", exchange.config().is_low_latency()
                                                                   ? "low latency"
                                                                   : "high throughput"),
                         "use the calls of its mode");
}

/// The addresses that kernels load from. Throws Error (usage) if one is NULL or not aligned.
moe::TokenInput input_of(const shmemctl_moe_tokens_t& tokens, const moe::ExchangeConfig& config) {
  if (tokens.num_tokens > 0) {
    require_aligned(tokens.values, 16, "values");
    require_aligned(tokens.experts, alignof(std::int32_t), "experts");
    require_aligned(tokens.weights, alignof(float), "weights");
    if (config.format == moe::Format::fp8 && !config.is_low_latency())
      require_aligned(tokens.scales, alignof(float), "scales");
  }
  return {tokens.num_tokens, static_cast<const std::byte*>(tokens.values), tokens.scales,
          tokens.experts, tokens.weights};
}

moe::CombineOutput output_of(const shmemctl_moe_result_t& result, const moe::ExchangeConfig& config,
                             std::int32_t tokens) {
  if (tokens > 0) {
    require_aligned(result.values, 16, "values of the result");
    if (config.combined_weights)
      require_aligned(result.weights, alignof(float), "weights of the result");
    if (result.bias)
      require_aligned(result.bias, 16, "bias");
  }
  moe::CombineOutput output;
  output.tokens = tokens;
  output.bias = static_cast<const std::uint16_t*>(result.bias);
  output.results = static_cast<std::uint16_t*>(result.values);
  output.combined_weights = config.combined_weights ? result.weights : nullptr;
  return output;
}

/// The number of tokens for which the plan was made. Throws Error (usage) if it was not made.
std::int32_t tokens_of(const shmemctl_moe_plan& plan, const char* call, const char* before) {
  if (!plan.tokens)
    throw api::wrong_use(call, "", "its plan has not been made",
                         fmt::format("call {} first", before));
  return *plan.tokens;
}
void require_tokens(std::int32_t given, std::int32_t planned) {
  if (given != planned)
    throw api::wrong_use("num_tokens", "",
                         fmt::format("it is {}, and the plan is for {} tokens", given, planned),
                         "pass the tokens whose experts the plan was made for");
}

moe::Direction direction_of(int direction) {
  return chosen("direction", direction) ? moe::Direction::combine : moe::Direction::dispatch;
}

/// The members of the C struct. It has no `in_place`, because programs find the rows of their own
/// rank among the received rows.
struct SettingMember {
  std::int32_t shmemctl_moe_settings_t::*member;
  std::optional<std::int32_t> moe::Settings::*value;
};
constexpr SettingMember setting_members[] = {
    {&shmemctl_moe_settings_t::sms, &moe::Settings::sms},
    {&shmemctl_moe_settings_t::warps, &moe::Settings::warps},
    {&shmemctl_moe_settings_t::stages, &moe::Settings::stages},
    {&shmemctl_moe_settings_t::kept, &moe::Settings::kept},
    {&shmemctl_moe_settings_t::self_sms, &moe::Settings::self_sms},
    {&shmemctl_moe_settings_t::chunk_bytes, &moe::Settings::chunk_bytes},
    {&shmemctl_moe_settings_t::chunk_rows, &moe::Settings::chunk_rows}};

/// Copies the members that the program's header has.
template <class T>
void give(const T& all, T& to) {
  const std::size_t size_bytes = to.struct_bytes;
  std::memcpy(&to, &all, size_bytes);
  to.struct_bytes = size_bytes;
}

shmemctl_moe_received_t received_of(const shmemctl_moe_plan& plan) {
  const moe::Exchange& exchange = plan.exchange();
  const moe::ExchangeConfig& config = exchange.config();
  const moe::ExchangeLayout& layout = exchange.layout();
  const moe::PlanLayout& own = exchange.plan_layout();
  const moe::Shape& shape = config.shape;
  const moe::MetadataLayout record(shape, config.scales());
  const auto of_plan = [&](const moe::GpuRegion& region) {
    return reinterpret_cast<const std::int32_t*>(plan.memory + region.offset);
  };
  shmemctl_moe_received_t all = SHMEMCTL_MOE_RECEIVED_INIT;
  all.me = plan.of.gpu.job().pe;
  all.n = shape.n_ranks;
  all.num_local_experts = shape.local_experts();
  all.max_tokens = shape.max_tokens;
  all.rows = exchange.at<std::byte>(config.by_expert ? layout.packed_rows : layout.rows);
  all.row_bytes = static_cast<std::size_t>(shape.value_bytes(config.format));
  all.records =
      exchange.at<std::uint32_t>(config.by_expert ? layout.packed_records : layout.records);
  all.record_words = record.words();
  all.scale_words = record.scale_words;
  all.experts_at = record.experts();
  all.weights_at = record.weights();
  all.source_at = record.source();
  all.token_at = record.token();
  all.num_topk = shape.top_k;
  all.outputs_per_row = config.by_expert ? 1 : config.outputs_per_row();
  all.outputs = exchange.at<std::byte>(layout.outputs);
  all.output_row_bytes = static_cast<std::size_t>(shape.hidden) * sizeof(std::uint16_t);
  all.output_weights =
      config.combined_weights ? exchange.at<float>(layout.output_weights) : nullptr;
  all.counts = of_plan(own.counts);
  if (config.by_expert) {
    all.expert_counts = of_plan(own.packed_counts);
    all.expert_offsets = of_plan(own.packed_offsets);
  } else if (!config.is_low_latency()) {
    all.expert_counts = of_plan(own.expert_counts);
  }
  if (config.is_low_latency()) {
    all.dispatches = &exchange.at<moe::LowLatencyFlags>(layout.flags)->received;
    all.half_rows = config.by_expert ? 0 : shape.max_rows();
  }
  return all;
}

} // namespace

extern "C" {

const char* shmemctl_moe_error(void) {
  return last_error.message.c_str();
}

const char* shmemctl_moe_fix(void) {
  return last_error.fix.c_str();
}

int shmemctl_moe_workspace_bytes(const shmemctl_moe_config_t* config, size_t* size_bytes) {
  return returned([&](const World& world, const PeGpu& gpu) {
    const Checked all = checked(config, world, gpu);
    require(size_bytes, "size_bytes") = moe::ExchangeLayout(all.config, all.path).size_bytes;
  });
}

int shmemctl_moe_plan_bytes(const shmemctl_moe_config_t* config, size_t* size_bytes) {
  return returned([&](const World& world, const PeGpu& gpu) {
    const Checked all = checked(config, world, gpu);
    require(size_bytes, "size_bytes") = moe::PlanLayout(all.config, all.path).size_bytes;
  });
}

int shmemctl_moe_create(const shmemctl_moe_config_t* config, void* workspace, shmemctl_moe_t* moe) {
  return returned([&](World& world, PeGpu& gpu) {
    // A rank whose arguments are wrong takes part, too, because the others would wait for it.
    std::optional<Error> failure;
    Checked all;
    std::size_t size_bytes = 0;
    std::uint64_t mine = 1;
    try {
      gpu.check();
      require(moe, "moe") = nullptr;
      all = checked(config, world, gpu);
      size_bytes = moe::ExchangeLayout(all.config, all.path).size_bytes;
      mine = hash_of(all, workspace_offset(workspace, size_bytes, gpu));
    } catch (const Error& error) {
      failure = error;
    }
    require_agreement(world, mine, failure);
    auto* const memory = static_cast<std::byte*>(workspace);
    gpu.fill(memory, 0, size_bytes);
    world.collectives.barrier(team_world); // no rank writes into memory that is not cleared yet
    *moe = new shmemctl_moe_exchange{gpu, moe::make_exchange(gpu, memory, all.config, all.path)};
  });
}

int shmemctl_moe_destroy(shmemctl_moe_t moe) {
  if (!moe)
    return SHMEMCTL_MOE_OK;
  return returned([&](World&, PeGpu& gpu) {
    shmemctl_moe_exchange& found = require_of(moe, gpu);
    if (found.plans > 0)
      throw api::wrong_use("shmemctl_moe_destroy", "",
                           fmt::format("plans not destroyed: {}", found.plans),
                           "destroy the plans first");
    delete moe;
  });
}

int shmemctl_moe_plan_create(shmemctl_moe_t moe, void* memory, shmemctl_moe_plan_t* plan) {
  return returned([&](World&, PeGpu& gpu) {
    shmemctl_moe_exchange& of = require_of(moe, gpu);
    require(plan, "plan") = nullptr;
    require_aligned(memory, 256, "memory of the plan");
    *plan = new shmemctl_moe_plan{of, static_cast<std::byte*>(memory)};
    ++of.plans;
  });
}

int shmemctl_moe_plan_destroy(shmemctl_moe_plan_t plan) {
  if (!plan)
    return SHMEMCTL_MOE_OK;
  return returned([&](World&, PeGpu& gpu) {
    --require_of(plan, gpu).of.plans;
    delete plan;
  });
}

int shmemctl_moe_cast(shmemctl_moe_t moe, int32_t num_tokens, const void* values, void* casts,
                      float* scales, shmemctl_moe_stream_t stream) {
  return returned([&](World&, PeGpu& gpu) {
    const moe::Exchange& exchange = *require_of(moe, gpu).exchange;
    const moe::ExchangeConfig& config = exchange.config();
    if (config.format != moe::Format::fp8)
      throw api::wrong_use("shmemctl_moe_cast", "", "the exchange has BF16 rows",
                           "make it for SHMEMCTL_MOE_FP8");
    if (num_tokens < 0)
      throw api::wrong_use("num_tokens", "", "it is negative", "pass 0 or more");
    if (num_tokens == 0)
      return;
    require_aligned(values, 16, "values");
    require_aligned(casts, 16, "casts");
    require_aligned(scales, alignof(float), "scales");
    gpu.check();
    const std::string failure = moe::launch_cast(
        {config.shape.hidden, num_tokens, static_cast<const std::uint16_t*>(values),
         static_cast<std::uint8_t*>(casts), scales, config.power_scales, moe::shared_sms(gpu)},
        stream);
    if (!failure.empty())
      throw Error(ExitCode::unavailable, "shmemctl_moe_cast", "launch a MoE kernel", failure,
                  "run shmemctl doctor to check the driver");
  });
}

int shmemctl_moe_plan_make(shmemctl_moe_plan_t plan, int32_t num_tokens, const int32_t* experts,
                           shmemctl_moe_stream_t stream) {
  return returned([&](World&, PeGpu& gpu) {
    shmemctl_moe_plan& found = require_of(plan, gpu);
    require_mode(found.exchange(), moe::Mode::high_throughput, "shmemctl_moe_plan_make");
    if (num_tokens > 0)
      require_aligned(experts, alignof(std::int32_t), "experts");
    gpu.check();
    found.exchange().make_plan(found.memory, num_tokens, experts, stream);
    found.tokens = num_tokens;
  });
}

int shmemctl_moe_dispatch(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                          shmemctl_moe_stream_t stream) {
  return returned([&](World&, PeGpu& gpu) {
    const shmemctl_moe_plan& found = require_of(plan, gpu);
    require_mode(found.exchange(), moe::Mode::high_throughput, "shmemctl_moe_dispatch");
    const shmemctl_moe_tokens_t given = taken(tokens);
    require_tokens(given.num_tokens,
                   tokens_of(found, "shmemctl_moe_dispatch", "shmemctl_moe_plan_make"));
    gpu.check();
    found.exchange().dispatch(found.memory, input_of(given, found.exchange().config()),
                              moe::Phases::both, stream);
  });
}

int shmemctl_moe_combine(shmemctl_moe_plan_t plan, const shmemctl_moe_result_t* result,
                         shmemctl_moe_stream_t stream) {
  return returned([&](World&, PeGpu& gpu) {
    const shmemctl_moe_plan& found = require_of(plan, gpu);
    require_mode(found.exchange(), moe::Mode::high_throughput, "shmemctl_moe_combine");
    const std::int32_t count = tokens_of(found, "shmemctl_moe_combine", "shmemctl_moe_plan_make");
    gpu.check();
    found.exchange().combine(found.memory,
                             output_of(taken(result), found.exchange().config(), count),
                             moe::Phases::both, stream);
  });
}

int shmemctl_moe_low_latency_dispatch(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                                      int halves, shmemctl_moe_stream_t stream) {
  return returned([&](World&, PeGpu& gpu) {
    shmemctl_moe_plan& found = require_of(plan, gpu);
    moe::Exchange& exchange = found.exchange();
    require_mode(exchange, moe::Mode::low_latency, "shmemctl_moe_low_latency_dispatch");
    const moe::Phases phases = phases_of(halves);
    const moe::TokenInput input = input_of(taken(tokens), exchange.config());
    if (phases == moe::Phases::receive && found.tokens)
      require_tokens(input.tokens, *found.tokens);
    gpu.check();
    exchange.dispatch(found.memory, input, phases, stream);
    found.tokens = input.tokens;
    if (exchange.config().by_expert && phases != moe::Phases::send)
      exchange.pack(found.memory, stream);
  });
}

int shmemctl_moe_low_latency_combine(shmemctl_moe_plan_t plan, const shmemctl_moe_tokens_t* tokens,
                                     const shmemctl_moe_result_t* result, int halves,
                                     shmemctl_moe_stream_t stream) {
  return returned([&](World&, PeGpu& gpu) {
    const shmemctl_moe_plan& found = require_of(plan, gpu);
    moe::Exchange& exchange = found.exchange();
    require_mode(exchange, moe::Mode::low_latency, "shmemctl_moe_low_latency_combine");
    const moe::Phases phases = phases_of(halves);
    const shmemctl_moe_tokens_t given = taken(tokens);
    require_tokens(given.num_tokens, tokens_of(found, "shmemctl_moe_low_latency_combine",
                                               "shmemctl_moe_low_latency_dispatch"));
    if (given.num_tokens > 0) {
      require_aligned(given.experts, alignof(std::int32_t), "experts");
      require_aligned(given.weights, alignof(float), "weights");
    }
    moe::CombineOutput output = output_of(taken(result), exchange.config(), given.num_tokens);
    output.experts = given.experts;
    output.weights = given.weights;
    if (output.bias)
      throw api::wrong_use("bias", "", "low latency adds none", "leave it NULL");
    gpu.check();
    exchange.combine(found.memory, output, phases, stream);
  });
}

int shmemctl_moe_low_latency_drop(shmemctl_moe_t moe) {
  return returned([&](World&, PeGpu& gpu) {
    moe::Exchange& exchange = *require_of(moe, gpu).exchange;
    require_mode(exchange, moe::Mode::low_latency, "shmemctl_moe_low_latency_drop");
    exchange.drop();
  });
}

int shmemctl_moe_masked(shmemctl_moe_t moe, int32_t* pes, int32_t* count) {
  return returned([&](World&, PeGpu& gpu) {
    const std::vector<std::int32_t> masked = require_of(moe, gpu).exchange->masked();
    require(count, "count") = static_cast<std::int32_t>(masked.size());
    if (!masked.empty())
      std::copy(masked.begin(), masked.end(), &require(pes, "pes"));
  });
}

int shmemctl_moe_received(shmemctl_moe_plan_t plan, shmemctl_moe_received_t* received) {
  return returned([&](World&, PeGpu& gpu) {
    const shmemctl_moe_plan& found = require_of(plan, gpu);
    require_size(require(received, "shmemctl_moe_received_t"), "shmemctl_moe_received_t");
    give(received_of(found), *received);
  });
}

int shmemctl_moe_counts(shmemctl_moe_plan_t plan, shmemctl_moe_stream_t stream, int32_t* rows,
                        int32_t* expert_counts) {
  return returned([&](World&, PeGpu& gpu) {
    const shmemctl_moe_plan& found = require_of(plan, gpu);
    tokens_of(found, "shmemctl_moe_counts", "shmemctl_moe_plan_make, or a low-latency dispatch");
    const shmemctl_moe_received_t all = received_of(found);
    const auto n = static_cast<std::size_t>(all.n);
    const bool low = found.exchange().config().is_low_latency();
    if (expert_counts && !all.expert_counts)
      throw api::wrong_use("expert_counts", "", "rows by source are not counted by expert",
                           "pass NULL, or make the exchange for SHMEMCTL_MOE_BY_EXPERT");
    gpu.wait(stream, "shmemctl_moe_counts");
    gpu.check();
    std::vector<std::int32_t> counts(low ? n : n * n);
    gpu.copy(counts.data(), all.counts, counts.size() * sizeof counts[0]);
    std::int32_t sum = 0;
    for (std::size_t source = 0; source < n; ++source)
      sum += std::max(0, counts[low ? source : source * n + static_cast<std::size_t>(all.me)]);
    require(rows, "rows") = sum;
    if (expert_counts)
      gpu.copy(expert_counts, all.expert_counts,
               static_cast<std::size_t>(all.num_local_experts) * sizeof *expert_counts);
  });
}

int shmemctl_moe_wait(shmemctl_moe_t moe, shmemctl_moe_stream_t stream) {
  return returned([&](World&, PeGpu& gpu) {
    require_of(moe, gpu);
    gpu.wait(stream, "shmemctl_moe_wait");
    gpu.check();
  });
}

int shmemctl_moe_set_settings(shmemctl_moe_t moe, int direction,
                              const shmemctl_moe_settings_t* settings) {
  return returned([&](World&, PeGpu& gpu) {
    shmemctl_moe_exchange& found = require_of(moe, gpu);
    const auto user = taken<shmemctl_moe_settings_t>(settings, "shmemctl_moe_settings_t",
                                                     SHMEMCTL_MOE_SETTINGS_INIT);
    const moe::Direction which = direction_of(direction);
    moe::Settings given;
    for (const SettingMember& setting : setting_members)
      if (const std::int32_t value = user.*setting.member; value != -1)
        given.*setting.value = value;
    if (const std::string problem = found.exchange->gpu_settings().misfit(which, given);
        !problem.empty())
      throw api::wrong_use(std::string(moe::to_string(which)) + " settings", "", problem,
                           "pass -1 for what is to be chosen for the shape");
    found.given.of(which) = given;
    found.exchange->use(found.given);
  });
}

int shmemctl_moe_get_settings(shmemctl_moe_t moe, int direction,
                              shmemctl_moe_settings_t* settings) {
  return returned([&](World&, PeGpu& gpu) {
    const shmemctl_moe_exchange& found = require_of(moe, gpu);
    require_size(require(settings, "shmemctl_moe_settings_t"), "shmemctl_moe_settings_t");
    const moe::Settings chosen_ones = found.exchange->settings(direction_of(direction));
    shmemctl_moe_settings_t all = SHMEMCTL_MOE_SETTINGS_INIT;
    for (const SettingMember& setting : setting_members)
      all.*setting.member = (chosen_ones.*setting.value).value_or(-1);
    give(all, *settings);
  });
}

} // extern "C"
