// Which settings the kernels of dispatch and combine have, what they choose themselves, what fits,
// and what is launched. Needs no GPU.
#pragma once

#include <string>
#include <vector>

#include "kernels/moe/high_throughput.h"
#include "src/runtime/moe/exchange_config.h"
#include "src/runtime/moe/settings.h"

namespace shmemctl::moe {

/// A kernel of a call as it is launched, on the rank that has the most tokens.
struct KernelLaunch {
  std::string kernel; ///< "dispatch"
  int blocks = 0;
  int sms = 0; ///< most multiprocessors that it uses
};

/// A configuration, and the multiprocessors that a PE has.
struct GpuSettings {
  const ExchangeConfig& config;
  int max_sms;
  std::int32_t node_ranks = 0; ///< MoePath::node_ranks; 0: intranode kernels

  /// `given`, with every unset field set to a default that fits the shape and the other fields.
  Settings complete(Direction direction, const Settings& given) const;
  /// "" or the rule that is broken, and the nearest that is not.
  std::string misfit(Direction direction, const Settings& given) const;
  std::vector<Settings> candidates(Direction direction) const;
  /// What a call with that many tokens launches with such settings, on a GPU with this many SMs.
  std::vector<KernelLaunch> launches(Direction direction, const Settings& given, int sms_of_gpu,
                                     std::int32_t tokens) const;
  /// Fewest for ExchangeConfig::num_sms: notify and a low-latency dispatch have blocks of different
  /// kinds.
  int min_num_sms() const;
  /// Whether a block of a dispatch holds a row at all.
  bool holds_a_row() const { return is_low_latency() || is_internode() || dispatch_stages() > 0; }
  /// The most experts, over all ranks, whose counts a block of notify can hold.
  std::int32_t max_experts() const;

private:
  bool is_low_latency() const { return config.mode == Mode::low_latency; }
  bool is_internode() const { return node_ranks > 0; }
  bool has_chunks() const { return is_internode() && !is_low_latency(); }
  bool weighted() const { return config.combine == Combine::weighted; }
  int rows() const {
    return is_low_latency() && weighted() ? config.shape.top_k : config.shape.n_ranks;
  }
  int min_sms(Direction direction) const;
  int own_sms(Direction direction) const;
  std::int32_t max_chunk_rows() const;
  DispatchArguments dispatch(const Tuning& tuning) const;
  /// Stages that a block's shared memory holds, of all its warps.
  int dispatch_stages() const;
  Settings own_dispatch(const Settings& given) const;
  Settings own_combine(const Settings& given) const;
  Settings own_internode(Direction direction, const Settings& given) const;
  /// All settings that a direction knows: those that it chooses itself, and those that only a user
  /// sets.
  Settings known(Direction direction) const;
  std::string dispatch_invalid_reason(const Settings& all) const;
  std::string combine_invalid_reason(const Settings& all) const;
  std::vector<Settings> dispatch_candidates(int sms) const;
  std::vector<Settings> combine_candidates(int sms) const;
  std::vector<Settings> internode_candidates(int sms) const;
  std::vector<Settings> candidates_of(Direction direction, int sms) const;
};

/// What the launcher of a kernel takes; settings without a value keep Tuning's default.
Tuning tuning_of(const Settings& settings);

} // namespace shmemctl::moe
