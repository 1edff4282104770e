// Puts and gets of kernels.
#include <algorithm>
#include <cstring>

#include "kernels/bench/transfer.h"
#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/cases/transfer_buffers.h"
#include "src/instruments/bench/gpu/gpu_case.h"

namespace shmemctl::bench {

namespace {

/// The properties of one case.
struct Kind {
  TransferKernel kernel = TransferKernel::put;
  Completion completion = Completion::at_end;
  bool one_by_one = false;   ///< one caller; each operation is complete before the next
  bool own_messages = false; ///< each caller of the grid sends its own messages
  bool is_signalled() const { return kernel == TransferKernel::put_signal; }
};

template <const Kind& kind>
class GpuTransfer final : public GpuCase {
public:
  using GpuCase::GpuCase;

  std::size_t bytes_for(int n_pes) const override {
    return signal_offset_bytes(layout_for(n_pes)) + (kind.is_signalled() ? signal_line_bytes : 0);
  }
  bool measures() const override { return !routes_.to.empty(); }
  std::uint64_t bytes_per_iteration() const override {
    return measures() ? message_bytes() * routes_.to.size() : 0;
  }
  std::uint64_t operations_per_iteration() const override {
    if (!measures())
      return 0;
    return kind.own_messages ? callers() : routes_.to.size();
  }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    const bool pulls = is_pull();
    const std::vector<int>& writers = pulls ? routes_.to : routes_.from;
    for (std::size_t area = 0; area < writers.size(); ++area) {
      const PatternSlots slots{layout_->slots, layout_->slot_bytes, message_bytes(), iterations,
                               seed(),         writers[area]};
      if (auto wrong = check(memory() + layout_->slot_offset_bytes(area, 0), slots,
                             "data of PE " + std::to_string(writers[area])))
        return wrong;
    }
    return kind.is_signalled() && !writers.empty() ? verify_signal(iterations, writers[0])
                                                   : std::nullopt;
  }

protected:
  void set_up() override {
    routes_ = routes();
    layout_.emplace(layout_for(n_pes()));
    fill(memory(), source_bytes(message_bytes()), pe());
  }

  std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) override {
    TransferArguments arguments{};
    arguments.kernel = kind.kernel;
    arguments.completion = kind.completion;
    arguments.first = first;
    arguments.count = count;
    arguments.memory = memory();
    arguments.slots_offset_bytes = layout_->slot_offset_bytes(0, 0);
    arguments.slot_bytes = layout_->slot_bytes;
    arguments.slots = layout_->slots;
    arguments.size_bytes = point().size_bytes;
    arguments.own_messages = kind.own_messages;
    arguments.peers = routes_.to.size();
    arguments.only_peer = routes_.to.empty() ? -1 : routes_.to[0];
    // Loads and stores of one thread to one address stay in order. Requests to a network may be
    // reordered, so that a quiet is needed before a slot is used again.
    const bool mapped =
        std::all_of(routes_.to.begin(), routes_.to.end(), [this](int pe) { return is_mapped(pe); });
    arguments.quiet_every = mapped ? 0 : layout_->slots;
    arguments.signal_offset_bytes = signal_offset_bytes(*layout_);
    return kind.one_by_one ? launch_transfer_latency(how, arguments)
                           : launch_transfer(how, arguments);
  }

  void enqueue(const on_stream::Job& job, std::uint64_t number, void* stream) override {
    for (std::size_t k = 0; k < routes_.to.size(); ++k) {
      std::byte* const slot = memory() + layout_->slot_offset_bytes(k, 0);
      std::byte* const source = memory() + number % variants * variant_step_bytes;
      if (is_pull())
        on_stream::get(job, slot, source, point().size_bytes, routes_.to[k], stream);
      else if (kind.is_signalled())
        on_stream::put_signal(
            job, slot, source, point().size_bytes,
            reinterpret_cast<std::uint64_t*>(memory() + signal_offset_bytes(*layout_)),
            signal_value(number), device::SignalOp::set, routes_.to[k], stream);
      else
        on_stream::put(job, slot, source, point().size_bytes, routes_.to[k], stream);
    }
    if (kind.one_by_one && !routes_.to.empty())
      on_stream::quiet(job, stream);
  }

