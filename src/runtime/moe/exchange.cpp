#include "src/runtime/moe/exchange.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/moe/cast.h"
#include "kernels/moe/high_throughput_internode.h"
#include "kernels/moe/low_latency_internode.h"

namespace shmemctl::moe {

std::int32_t shared_sms(const PeGpu& gpu) {
  return std::max(1, gpu.info().multiprocessors / std::max(1, gpu.info().pes_on_device));
}

GpuSettings gpu_settings_of(const PeGpu& gpu, const ExchangeConfig& config, const MoePath& path) {
  return {config, shared_sms(gpu), path.node_ranks};
}

namespace {

/// The largest `hidden` for which a row fits into a block's shared memory; 0 if there is none.
std::int32_t max_hidden_of_kernels(const PeGpu& gpu, const ExchangeConfig& config,
                                   const MoePath& path) {
  const std::int32_t step = config.format == Format::fp8 ? channels_per_scale : hidden_step;
  ExchangeConfig one = config;
  std::int32_t holds = 0, too_many = config.shape.hidden / step;
  while (holds + 1 < too_many) {
    const std::int32_t middle = holds + (too_many - holds) / 2;
    one.shape.hidden = middle * step;
    (gpu_settings_of(gpu, one, path).holds_a_row() ? holds : too_many) = middle;
  }
  return holds * step;
}

Error wrong_call(const std::string& subject, const std::string& problem, const std::string& fix) {
  return Error(ExitCode::usage, subject, "", problem, fix);
}

} // namespace

std::optional<BrokenRule> exchange_broken_rule(const PeGpu& gpu, const ExchangeConfig& config,
                                               const MoePath& path) {
  const Shape& shape = config.shape;
  const auto at_most = [](const char* what, std::int32_t most, const std::string& why,
                          std::int32_t found, std::int32_t nearest) {
    return BrokenRule{what, fmt::format("must be {} at most{}", most, why),
                      fmt::format("{}", found), fmt::format("{}", nearest)};
  };
  const bool low = config.is_low_latency();
  if (!low && path.node_ranks > max_ranks_of_kernels)
    return at_most(
        "PEs of a node", max_ranks_of_kernels,
        " where kernels hand rows on; with --flat (or node_ranks 0) they go straight to their rank",
        path.node_ranks, max_ranks_of_kernels);
  if (config.by_expert && shape.local_experts() > max_packed_experts)
    return at_most("num-experts", max_packed_experts * shape.n_ranks,
                   fmt::format(": kernels pack rows of {} experts of a rank", max_packed_experts),
                   shape.n_experts, max_packed_experts * shape.n_ranks);
  if (low && shape.max_tokens > max_rows_of_block)
    return at_most("num-tokens", max_rows_of_block,
                   " in low latency by kernels, which count a block's rows in 16 bits",
                   shape.max_tokens, max_rows_of_block);
  const GpuSettings settings = gpu_settings_of(gpu, config, path);
  if (const std::int32_t most = settings.max_experts() / shape.n_ranks * shape.n_ranks;
      shape.n_experts > most)
    return at_most("num-experts", most, ": notify counts them in a block's shared memory",
                   shape.n_experts, most);
  if (!settings.holds_a_row()) {
    const std::int32_t most = max_hidden_of_kernels(gpu, config, path);
    return at_most("hidden", most,
                   fmt::format(" with {} ranks: a block's shared memory has to hold a row and its "
                               "records",
                               shape.n_ranks),
                   shape.hidden, most);
  }
  const int min_sms = settings.min_num_sms(), max_sms = std::max(min_sms, shared_sms(gpu));
  if (config.num_sms > max_sms)
    return at_most("num-sms", max_sms, fmt::format(", a PE's share of the {}", gpu.info().name),
                   config.num_sms, max_sms);
  if (config.num_sms > 0 && config.num_sms < min_sms)
    return BrokenRule{"num-sms",
                      fmt::format("must be {} at least: the blocks of {} have different parts",
                                  min_sms, low ? "a low-latency dispatch" : "notify"),
                      fmt::format("{}", config.num_sms), fmt::format("{}", min_sms)};
  return std::nullopt;
}

std::string exchange_cannot(const PeGpu& gpu, const ExchangeConfig& config, const MoePath& path) {
  if (config.combined_weights && config.is_low_latency())
    return "low latency applies the weights, and does not send them back";
  return unreachable_rank(path, gpu.job().pe, gpu.paths_by_pe());
}

HighThroughputMemory Exchange::high_throughput() const {
  return {at<CallFlags>(layout_.flags), at<std::uint64_t>(layout_.expert_count_flags),
          at<std::byte>(layout_.rows), at<std::byte>(layout_.records),
          at<std::byte>(layout_.outputs)};
}

LowLatencyMemory Exchange::low_latency() const {
  return {at<LowLatencyFlags>(layout_.flags), at<std::byte>(layout_.rows),
          at<std::byte>(layout_.records), at<std::byte>(layout_.outputs)};
}

PackedMemory Exchange::packed(std::byte* plan) const {
  if (!config_.by_expert)
    return {};
  PackedMemory all = {at<std::byte>(layout_.packed_rows), at<std::byte>(layout_.packed_records),
                      in<std::int32_t>(plan, plan_layout_.packed_counts),
                      in<std::int32_t>(plan, plan_layout_.packed_offsets),
                      at<std::int32_t>(layout_.output_rows)};
  if (path_.is_internode())
    all.output_rows_by_slot = in<std::int32_t>(plan, plan_layout_.output_rows_by_slot);
  return all;
}

void Exchange::launched(const std::string& failure) const {
  if (!failure.empty())
    throw Error(ExitCode::unavailable, "PE " + std::to_string(gpu_.job().pe), "launch a MoE kernel",
                failure,
                "run shmemctl doctor to check the driver, or let the kernels use fewer SMs");
}

void Exchange::require_tokens(std::int32_t tokens) const {
  if (tokens < 0 || tokens > config_.shape.max_tokens)
    throw wrong_call(
        fmt::format("{} tokens", tokens),
        fmt::format("the exchange takes 0 to {} from each rank", config_.shape.max_tokens),
        "make the exchange with a larger max_tokens");
}

void Exchange::require_phases(Phases phases) const {
  if (phases != Phases::both && !config_.is_low_latency())
    throw wrong_call("send and receive halves", "high throughput supports whole calls only",
                     "pass SHMEMCTL_MOE_BOTH, or make the exchange for low latency");
}

void Exchange::require_order(const char* call, const std::string& refused) const {
  if (!refused.empty())
    throw wrong_call(call, refused,
                     "call dispatch and combine in turn, each send before its receive");
}

void Exchange::make_plan(std::byte* plan, std::int32_t tokens, const std::int32_t* experts,
                         void* stream) {
  if (config_.is_low_latency())
    throw wrong_call("plan", "in low latency each dispatch makes its own plan",
                     "omit this call, or make the exchange for high throughput");
  require_tokens(tokens);
  launched(launch_plan(plan, tokens, experts, stream));
}

void Exchange::dispatch(std::byte* plan, const TokenInput& input, Phases phases, void* stream) {
  require_tokens(input.tokens);
  require_phases(phases);
  if (config_.is_low_latency())
    require_order("dispatch", calls_.refuse_dispatch(phases));
  launched(launch_rows(plan, input, phases, stream));
  // The next dispatch receives into the other half of the memory.
  if (config_.is_low_latency() && phases != Phases::send)
    ++dispatches_;
}

void Exchange::pack(std::byte* plan, void* stream) {
  if (!config_.by_expert)
    throw wrong_call("rows by expert", "the exchange orders rows by source rank",
                     "make the exchange with the layout SHMEMCTL_MOE_BY_EXPERT");
  launched(launch_pack(gpu_.job(),
                       {config_.shape, config_.scales(), low_latency(),
                        in<std::int32_t>(plan, plan_layout_.counts), packed(plan),
                        sms(Direction::dispatch)},
                       stream));
}

void Exchange::combine(std::byte* plan, const CombineOutput& output, Phases phases, void* stream) {
  require_tokens(output.tokens);
  require_phases(phases);
  if (config_.is_low_latency())
    require_order("combine", calls_.refuse_combine(phases));
  launched(launch_sums(plan, output, phases, stream));
}

std::vector<std::int32_t> Exchange::masked() const {
  std::vector<std::int32_t> masked;
  if (!config_.is_low_latency())
    return masked;
  LowLatencyState flags;
  gpu_.copy(&flags, at<std::byte>(layout_.flags), sizeof flags);
  for (std::int32_t rank = 0; rank < config_.shape.n_ranks; ++rank)
    if (flags.masked[rank] != 0)
      masked.push_back(rank);
  return masked;
}

WaitSums Exchange::waits(Direction direction) const {
  const auto n = static_cast<std::size_t>(config_.shape.n_ranks);
  WaitSums sums{std::vector<std::uint64_t>(n), std::vector<std::uint64_t>(n)};
  if (!config_.is_low_latency()) {
    CallFlags flags;
    gpu_.copy(&flags, at<std::byte>(layout_.flags), sizeof flags);
    std::copy_n(flags.wait_ns[0], n, sums.until_begun.begin());
    std::copy_n(flags.wait_ns[1], n, sums.until_done.begin());
    return sums;
  }
  LowLatencyState flags;
  gpu_.copy(&flags, at<std::byte>(layout_.flags), sizeof flags);
  const bool combines = direction == Direction::combine;
  for (std::size_t rank = 0; rank < n; ++rank) {
    sums.until_begun[rank] = combines ? flags.wait_ns[1][rank] : flags.begin_wait_ns[rank];
    sums.until_done[rank] = combines ? 0 : flags.wait_ns[0][rank] - flags.begin_wait_ns[rank];
  }
  return sums;
}

namespace {

/// For jobs in which the memory of all ranks is mapped: high_throughput.h and low_latency.h.
class MappedExchange : public Exchange {
public:
  MappedExchange(PeGpu& gpu, std::byte* memory, const ExchangeConfig& config, const MoePath& path,
                 std::size_t guard_bytes)
      : Exchange(gpu, memory, config, path, guard_bytes) {}

private:
  Plan plan_in(std::byte* plan) const {
    return {in<std::int32_t>(plan, plan_layout_.slots), in<std::int32_t>(plan, plan_layout_.bases),
            in<std::int32_t>(plan, plan_layout_.counts),
            in<std::int32_t>(plan, plan_layout_.expert_counts)};
  }
  std::string launch_plan(std::byte* plan, std::int32_t tokens, const std::int32_t* experts,
                          void* stream) override {
    return launch_notify(
        gpu_.job(), {config_.shape, high_throughput(), plan_in(plan), tokens, experts, nullptr},
        stream);
  }
  std::string launch_rows(std::byte* plan, const TokenInput& input, Phases phases,
                          void* stream) override {
    const Settings chosen = settings(Direction::dispatch);
    if (!config_.is_low_latency())
      return launch_dispatch(gpu_.job(),
                             {config_.shape, config_.format, high_throughput(), plan_in(plan),
                              input.tokens, input.values, input.scales, input.experts,
                              input.weights, tuning_of(chosen), chosen.in_place.value_or(0) > 0},
                             stream);
    return launch_low_latency_dispatch(
        gpu_.job(),
        {config_.shape, config_.scales(), low_latency(), input.tokens,
         reinterpret_cast<const std::uint16_t*>(input.values), input.experts, input.weights,
         in<std::int32_t>(plan, plan_layout_.slots), in<std::int32_t>(plan, plan_layout_.counts),
         phases, *chosen.sms, rank_timeout_ns()},
        calls_, stream);
  }
  std::string launch_sums(std::byte* plan, const CombineOutput& output, Phases phases,
                          void* stream) override {
    const Settings chosen = settings(Direction::combine);
    if (!config_.is_low_latency())
      return launch_combine(gpu_.job(),
                            {config_.shape, high_throughput(), plan_in(plan), output.tokens,
                             output.bias, output.results, tuning_of(chosen), *chosen.chunk_bytes,
                             output_weights(), output.combined_weights},
                            stream);
    return launch_low_latency_combine(
        gpu_.job(),
        {config_.shape, low_latency(), config_.combine == Combine::weighted, output.tokens,
         output.experts, output.weights, in<std::int32_t>(plan, plan_layout_.slots), output.results,
         phases, tuning_of(chosen), *chosen.chunk_bytes, rank_timeout_ns(),
         config_.by_expert ? at<std::int32_t>(layout_.output_rows) : nullptr},
        calls_, stream);
  }
};

/// High throughput over a network: high_throughput_internode.h.
class InternodeExchange : public Exchange {
public:
  InternodeExchange(PeGpu& gpu, std::byte* memory, const ExchangeConfig& config,
                    const MoePath& path, std::size_t guard_bytes)
      : Exchange(gpu, memory, config, path, guard_bytes) {}

