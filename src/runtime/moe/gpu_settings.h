// Launch settings of the kernels of dispatch and combine: which ones each path has, their defaults
// and limits, and the launches that follow from them. Needs no GPU.
#pragma once

#include <string>
#include <vector>

#include "kernels/moe/high_throughput.h"
#include "src/runtime/moe/exchange_config.h"
#include "src/runtime/moe/settings.h"

namespace shmemctl::moe {

/// The launch of a kernel of a call, on the rank that has the most tokens.
struct KernelLaunch {
  std::string kernel; ///< "dispatch"
  int blocks = 0;
  int sms = 0; ///< most multiprocessors that it uses
};

/// The settings for one configuration and one number of multiprocessors per PE.
struct GpuSettings {
  const ExchangeConfig& config;
  int max_sms;
  std::int32_t node_ranks = 0; ///< MoePath::node_ranks; 0: intranode kernels

  /// `given`, with every unset field set to a default that fits the shape and the other fields.
  Settings complete(Direction direction, const Settings& given) const;
  /// The rule that `given` breaks, and what is legal instead; "" if it breaks none.
  std::string misfit(Direction direction, const Settings& given) const;
  /// The settings that tuning tries; all are complete and legal.
  std::vector<Settings> candidates(Direction direction) const;
  /// The kernels that a call with `tokens` tokens launches with these settings, on a GPU with
  /// `sms_of_gpu` SMs; those of a high-throughput dispatch with its notify.
  std::vector<KernelLaunch> launches(Direction direction, const Settings& given, int sms_of_gpu,
                                     std::int32_t tokens) const;
  /// Smallest legal ExchangeConfig::num_sms: an intranode notify and a low-latency dispatch need
  /// blocks with different tasks.
  int min_num_sms() const;
  /// Whether a row fits into a dispatch block's shared memory; low latency and internode: true.
  bool holds_a_row() const { return is_low_latency() || is_internode() || dispatch_stages() > 0; }
  /// The most experts, of all ranks, whose counts fit into a block of notify; low latency: any.
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
  /// Number of stages, of all warps together, that fit into a block's shared memory.
  int dispatch_stages() const;
  Settings own_dispatch(const Settings& given) const;
  Settings own_combine(const Settings& given) const;
  Settings own_internode(Direction direction, const Settings& given) const;
  /// All settings that a direction has: those with a default, and those that only a user sets.
  Settings known(Direction direction) const;
  std::string dispatch_invalid_reason(const Settings& all) const;
  std::string combine_invalid_reason(const Settings& all) const;
  std::vector<Settings> dispatch_candidates(int sms) const;
  std::vector<Settings> combine_candidates(int sms) const;
  std::vector<Settings> internode_candidates(int sms) const;
  std::vector<Settings> candidates_of(Direction direction, int sms) const;
};

/// Converts settings to the argument of a kernel's launcher; unset ones keep Tuning's default.
Tuning tuning_of(const Settings& settings);

} // namespace shmemctl::moe
