#include "src/bench/moe/gpu_settings.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "kernels/moe/tuning.h"

namespace shmemctl::moe {

namespace {

constexpr int most_dispatch_warps = 32, most_combine_warps = 16, most_stages = 64, most_kept = 2;

/// "" or that a number is not in its range.
std::string out_of_range(const char* name, std::int32_t value, std::int32_t least,
                         std::int32_t most) {
  return value < least || value > most
             ? fmt::format("{} {} is not from {} to {}", name, value, least, most)
             : "";
}

std::string first_of(std::initializer_list<std::string> problems) {
  for (const std::string& problem : problems)
    if (!problem.empty())
      return problem;
  return "";
}

std::string too_large(std::size_t needed, const char* fewer) {
  constexpr std::size_t most = most_shared_bytes - own_shared_bytes;
  return needed > most
             ? fmt::format("that takes {} bytes of a block's shared memory, which has {}: {}",
                           needed, most, fewer)
             : "";
}

GatherShape gathered(const Setup& setup, int rows, const Settings& all) {
  return {setup.shape.max_tokens,
          setup.shape.hidden * 2,
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

int GpuSettings::own_sms() const {
  return setup.num_sms > 0 ? setup.num_sms : few() ? most_sms : std::min(24, most_sms);
}

DispatchArguments GpuSettings::dispatch(const Tuning& tuning) const {
  DispatchArguments arguments{};
  arguments.shape = setup.shape;
  arguments.format = setup.format;
  arguments.tuning = tuning;
  return arguments;
}

int GpuSettings::dispatch_places() const {
  return static_cast<int>(most_shared_bytes / dispatch_shared_bytes(dispatch({1, 1, 1})));
}

Settings GpuSettings::own_dispatch(const Settings& given) const {
  Settings own;
  own.sms = given.sms.value_or(own_sms());
  if (few())
    return own;
  Tuning chosen = dispatch_tuning(dispatch({}), *own.sms);
  if (given.stages && *given.stages > 0) {
    chosen.stages = *given.stages;
    chosen.warps = std::clamp(dispatch_places() / chosen.stages, 1, 16);
    chosen.kept = chosen.stages > 1 ? 1 : 0;
  }
  own.warps = chosen.warps;
  own.stages = chosen.stages;
  own.kept = chosen.kept;
  own.self_sms = blocks_for_self(chosen, setup.shape.n_ranks);
  return own;
}

Settings GpuSettings::own_combine(const Settings& given) const {
  Settings own;
  own.sms = given.sms.value_or(own_sms());
  GatherTuning chosen = few() ? low_latency_combine_tuning(setup.shape, weighted(), *own.sms)
                              : combine_tuning(setup.shape, *own.sms);
  if (given.warps || given.chunk_bytes) { // the rest follows from these
    chosen = gather_tuning(rows(), setup.shape.hidden * 2, *own.sms,
                           std::clamp(given.warps.value_or(chosen.tuning.warps), 1, 16),
                           std::max(16, given.chunk_bytes.value_or(chosen.chunk_bytes)));
    if (few())
      chosen.tuning.stages = 1;
  }
  own.warps = chosen.tuning.warps;
  own.stages = chosen.tuning.stages;
  own.chunk_bytes = chosen.chunk_bytes;
  return own;
}

Settings GpuSettings::complete(Direction direction, const Settings& given) const {
  return filled(given, direction == Direction::combine ? own_combine(given) : own_dispatch(given));
}

std::string GpuSettings::dispatch_misfit(const Settings& all) const {
  if (few())
    return "";
  const Tuning tuning = tuning_of(all);
  if (std::string problem =
          first_of({out_of_range("warps", tuning.warps, 1, most_dispatch_warps),
                    out_of_range("stages", tuning.stages, 1, most_stages),
                    out_of_range("kept", tuning.kept, 0, std::min(most_kept, tuning.stages - 1)),
                    out_of_range("self_sms", tuning.self_sms, 0, tuning.sms - 1)});
      !problem.empty())
    return problem;
  return too_large(dispatch_shared_bytes(dispatch(tuning)),
                   fmt::format("warps times stages may be {}", dispatch_places()).c_str());
}

std::string GpuSettings::combine_misfit(const Settings& all) const {
  const int row_bytes = setup.shape.hidden * 2;
  const std::int32_t chunk = *all.chunk_bytes;
  if (std::string problem = first_of({out_of_range("warps", *all.warps, 1, most_combine_warps),
                                      out_of_range("stages", *all.stages, 1, most_stages),
                                      out_of_range("chunk_bytes", chunk, 16, row_bytes)});
      !problem.empty())
    return problem;
  if (chunk % 16 != 0)
    return fmt::format("chunk_bytes {} is no multiple of 16: take {}", chunk, chunk / 16 * 16);
  return too_large(
      gather_shared_bytes(gathered(setup, rows(), all), *all.warps, few() && weighted()),
      "take fewer warps or stages, or smaller chunks");
}

std::string GpuSettings::misfit(Direction direction, const Settings& given) const {
  const Settings all = complete(direction, given);
  if (std::string unknown = unknown_setting(given, complete(direction, {})); !unknown.empty())
    return unknown;
  if (std::string problem = out_of_range("sms", *all.sms, 1, most_sms); !problem.empty())
    return problem;
  if (setup.num_sms > 0 && *all.sms != setup.num_sms)
    return fmt::format("sms {} is not --num-sms {}: leave one of them out", *all.sms,
                       setup.num_sms);
  return direction == Direction::combine ? combine_misfit(all) : dispatch_misfit(all);
}

std::vector<Settings> GpuSettings::dispatch_candidates(int sms) const {
  std::vector<Settings> all;
  Settings one;
  one.sms = sms;
  if (few())
    return {one};
  struct Way {
    int stages, kept;
  };
  for (const Way& way : {Way{2, 1}, Way{3, 2}, Way{4, 1}, Way{1, 0}}) {
    one.stages = way.stages;
    one.kept = way.kept;
    one.warps = std::nullopt;
    one.warps = own_dispatch(one).warps;
    for (const int self :
         {*own_dispatch(one).self_sms, 0, sms / 8, sms / 6, sms / 4, sms / 3, sms / 2}) {
      one.self_sms = self;
      all.push_back(one);
    }
  }
  return all;
}

std::vector<Settings> GpuSettings::combine_candidates(int sms) const {
  const int row_bytes = setup.shape.hidden * 2;
  std::vector<Settings> all;
  for (const int warps : {2, 4, 8, 14, 16})
    for (const int parts : {1, 2, 4, 8, 16})
      for (const int stages : {1, 2, 4}) {
        Settings one;
        one.sms = sms;
        one.warps = warps;
        one.chunk_bytes = std::max(16, row_bytes / parts / 16 * 16);
        one.stages = stages;
        // With fewer bytes on the way the link is idle in high throughput, but where rows are
        // small.
        constexpr int least_bytes = 64 << 10;
        if (few() || parts == 1 || warps * stages * rows() * *one.chunk_bytes >= least_bytes)
          all.push_back(one);
      }
  return all;
}

ChainBatches chain_batches(int pairs) {
  constexpr int fewest = 8, longest = 16; // one deadline bounds the wait for a whole batch
  const int batches =
      std::max(std::min(std::max(pairs, 0), fewest), (pairs + longest - 1) / longest);
  return {batches, batches > 0 ? (pairs + batches - 1) / batches : 0};
}

std::vector<Settings> GpuSettings::candidates(Direction direction) const {
  std::vector<int> counts{setup.num_sms};
  if (setup.num_sms == 0 && few())
    counts = {most_sms / 4, most_sms / 2, most_sms};
  else if (setup.num_sms == 0)
    counts = {8, 12, 16, 20, 24, 32, 48, 64, 96, most_sms};
  std::vector<Settings> all;
  std::set<std::string> seen;
  for (const int sms : counts)
    for (const Settings& one :
         direction == Direction::combine ? combine_candidates(sms) : dispatch_candidates(sms)) {
      const Settings full = complete(direction, one);
      if (misfit(direction, full).empty() && seen.insert(to_text(full)).second)
        all.push_back(full);
    }
  return all;
}

} // namespace shmemctl::moe
