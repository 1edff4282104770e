// The interface of a backend, which carries out dispatch and combine: by one-sided operations of
// the host, or by kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/model/moe/oracle.h"
#include "src/model/moe/routing.h"
#include "src/model/moe/shape.h"
#include "src/runtime/moe/exchange_config.h"
#include "src/runtime/moe/exchange_layout.h"
#include "src/runtime/moe/gpu_settings.h"
#include "src/runtime/moe/settings.h"

namespace shmemctl::moe {

const char* to_string(Mode mode);
const char* to_string(Format format);
const char* to_string(Combine combine);

/// The configuration of a backend; the same on all ranks.
struct Setup : ExchangeConfig {
  std::int32_t scale_bytes = 4;           ///< FP8: size of a scale in the backend's rows
  bool bias = false;                      ///< whether Combine::rows adds a bias
  std::vector<std::int32_t> node_of_rank; ///< empty: nodes are blocks of node_ranks ranks
  std::uint32_t seed = 1;
  const Routing* routing = nullptr; ///< routing of all ranks; outlives the backend

  /// Whether a row between these ranks goes to another node.
  bool crosses(std::int32_t from, std::int32_t to) const {
    const auto node = [this](std::int32_t rank) {
      return node_of_rank.empty() ? node_of(rank, node_ranks)
                                  : node_of_rank[static_cast<std::size_t>(rank)];
    };
    return node(from) != node(to);
  }
  /// The node size for payload.h; 0 if there is only one node.
  std::int32_t model_node_ranks() const { return n_nodes() > 1 ? node_ranks : 0; }
};

/// The times of one call on this rank, in us. `total` begins when the call is entered and ends when
/// its result may be used; the other times are parts of it.
struct Times {
  double total_us = 0;
  double counts_us = 0;  ///< until rows may be sent (counts are exchanged, or else ranks are ready)
  double arrival_us = 0; ///< the part of the wait until the last rank had entered
  /// The rest of total_us after counts_us. For a low-latency dispatch it is counted for each source
  /// rank, from when that rank was known to have begun (or from the start of the wait) until its
  /// last row had arrived; this is the longest of these times.
  double transfer_us = 0;
  /// By rank: the time from the start of the wait until that rank's data had arrived.
  std::vector<double> wait_us;
  /// By rank: the part of wait_us until the rank had begun the call. Empty if not known separately.
  std::vector<double> begin_wait_us = {};
  double pack_us = 0; ///< part of total: packing per expert
};

/// How often a backend was called.
struct CallCount {
  std::uint64_t dispatches = 0, combines = 0;
};

/// One rank's part in dispatch and combine. Calls are collective, in the same order on all ranks.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual std::vector<MemoryUse> memory() const = 0;
  /// What Times::total_us includes, and which clock measures it; for the user.
  virtual std::string window() const = 0;
  /// Fills the memory in which rows and results arrive with a pattern that no row contains. Not
  /// timed; a barrier must follow.
  virtual void poison() = 0;
  /// As poison(), for the memory of the plan, if that is separate from the rows. Called before a
  /// dispatch that makes a new plan; a cached dispatch and a combine need the last plan.
  virtual void poison_plan() {}
  /// @param cached high throughput: reuses the last dispatch's plan, so no counts are exchanged
  virtual Times dispatch(bool cached) = 0;
  /// Runs the experts on the received rows. Not timed.
  virtual void run_experts() = 0;
  virtual Times combine() = 0;
  /// Alternates dispatch and combine back to back.
  /// @return the durations of pairs, in us; several pairs may share one sample
  /// @param between called now and then outside of the timed part, to report progress
  virtual std::vector<double> chain(int pairs, const std::function<void()>& between);
  /// The number of pairs that chain(pairs) runs, which is at least `pairs`.
  virtual int chained_pairs(int pairs) const { return pairs; }
  /// Whether a call may be launched in two phases, send and receive (low latency).
  virtual bool has_phases() const { return false; }
  /// Runs one phase of a dispatch or combine. Each send() is followed by its receive().
  /// @return its duration, in us
  virtual double send(Direction /*direction*/) { return 0; }
  virtual double receive(Direction /*direction*/) { return 0; }
  /// Checks the result of the last dispatch or combine on this rank: rows, their order, scales,
  /// experts, weights, counts, and memory that must not change. Returns what is wrong; nothing if
  /// all is correct.
  virtual std::optional<std::string> verify_dispatch() = 0;
  virtual std::optional<std::string> verify_combine() = 0;
  /// The ranks that this rank has masked, in ascending order. Nothing is sent to them or used from
  /// them, and verification expects neither their rows nor their outputs.
  virtual std::vector<std::int32_t> masked() { return {}; }
  /// Corrupts a received row and a combined token, to test the verification.
  virtual void corrupt() = 0;

  /// Sets the launch settings of all later calls; the same on all ranks. cannot_use() must accept
  /// them.
  virtual void use(const DirectionSettings& settings) { given_ = settings; }
  /// The settings that a call runs with: those of use(), completed by the backend's own choices.
  virtual Settings settings(Direction direction) const;
  /// Why a call cannot run with these settings; "" if it can.
  virtual std::string cannot_use(Direction direction, const Settings& settings) const;
  /// Settings worth trying, all valid and different; the same on all ranks.
  virtual std::vector<Settings> candidates(Direction direction) const;
  /// The kernel launches of a call with settings(); none without kernels.
  virtual std::vector<KernelLaunch> launches(Direction /*direction*/) const { return {}; }

protected:
  const Settings& given(Direction direction) const { return given_.of(direction); }

private:
  DirectionSettings given_;
};

} // namespace shmemctl::moe
