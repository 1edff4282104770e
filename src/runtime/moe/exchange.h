// Dispatch and combine by kernels, for whoever brings the tokens: programs (shmemctl/moe.h, which
// wraps this) and `shmemctl moe`. It owns no memory and no tokens; it says how much memory the
// kernels need, where things are in it, and launches them. No CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/moe/high_throughput.h"
#include "kernels/moe/low_latency.h"
#include "kernels/moe/pack.h"
#include "src/base/error.h"
#include "src/model/moe/shape_rules.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/moe/exchange_config.h"
#include "src/runtime/moe/exchange_layout.h"
#include "src/runtime/moe/gpu_settings.h"
#include "src/runtime/moe/moe_path.h"
#include "src/runtime/moe/settings.h"

namespace shmemctl::moe {

/// Multiprocessors of the GPU that are this PE's part.
std::int32_t shared_sms(const PeGpu& gpu);

/// The settings of the kernels of that path. `config` must outlive them.
GpuSettings gpu_settings_of(const PeGpu& gpu, const ExchangeConfig& config, const MoePath& path);

/// What kernels do not support for any request: a shape, larger nodes, too many or too few SMs.
/// Nothing if they support it.
std::optional<BrokenRule> exchange_broken_rule(const PeGpu& gpu, const ExchangeConfig& config,
                                               const MoePath& path);

/// Why kernels cannot do it here: a rank that they do not reach. "" if they can.
std::string exchange_cannot(const PeGpu& gpu, const ExchangeConfig& config, const MoePath& path);

/// The tokens of this rank, in memory that its GPU reads.
struct TokenInput {
  std::int32_t tokens = 0;
  /// [tokens][hidden] BF16, aligned to 16 bytes; high throughput with FP8: e4m3 (launch_cast()).
  const std::byte* values = nullptr;
  const float* scales = nullptr; ///< [tokens][scales_per_row]; high throughput with FP8 only
  const std::int32_t* experts = nullptr; ///< [tokens][top_k]
  const float* weights = nullptr;        ///< [tokens][top_k]
};

/// What a combine reads beside the outputs, and where the results go: memory of this rank's GPU.
struct CombineOutput {
  std::int32_t tokens = 0;
  const std::int32_t* experts = nullptr; ///< low latency: as given to dispatch
  const float* weights = nullptr;        ///< low latency: as given to dispatch
  const std::uint16_t* bias = nullptr;   ///< high throughput: [tokens][hidden] BF16, or nullptr
  std::uint16_t* results = nullptr;      ///< [tokens][hidden] BF16
  float* combined_weights = nullptr;     ///< [tokens][top_k], if ExchangeConfig asks for them
};

/// How long this rank has waited for each other one so far, in all calls together; in ns.
struct WaitSums {
  std::vector<std::uint64_t> until_begun; ///< by rank: time until the rank had begun
  /// By rank: further time until all of its data had arrived.
  std::vector<std::uint64_t> until_done;
};

/// One rank's part. Calls put kernels into a stream and do not wait; all ranks make the same calls
/// in the same order, each on one stream. They throw Error: usage for what the exchange does not
/// have, unavailable for a kernel that cannot be launched (with the reason in CUDA's words). What a
/// kernel meets is thrown by PeGpu::wait() and check(). When memory may be written again, and what
/// holds after a failure, is in kernels/moe/high_throughput.h and low_latency.h. Used by one thread
/// at a time.
class Exchange {
public:
  virtual ~Exchange() = default;

  const ExchangeConfig& config() const { return config_; }
  const MoePath& path() const { return path_; }
  const ExchangeLayout& layout() const { return layout_; }
  const PlanLayout& plan_layout() const { return plan_layout_; }
  template <class T>
  T* at(const GpuRegion& region) const {
    return reinterpret_cast<T*>(memory_ + region.offset);
  }