  /// This rank waits only for the ranks of its node and of its rail; the sums of other ranks are 0.
  WaitSums waits(Direction) const override {
    const auto n = static_cast<std::size_t>(config_.shape.n_ranks);
    WaitSums sums{std::vector<std::uint64_t>(n), std::vector<std::uint64_t>(n)};
    CallFlags flags;
    RailFlags rails;
    gpu_.copy(&flags, at<std::byte>(layout_.flags), sizeof flags);
    gpu_.copy(&rails, at<std::byte>(layout_.rails), sizeof rails);
    const InternodeShape shape = internode_shape(config_, path_);
    const std::int32_t me = gpu_.job().pe;
    for (std::size_t what = 0; what < 2; ++what) {
      std::vector<std::uint64_t>& by_rank = what == 0 ? sums.until_begun : sums.until_done;
      for (std::int32_t local = 0; local < shape.node_ranks; ++local)
        by_rank[static_cast<std::size_t>(shape.first_rank_of_node(me) + local)] +=
            flags.wait_ns[what][local];
      for (std::int32_t node = 0; node < shape.n_nodes(); ++node)
        by_rank[static_cast<std::size_t>(shape.rail(me, node))] += rails.wait_ns[what][node];
    }
    return sums;
  }

private:
  InternodeShape shape_of(Direction direction) const {
    InternodeShape shape = internode_shape(config_, path_);
    shape.chunk_rows = *settings(direction).chunk_rows;
    return shape;
  }
  InternodeMemory memory() const {
    return {high_throughput(),
            at<RailFlags>(layout_.rails),
            at<std::int32_t>(layout_.counts_out),
            at<std::int32_t>(layout_.counts_in),
            at<std::uint64_t>(layout_.row_signals),
            at<std::uint64_t>(layout_.sum_signals),
            at<std::byte>(layout_.rows_out),
            at<std::byte>(layout_.rows_in),
            at<std::byte>(layout_.sums_out),
            at<std::byte>(layout_.sums_in)};
  }
  InternodePlan plan_in(std::byte* plan) const {
    return {in<std::int32_t>(plan, plan_layout_.slots),
            in<std::int32_t>(plan, plan_layout_.counts),
            in<std::int32_t>(plan, plan_layout_.all_bases),
            in<std::int32_t>(plan, plan_layout_.expert_counts),
            in<std::int32_t>(plan, plan_layout_.crossing_slots),
            in<std::int32_t>(plan, plan_layout_.crossing_tokens),
            in<std::int32_t>(plan, plan_layout_.crossing_counts)};
  }
  std::string launch_plan(std::byte* plan, std::int32_t tokens, const std::int32_t* experts,
                          void* stream) override {
    return launch_internode_notify(
        gpu_.job(), {internode_shape(config_, path_), memory(), plan_in(plan), tokens, experts},
        stream);
  }
  std::string launch_rows(std::byte* plan, const TokenInput& input, Phases /*has none*/,
                          void* stream) override {
    return launch_internode_dispatch(gpu_.job(),
                                     {shape_of(Direction::dispatch), memory(), plan_in(plan),
                                      input.tokens, input.values, input.scales, input.experts,
                                      input.weights, sms(Direction::dispatch)},
                                     stream);
  }
  std::string launch_sums(std::byte* plan, const CombineOutput& output, Phases /*has none*/,
                          void* stream) override {
    return launch_internode_combine(
        gpu_.job(),
        {shape_of(Direction::combine), memory(), plan_in(plan), output.tokens, output.bias,
         output.results, sms(Direction::combine), output_weights(), output.combined_weights},
        stream);
  }
};

/// Low latency over a network: low_latency_internode.h.
class LowLatencyInternodeExchange : public Exchange {
public:
  LowLatencyInternodeExchange(PeGpu& gpu, std::byte* memory, const ExchangeConfig& config,
                              const MoePath& path, std::size_t guard_bytes)
      : Exchange(gpu, memory, config, path, guard_bytes) {}

private:
  LowLatencyInternodeMemory memory() const {
    return {low_latency(),
            at<std::uint64_t>(layout_.sent_row_signals),
            at<std::uint64_t>(layout_.output_signals),
            at<std::byte>(layout_.rows_out),
            at<std::byte>(layout_.records_out),
            at<std::byte>(layout_.returned_outputs)};
  }
  std::string launch_plan(std::byte*, std::int32_t, const std::int32_t*, void*) override {
    return "low latency makes no plan ahead";
  }
  std::string launch_rows(std::byte* plan, const TokenInput& input, Phases phases,
                          void* stream) override {
    const bool casts = config_.format == Format::fp8;
    if (casts && phases != Phases::receive)
      if (std::string failure =
              launch_cast({config_.shape.hidden, input.tokens,
                           reinterpret_cast<const std::uint16_t*>(input.values),
                           at<std::uint8_t>(layout_.cast_rows), at<float>(layout_.cast_scales),
                           config_.power_scales, sms(Direction::dispatch)},
                          stream);
          !failure.empty())
        return failure;
    return launch_low_latency_internode_dispatch(
        gpu_.job(),
        {config_.shape, config_.scales(), memory(), input.tokens,
         casts ? at<std::byte>(layout_.cast_rows) : input.values, at<float>(layout_.cast_scales),
         input.experts, input.weights, in<std::int32_t>(plan, plan_layout_.slots),
         in<std::int32_t>(plan, plan_layout_.counts), phases, sms(Direction::dispatch),
         rank_timeout_ns()},
        calls_, stream);
  }
  std::string launch_sums(std::byte* plan, const CombineOutput& output, Phases phases,
                          void* stream) override {
    const PackedMemory by_expert = packed(plan);
    return launch_low_latency_internode_combine(
        gpu_.job(),
        {config_.shape, config_.scales(), memory(), config_.combine == Combine::weighted,
         output.tokens, output.experts, output.weights, in<std::int32_t>(plan, plan_layout_.slots),
         in<std::int32_t>(plan, plan_layout_.counts), output.results, phases,
         sms(Direction::combine), rank_timeout_ns(), by_expert.output_rows,
         by_expert.output_rows_by_slot},
        calls_, stream);
  }
};

} // namespace

std::unique_ptr<Exchange> make_exchange(PeGpu& gpu, std::byte* memory, const ExchangeConfig& config,
                                        const MoePath& path, std::size_t guard_bytes) {
  if (!path.is_internode())
    return std::make_unique<MappedExchange>(gpu, memory, config, path, guard_bytes);
  if (!path.is_low_latency())
    return std::make_unique<InternodeExchange>(gpu, memory, config, path, guard_bytes);
  return std::make_unique<LowLatencyInternodeExchange>(gpu, memory, config, path, guard_bytes);
}

} // namespace shmemctl::moe
