#include "src/runtime/moe/gpu_settings.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "kernels/moe/high_throughput.h"
#include "kernels/moe/high_throughput_internode.h"
#include "kernels/moe/low_latency.h"
#include "kernels/moe/pack.h"

namespace shmemctl::moe {

namespace {

constexpr int max_dispatch_warps = 32, max_combine_warps = 16, max_stages = 64, max_kept = 2;

/// An error text if a number is out of its range; otherwise "".
std::string out_of_range(const char* name, std::int32_t value, std::int32_t least,
                         std::int32_t most) {
  return value < least || value > most
             ? fmt::format("{} {} is not from {} to {}: take {}", name, value, least, most,
                           value < least ? least : most)
             : "";
}

std::string first_of(std::initializer_list<std::string> problems) {
  for (const std::string& problem : problems)
    if (!problem.empty())
      return problem;
  return "";
}

constexpr std::size_t max_bytes = max_shared_bytes - own_shared_bytes;

std::string too_large(std::size_t needed, const std::string& nearest) {
  return fmt::format("that takes {} bytes of a block's shared memory, which has {}: {}", needed,
                     max_bytes, nearest);
}

ReduceShape gathered(const ExchangeConfig& config, int rows, const Settings& all) {
  return {config.shape.max_tokens,
          config.shape.hidden * 2,
          rows,
          all.chunk_bytes.value_or(16),
          all.stages.value_or(1),
          nullptr,
          nullptr};
}

} // namespace

Tuning tuning_of(const Settings& settings) {
  Tuning tuning;
  tuning.sms = settings.sms.value_or(tuning.sms);
  tuning.warps = settings.warps.value_or(tuning.warps);
  tuning.stages = settings.stages.value_or(tuning.stages);
  tuning.kept = settings.kept.value_or(tuning.kept);
  tuning.self_sms = settings.self_sms.value_or(tuning.self_sms);
  return tuning;
}

int GpuSettings::min_sms(Direction direction) const {
  return is_low_latency() && direction == Direction::dispatch ? min_dispatch_blocks : 1;
}

int GpuSettings::min_num_sms() const {
  return is_low_latency() ? min_dispatch_blocks
         : is_internode() ? internode_notify_blocks
                          : notify_blocks;
}

int GpuSettings::own_sms(Direction direction) const {
  return config.num_sms > 0
             ? config.num_sms
             : std::max(min_sms(direction), is_low_latency() ? max_sms : std::min(24, max_sms));
}

std::int32_t GpuSettings::max_experts() const {
  const Shape& shape = config.shape;
  if (is_low_latency())
    return std::numeric_limits<std::int32_t>::max();
  std::int32_t counts = max_notified_experts;
  if (is_internode())
    counts = max_internode_experts({shape, config.format, node_ranks, 1, config.combined_weights});
  return counts / shape.n_ranks * shape.n_ranks;
}

/// Limited because a chunk is sent as one message, and messages of an HCA have a maximum size.
std::int32_t GpuSettings::max_chunk_rows() const {
  constexpr std::int32_t max_message_bytes = 1 << 30;
  const InternodeShape shape{config.shape, config.format, node_ranks, 1, config.combined_weights};
  return std::clamp(max_message_bytes / std::max(shape.crossing_bytes(), shape.sum_bytes()), 1,
                    std::max(1, config.shape.max_tokens));
}

DispatchArguments GpuSettings::dispatch(const Tuning& tuning) const {
  DispatchArguments arguments{};
  arguments.shape = config.shape;
  arguments.format = config.format;
  arguments.tuning = tuning;
  return arguments;
}

int GpuSettings::dispatch_stages() const {
  return static_cast<int>(max_bytes / dispatch_shared_bytes(dispatch({1, 1, 1})));
}

Settings GpuSettings::own_dispatch(const Settings& given) const {
  Settings own;
  own.sms = given.sms.value_or(own_sms(Direction::dispatch));
  if (is_low_latency())
    return own;
  Tuning chosen = dispatch_tuning(dispatch({}), *own.sms);
  if (given.stages && *given.stages > 0) {
    chosen.stages = *given.stages;
    chosen.warps = std::clamp(dispatch_stages() / chosen.stages, 1, 16);
    chosen.kept = chosen.stages > 1 ? 1 : 0;
  }
  own.warps = chosen.warps;
  own.stages = chosen.stages;
  own.kept = chosen.kept;
  own.self_sms = given.in_place.value_or(0) > 0 ? 0 : blocks_for_self(chosen, config.shape.n_ranks);
  return own;
}

Settings GpuSettings::own_combine(const Settings& given) const {
  Settings own;
  own.sms = given.sms.value_or(own_sms(Direction::combine));
  ReduceTuning chosen = is_low_latency()
                            ? low_latency_combine_tuning(config.shape, weighted(), *own.sms)
                            : combine_tuning(config.shape, *own.sms);
  if (given.warps || given.chunk_bytes) { // the rest follows from these
    chosen = reduce_tuning(rows(), config.shape.hidden * 2, *own.sms,
                           std::clamp(given.warps.value_or(chosen.tuning.warps), 1, 16),
                           std::max(16, given.chunk_bytes.value_or(chosen.chunk_bytes)));
    if (is_low_latency())
      chosen.tuning.stages = 1;
  }
  own.warps = chosen.tuning.warps;
  own.stages = chosen.tuning.stages;
  own.chunk_bytes = chosen.chunk_bytes;
  return own;
}

/// The default of chunk_rows makes messages of about 256 KiB if rows are long.
Settings GpuSettings::own_internode(Direction direction, const Settings& given) const {
  Settings own;
  own.sms = given.sms.value_or(own_sms(direction));
  if (has_chunks())
    own.chunk_rows = std::min(16, max_chunk_rows());
  return own;
}

Settings GpuSettings::complete(Direction direction, const Settings& given) const {
  return filled(given, is_internode()                    ? own_internode(direction, given)
                       : direction == Direction::combine ? own_combine(given)
                                                         : own_dispatch(given));
}

std::string GpuSettings::dispatch_invalid_reason(const Settings& all) const {
  if (is_low_latency())
    return "";
  const Tuning tuning = tuning_of(all);
  if (std::string problem = first_of(
          {out_of_range("warps", tuning.warps, 1, max_dispatch_warps),
           out_of_range("stages", tuning.stages, 1, max_stages),
           out_of_range("kept", tuning.kept, 0, std::min(max_kept, tuning.stages - 1)),
           out_of_range("self_sms", tuning.self_sms, 0, tuning.sms - 1),
           out_of_range("in_place", all.in_place.value_or(0), 0, 1),
           all.in_place.value_or(0) > 0 && tuning.self_sms > 0
               ? "no multiprocessor sends to this rank itself with in_place=1: take self_sms=0"
               : ""});
      !problem.empty())
    return problem;
  const std::size_t needed = dispatch_shared_bytes(dispatch(tuning));
  return needed > max_bytes
             ? too_large(needed, fmt::format("warps times stages may be {}", dispatch_stages()))
             : "";
}

std::string GpuSettings::combine_invalid_reason(const Settings& all) const {
  const int row_bytes = config.shape.hidden * 2;
  const std::int32_t chunk = *all.chunk_bytes;
  if (std::string problem = first_of({out_of_range("warps", *all.warps, 1, max_combine_warps),
                                      out_of_range("stages", *all.stages, 1, max_stages),
                                      out_of_range("chunk_bytes", chunk, 16, row_bytes)});
      !problem.empty())
    return problem;
  if (chunk % 16 != 0)
    return fmt::format("chunk_bytes {} is no multiple of 16: take {}", chunk, chunk / 16 * 16);
  const auto needed = [&](const Settings& some) {
    return reduce_shared_bytes(gathered(config, rows(), some), *some.warps,
                               is_low_latency() && weighted());
  };
  if (needed(all) <= max_bytes)
    return "";
  Settings nearest;
  nearest.warps = *all.warps;
  nearest.stages = *all.stages;
  nearest.chunk_bytes = chunk;
  while (*nearest.stages > 1 && needed(nearest) > max_bytes)
    --*nearest.stages;
  while (*nearest.warps > 1 && needed(nearest) > max_bytes)
    --*nearest.warps;
  while (*nearest.chunk_bytes > 16 && needed(nearest) > max_bytes)
    *nearest.chunk_bytes -= 16;
  return too_large(needed(all), "take " + to_text(nearest));
}

Settings GpuSettings::known(Direction direction) const {
  Settings all = complete(direction, {});
  if (direction == Direction::dispatch && !is_low_latency() && !is_internode())
    all.in_place = 0;
  return all;
}

std::string GpuSettings::misfit(Direction direction, const Settings& given) const {
  const Settings all = complete(direction, given);
  if (std::string unknown = unknown_setting(given, known(direction)); !unknown.empty())
    return unknown;
  const int least = min_sms(direction);
  if (std::string problem = out_of_range("sms", *all.sms, least, std::max(least, max_sms));
      !problem.empty())
    return problem;
  if (config.num_sms > 0 && *all.sms != config.num_sms)
    return fmt::format("sms {} is not --num-sms {}: leave one of them out", *all.sms,
                       config.num_sms);
  if (is_internode())
    return has_chunks() ? out_of_range("chunk_rows", *all.chunk_rows, 1, max_chunk_rows()) : "";
  return direction == Direction::combine ? combine_invalid_reason(all)
                                         : dispatch_invalid_reason(all);
}

std::vector<Settings> GpuSettings::dispatch_candidates(int sms) const {
  std::vector<Settings> all;
  Settings one;
  one.sms = sms;
  if (is_low_latency())
    return {one};
  struct Stages {
    int stages, kept;
  };
  for (const Stages& choice : {Stages{2, 1}, Stages{3, 2}, Stages{4, 1}, Stages{1, 0}}) {
    one.stages = choice.stages;
    one.kept = choice.kept;
    one.warps = std::nullopt;
    one.warps = own_dispatch(one).warps;
    for (const int self :
         {*own_dispatch(one).self_sms, 0, sms / 8, sms / 6, sms / 4, sms / 3, sms / 2}) {
      one.self_sms = self;
      all.push_back(one);
    }
    if (config.shape.n_ranks > 1) {
      one.self_sms = 0;
      one.in_place = 1;
      all.push_back(one);
    }
    one.self_sms = one.in_place = std::nullopt;
  }
  return all;
}

std::vector<Settings> GpuSettings::combine_candidates(int sms) const {
  const int row_bytes = config.shape.hidden * 2;
  std::vector<Settings> all;
  for (const int warps : {2, 4, 8, 14, 16})
    for (const int parts : {1, 2, 4, 8, 16})
      for (const int stages : {1, 2, 4}) {
        Settings one;
        one.sms = sms;
        one.warps = warps;
        one.chunk_bytes = std::max(16, row_bytes / parts / 16 * 16);
        one.stages = stages;
        // High throughput: with fewer bytes in flight the link idles. A whole row (parts == 1) is
        // always a candidate, because it may be smaller.
        constexpr int min_bytes = 64 << 10;
        if (is_low_latency() || parts == 1 ||
            warps * stages * rows() * *one.chunk_bytes >= min_bytes)
          all.push_back(one);
      }
  return all;
}

std::vector<Settings> GpuSettings::internode_candidates(int sms) const {
  Settings one;
  one.sms = sms;
  if (!has_chunks())
    return {one};
  std::vector<Settings> all;
  for (const std::int32_t rows : {16, 4, 8, 32, 64}) {
    one.chunk_rows = std::min(rows, max_chunk_rows());
    all.push_back(one);
  }
  return all;
}

std::vector<Settings> GpuSettings::candidates_of(Direction direction, int sms) const {
  if (is_internode())
    return internode_candidates(sms);
  return direction == Direction::combine ? combine_candidates(sms) : dispatch_candidates(sms);
}

std::vector<KernelLaunch> GpuSettings::launches(Direction direction, const Settings& given,
                                                int sms_of_gpu, std::int32_t tokens) const {
  const int sms = *complete(direction, given).sms;
  if (direction == Direction::combine)
    return {{"combine", sms, sms}};
  if (!is_low_latency()) {
    const int blocks = is_internode() ? internode_notify_blocks : notify_blocks;
    return {{"notify", blocks, blocks}, {"dispatch", sms, sms}};
  }
  std::vector<KernelLaunch> all;
  if (is_internode() && config.format == Format::fp8)
    all.push_back({"cast", sms, sms});
  const int blocks = dispatch_blocks(tokens, sms, Phases::both).all();
  all.push_back({"dispatch", blocks, blocks});
  if (config.by_expert) {
    const int packing = pack_blocks(sms, sms_of_gpu);
    all.push_back({"pack", packing, std::min(packing, sms_of_gpu)});
  }
  return all;
}

std::vector<Settings> GpuSettings::candidates(Direction direction) const {
  std::vector<int> counts{config.num_sms};
  if (config.num_sms == 0 && is_low_latency())
    counts = {max_sms / 4, max_sms / 2, max_sms};
  else if (config.num_sms == 0)
    counts = {8, 12, 16, 20, 24, 32, 48, 64, 96, max_sms};
  std::vector<Settings> all;
  std::set<std::string> seen;
  for (const int sms : counts)
    for (const Settings& one : candidates_of(direction, sms)) {
      const Settings full = complete(direction, one);
      if (misfit(direction, full).empty() && seen.insert(to_text(full)).second)
        all.push_back(full);
    }
  return all;
}

} // namespace shmemctl::moe