  /// Launch settings of all later calls; the same on all ranks, and accepted by misfit().
  void use(const DirectionSettings& given) { given_ = given; }
  /// The settings that a call runs with: those of use(), completed by its own choices.
  Settings settings(Direction direction) const {
    return gpu_settings().complete(direction, given_.of(direction));
  }
  GpuSettings gpu_settings() const { return gpu_settings_of(gpu_, config_, path_); }

  /// High throughput: exchanges counts, and computes where each row goes. The plan serves any
  /// number of dispatches and combines with the same choices, until it is made again.
  /// @param plan plan_layout().size_bytes of this rank's memory
  void make_plan(std::byte* plan, std::int32_t tokens, const std::int32_t* experts, void* stream);
  /// High throughput: by a plan. Low latency: makes the plan, which its combine takes.
  /// @param phases of low latency
  void dispatch(std::byte* plan, const TokenInput& input, Phases phases, void* stream);
  /// If rows are by expert: packs what the last dispatch has received.
  void pack(std::byte* plan, void* stream);
  void combine(std::byte* plan, const CombineOutput& output, Phases phases, void* stream);
  /// Low latency: gives up the dispatch that was received last; called on all ranks.
  void drop() { calls_.drop(); }

  /// Low latency: half of `rows` and `records` that the last dispatch was launched for.
  std::int32_t half() const { return buffer_of_epoch(dispatches_); }
  /// Ranks that kernels of this one have masked, in order. Waits for the PE's own stream only.
  std::vector<std::int32_t> masked() const;
  /// @param direction of low latency; high throughput has one sum of both
  virtual WaitSums waits(Direction direction) const;

protected:
  Exchange(PeGpu& gpu, std::byte* memory, const ExchangeConfig& config, const MoePath& path,
           std::size_t guard_bytes)
      : gpu_(gpu), memory_(memory), config_(config), path_(path),
        layout_(config, path, guard_bytes), plan_layout_(config, path, guard_bytes) {}

  virtual std::string launch_plan(std::byte* plan, std::int32_t tokens, const std::int32_t* experts,
                                  void* stream) = 0;
  virtual std::string launch_rows(std::byte* plan, const TokenInput& input, Phases phases,
                                  void* stream) = 0;
  virtual std::string launch_sums(std::byte* plan, const CombineOutput& output, Phases phases,
                                  void* stream) = 0;

  std::int32_t sms(Direction direction) const { return *settings(direction).sms; }
  std::uint64_t rank_timeout_ns() const {
    return config_.rank_timeout_us > 0 ? static_cast<std::uint64_t>(config_.rank_timeout_us * 1000)
                                       : gpu_.job().timeout_ns;
  }
  template <class T>
  static T* in(std::byte* plan, const GpuRegion& region) {
    return reinterpret_cast<T*>(plan + region.offset);
  }
  HighThroughputMemory high_throughput() const;
  LowLatencyMemory low_latency() const;
  PackedMemory packed(std::byte* plan) const;
  float* output_weights() const {
    return config_.combined_weights ? at<float>(layout_.output_weights) : nullptr;
  }

  PeGpu& gpu_;
  std::byte* const memory_;
  const ExchangeConfig config_;
  const MoePath path_;
  const ExchangeLayout layout_;
  const PlanLayout plan_layout_;
  LowLatencyCalls calls_;

private:
  void launched(const std::string& failure) const;
  /// Throws Error (usage).
  void require_tokens(std::int32_t tokens) const;
  void require_phases(Phases phases) const;
  void require_order(const char* call, const std::string& refused) const;

  DirectionSettings given_;
  std::uint64_t dispatches_ = 0; ///< low latency: received, or to be received
};

/// An exchange for a configuration that exchange_broken_rule() and exchange_cannot() accept.
std::unique_ptr<Exchange> make_exchange(PeGpu& gpu, std::byte* memory, const ExchangeConfig& config,
                                        const MoePath& path, std::size_t guard_bytes = 0);

} // namespace shmemctl::moe