  int max_resident_blocks(int device) const override {
    const Launch& shape = point().launch;
    return max_transfer_blocks(kind.kernel,
                               shape.scope == CallScope::thread ? KernelScope::thread
                               : shape.scope == CallScope::warp ? KernelScope::warp
                                                                : KernelScope::block,
                               device, shape.threads);
  }
  bool needs_mapping() const override { return kind.kernel == TransferKernel::store; }

private:
  static bool is_pull() {
    return kind.kernel == TransferKernel::get || kind.kernel == TransferKernel::get_value;
  }
  /// Number of callers that send to one peer in parallel.
  std::uint64_t callers() const {
    const Launch& shape = point().launch;
    const auto ctas = static_cast<std::uint64_t>(std::max(shape.ctas, 1));
    const auto threads = static_cast<std::uint64_t>(std::max(shape.threads, 1));
    switch (shape.scope) {
    case CallScope::thread:
      return ctas * threads;
    case CallScope::warp:
      return ctas * threads / warp_threads;
    case CallScope::block:
      return ctas;
    }
    return ctas;
  }
  std::size_t message_bytes() const {
    return kind.own_messages ? callers() * point().size_bytes : point().size_bytes;
  }
  TransferLayout layout_for(int n_pes) const {
    const int peers = peers_of_a_sender(point(), n_pes);
    // A stream uses one slot, because its operations depend only on their number modulo `variants`.
    return {message_bytes(), peers, kind.one_by_one || by_stream() ? 1 : point().window * peers, 1};
  }

  static constexpr std::size_t signal_line_bytes = 64;
  static std::size_t signal_offset_bytes(const TransferLayout& layout) {
    return layout.total_bytes();
  }
  /// The signal of operation `number`. Operations of streams depend only on their number modulo
  /// `variants`.
  std::uint64_t signal_value(std::uint64_t number) const {
    return by_stream() ? number % variants + 1 : number + 1;
  }
  std::optional<WrongByte> verify_signal(std::uint64_t iterations, int writer) const {
    const std::size_t at = signal_offset_bytes(*layout_);
    const std::vector<std::byte> seen = fetched(at, sizeof(std::uint64_t));
    const std::uint64_t expected = iterations == 0 ? 0 : signal_value(iterations - 1);
    std::uint64_t found = 0;
    std::memcpy(&found, seen.data(), sizeof found);
    if (found == expected)
      return std::nullopt;
    return WrongByte{pe(), at, expected, found,
                     "signal word of the puts of PE " + std::to_string(writer)};
  }

  Routes routes_;
  std::optional<TransferLayout> layout_;
};

constexpr Kind put_kind{TransferKernel::put, Completion::at_end, false, false};
constexpr Kind put_message_kind{TransferKernel::put, Completion::each_message, false, false};
constexpr Kind put_latency_kind{TransferKernel::put, Completion::at_end, true, false};
constexpr Kind get_kind{TransferKernel::get, Completion::at_end, false, false};
constexpr Kind get_message_kind{TransferKernel::get, Completion::each_message, false, false};
constexpr Kind get_latency_kind{TransferKernel::get, Completion::at_end, true, false};
constexpr Kind put_value_kind{TransferKernel::put_value, Completion::at_end, true, false};
constexpr Kind get_value_kind{TransferKernel::get_value, Completion::at_end, true, false};
constexpr Kind put_signal_kind{TransferKernel::put_signal, Completion::at_end, true, false};
constexpr Kind store_kind{TransferKernel::store, Completion::at_end, false, false};
constexpr Kind store_latency_kind{TransferKernel::store, Completion::at_end, true, false};
constexpr Kind rate_kind{TransferKernel::put, Completion::at_end, false, true};

} // namespace

SHMEMCTL_CASE(put_by_gpu, GpuTransfer<put_kind>);
SHMEMCTL_CASE(put_message_by_gpu, GpuTransfer<put_message_kind>);
SHMEMCTL_CASE(put_latency_by_gpu, GpuTransfer<put_latency_kind>);
SHMEMCTL_CASE(get_by_gpu, GpuTransfer<get_kind>);
SHMEMCTL_CASE(get_message_by_gpu, GpuTransfer<get_message_kind>);
SHMEMCTL_CASE(get_latency_by_gpu, GpuTransfer<get_latency_kind>);
SHMEMCTL_CASE(put_element_by_gpu, GpuTransfer<put_value_kind>);
SHMEMCTL_CASE(get_element_by_gpu, GpuTransfer<get_value_kind>);
SHMEMCTL_CASE(put_signal_by_gpu, GpuTransfer<put_signal_kind>);
SHMEMCTL_CASE(message_rate_by_gpu, GpuTransfer<rate_kind>);
SHMEMCTL_CASE(store_by_gpu, GpuTransfer<store_kind>);
SHMEMCTL_CASE(store_latency_by_gpu, GpuTransfer<store_latency_kind>);

} // namespace shmemctl::bench
