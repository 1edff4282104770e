// Dispatch and combine by kernels, for callers that supply the tokens: programs (shmemctl/moe.h,
// which wraps this) and `shmemctl moe`. It owns no memory and no tokens: it computes how much
// memory the kernels need and where its parts are, and launches the kernels. Includes no CUDA
// header.
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

/// This PE's share of the GPU's multiprocessors: their number, divided by the PEs on the device.
std::int32_t shared_sms(const PeGpu& gpu);

/// The settings of the kernels of `path`. `config` must outlive the result.
GpuSettings gpu_settings_of(const PeGpu& gpu, const ExchangeConfig& config, const MoePath& path);

/// The limit of the kernels that the configuration breaks: of the shape, the ranks of a node, or
/// the number of SMs. Nothing if the kernels support it.
std::optional<BrokenRule> exchange_broken_rule(const PeGpu& gpu, const ExchangeConfig& config,
                                               const MoePath& path);

/// Why the kernels cannot run this configuration here, although it is within their limits: a rank
/// that they do not reach, or weights that low latency does not return. "" if they can.
std::string exchange_cannot(const PeGpu& gpu, const ExchangeConfig& config, const MoePath& path);

/// The tokens of this rank, in memory that its GPU can read.
struct TokenInput {
  std::int32_t tokens = 0;
  /// [tokens][hidden], aligned to 16 bytes: BF16, or e4m3 for high throughput with FP8
  /// (launch_cast()).
  const std::byte* values = nullptr;
  const float* scales = nullptr; ///< [tokens][scales_per_row]; high throughput with FP8 only
  const std::int32_t* experts = nullptr; ///< [tokens][top_k]
  const float* weights = nullptr;        ///< [tokens][top_k]
};

/// What a combine reads besides the outputs, and its results; in memory of this rank's GPU.
struct CombineOutput {
  std::int32_t tokens = 0;
  const std::int32_t* experts = nullptr; ///< low latency: as passed to dispatch
  const float* weights = nullptr;        ///< low latency: as passed to dispatch
  const std::uint16_t* bias = nullptr;   ///< high throughput: [tokens][hidden] BF16, or nullptr
  std::uint16_t* results = nullptr;      ///< [tokens][hidden] BF16
  float* combined_weights = nullptr;     ///< [tokens][top_k], if ExchangeConfig asks for them
};

/// How long this rank has waited for each other rank so far, in all calls together; in ns.
struct WaitSums {
  /// By rank: time until the rank had begun the call; in a low-latency combine, the whole wait.
  std::vector<std::uint64_t> until_begun;
  std::vector<std::uint64_t> until_done; ///< by rank: further time until all its data had arrived
};

/// One rank's part of an exchange. Calls enqueue kernels in a stream and do not wait; all ranks
/// make the same calls in the same order, each on one stream. They throw Error: `usage` for a call
/// that does not fit the configuration or comes out of order, `unavailable` for a kernel that
/// cannot be launched (with CUDA's message). Errors that a kernel detects are thrown by
/// PeGpu::wait() and check(). kernels/moe/high_throughput.h and low_latency.h describe when memory
/// may be written again, and the state after a failure. May be used by one thread at a time.
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

  /// Sets the settings of later calls: equal on all ranks, and accepted by GpuSettings::misfit().
  void use(const DirectionSettings& given) { given_ = given; }
  /// The settings that a call uses: those of use(), completed by defaults.
  Settings settings(Direction direction) const {
    return gpu_settings().complete(direction, given_.of(direction));
  }
  GpuSettings gpu_settings() const { return gpu_settings_of(gpu_, config_, path_); }

  /// High throughput: exchanges counts, and computes the destination of each row. The plan may be
  /// used for any number of dispatches and combines with the same choices, until it is made again.
  /// @param plan memory of this rank's GPU, of plan_layout().size_bytes
  void make_plan(std::byte* plan, std::int32_t tokens, const std::int32_t* experts, void* stream);
  /// High throughput: uses the plan of make_plan(). Low latency: makes the plan, which the combine
  /// then uses.
  /// @param phases for low latency; high throughput supports Phases::both only
  void dispatch(std::byte* plan, const TokenInput& input, Phases phases, void* stream);
  /// If the layout is by expert: packs the rows that the last dispatch has received.
  void pack(std::byte* plan, void* stream);
  void combine(std::byte* plan, const CombineOutput& output, Phases phases, void* stream);
  /// Low latency: drops the dispatch that was received last, so that it needs no combine. To be
  /// called on all ranks.
  void drop() { calls_.drop(); }

  /// Low latency: the half of `rows` and `records` of the last dispatch whose receive was launched.
  std::int32_t half() const { return buffer_of_epoch(dispatches_); }
  /// The ranks that kernels of this rank have masked so far, in ascending order. Does not wait for
  /// the calls that have been enqueued.
  std::vector<std::int32_t> masked() const;
  /// @param direction for low latency; high throughput has one sum for both directions
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
  std::uint64_t dispatches_ = 0; ///< low latency: dispatches whose receive has been launched
};

/// An exchange for a configuration that exchange_broken_rule() and exchange_cannot() accept.
std::unique_ptr<Exchange> make_exchange(PeGpu& gpu, std::byte* memory, const ExchangeConfig& config,
                                        const MoePath& path, std::size_t guard_bytes = 0);

} // namespace shmemctl::moe
