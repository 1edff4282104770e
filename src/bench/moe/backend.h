// What carries out a dispatch and a combine: the host's one-sided operations here, kernels there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/bench/moe/settings.h"
#include "src/moe/oracle.h"
#include "src/moe/routing.h"
#include "src/moe/shape.h"

namespace shmemctl::moe {

enum class Mode {
  high_throughput, ///< counts go ahead, rows lie without gaps, one row per rank comes back
  low_latency      ///< fixed slots, nothing goes ahead
};
const char* to_string(Mode mode);
const char* to_string(Format format);
const char* to_string(Combine combine);

/// Everything that a backend is set up for; the same on all ranks.
struct Setup {
  Shape shape;
  Mode mode = Mode::high_throughput;
  Format format = Format::bf16;
  bool power_scales = false;       ///< FP8: scales are powers of two (UE8M0)
  std::int32_t scale_bytes = 4;    ///< FP8: of a scale as the backend's rows carry it
  Combine combine = Combine::rows; ///< rows goes with high_throughput, the others with low_latency
  bool bias = false;               ///< of Combine::rows
  bool combined_weights = false;   ///< of Combine::rows: what ranks make of the weights comes back
  bool by_expert = false;          ///< low latency, weighted: rows are packed per expert besides
  std::int32_t node_ranks = 1;     ///< ranks of a node; shape.n_ranks where there is one node,
                                   ///< or rows go straight to ranks of other nodes
  std::vector<std::int32_t> node_of_rank; ///< empty: blocks of node_ranks
  std::uint32_t seed = 1;
  /// Low latency: a rank that does not come in that time is masked, and the rest go on. 0: calls
  /// wait for the job's deadline, and fail.
  double rank_timeout_us = 0;
  std::int32_t num_sms = 0;         ///< of kernels; 0: their own choice
  const Routing* routing = nullptr; ///< of all ranks; outlives the backend

  std::int32_t n_nodes() const { return shape.n_ranks / node_ranks; }
  /// Whether a row between these ranks goes to another node.
  bool crosses(std::int32_t from, std::int32_t to) const {
    const auto node = [this](std::int32_t rank) {
      return node_of_rank.empty() ? node_of(rank, node_ranks)
                                  : node_of_rank[static_cast<std::size_t>(rank)];
    };
    return node(from) != node(to);
  }
  /// For payload.h: 0 where nothing crosses a node.
  std::int32_t model_node_ranks() const { return n_nodes() > 1 ? node_ranks : 0; }
};

/// One call on this rank, in us. `total` begins when the call is entered and ends when its result
/// may be used; the others are parts of it.
struct Times {
  double total_us = 0;
  double counts_us = 0;  ///< until every row's place is known, with the wait for counts
  double arrival_us = 0; ///< of that, or of the wait for data: until the last rank had entered
  /// From then on; of a dispatch of low latency: from when a source was heard to have begun, or
  /// from the begin of the wait, until its last row had come, of the source for which that took
  /// longest.
  double transfer_us = 0;
  std::vector<double> wait_us; ///< by rank: from when this one began to wait until that one's came
  /// By rank, of that: until it had begun the call. Empty where nothing tells of that alone.
  std::vector<double> begin_wait_us = {};
  double pack_us = 0; ///< of total: packing per expert
};

/// Bytes of one rank: what is allocated for these limits, whatever the routing is.
struct MemoryUse {
  std::string what;    ///< "received rows"
  std::string formula; ///< "ranks * max_tokens * row"
  std::uint64_t size_bytes = 0;
};

/// A kernel of a call as it is launched, on the rank that has the most tokens.
struct KernelLaunch {
  std::string kernel; ///< "dispatch"
  int blocks = 0;
  int sms = 0; ///< multiprocessors that it takes at most
};

/// How often a backend was called.
struct CallCount {
  std::uint64_t dispatches = 0, combines = 0;
};

/// One rank's part. Calls are collective and in the same order on all ranks.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual std::vector<MemoryUse> memory() const = 0;
  /// What Times::total_us spans, and the clock that says so: for people.
  virtual std::string window() const = 0;
  /// Fills what dispatch and combine write with a pattern that no row has. Not timed; everybody has
  /// to be done before anybody goes on.
  virtual void poison() = 0;
  /// The same with what a plan is kept in, where that can be told from the rows: before a dispatch
  /// that makes a new one, since a cached dispatch and a combine need the last one.
  virtual void poison_plan() {}
  /// @param cached the last dispatch's plan is used again, so no counts go ahead
  virtual Times dispatch(bool cached) = 0;
  /// The experts' work on what was received. Not timed.
  virtual void run_experts() = 0;
  virtual Times combine() = 0;
  /// Dispatch and combine in turn, so many times, with nothing between: how long a pair took, us,
  /// as often as it was looked at.
  /// @param between called now and then, outside of what is timed: it goes on
  virtual std::vector<double> chain(int pairs, const std::function<void()>& between);
  /// How many pairs chain(pairs) makes of that: at least as many.
  virtual int chained_pairs(int pairs) const { return pairs; }
  /// Whether a call may be launched in its two halves, with something else between (low latency).
  virtual bool has_phases() const { return false; }
  /// The half of a dispatch or combine that tells the others, or the one that takes what they have
  /// told: how long it took by itself, us. Each send() is followed by its receive().
  virtual double send(Direction /*direction*/) { return 0; }
  virtual double receive(Direction /*direction*/) { return 0; }
  /// What is wrong with what the last dispatch, or combine, left on this rank; nothing if all is
  /// right: rows, their order, scales, choices, weights, counts, and what must not be written.
  virtual std::optional<std::string> verify_dispatch() = 0;
  virtual std::optional<std::string> verify_combine() = 0;
  /// Ranks that this one has masked, in order. Nothing is sent to them or taken from them; what
  /// they would have sent is not missed by the verification, nor what they would have added.
  virtual std::vector<std::int32_t> masked() { return {}; }
  /// Changes a byte of what was received, as a test of the verification.
  virtual void corrupt() = 0;

  /// For the calls from now on; the same on all ranks, and nothing that cannot_use() refuses.
  void use(const DirectionSettings& settings) { given_ = settings; }
  /// What a call runs with: what was given to use(), and its own choices.
  virtual Settings settings(Direction direction) const;
  /// Why a call cannot run with that; "" if it can.
  virtual std::string cannot_use(Direction direction, const Settings& settings) const;
  /// What is worth trying, all of it usable and different; the same on all ranks.
  virtual std::vector<Settings> candidates(Direction direction) const;
  /// What a call launches with settings(); nothing where there are no kernels.
  virtual std::vector<KernelLaunch> launches(Direction /*direction*/) const { return {}; }

protected:
  const Settings& given(Direction direction) const { return given_.of(direction); }

private:
  DirectionSettings given_;
};

/// Why `given` has a setting that `known` has not; "" if it has none.
std::string unknown_setting(const Settings& given, const Settings& known);

} // namespace shmemctl::moe
