// Puts and gets between buffers that each PE has registered with the runtime. An operation is
// complete when its call returns, so that windows need no completion.
#include <cstring>
#include <set>

#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/cases/transfer_buffers.h"
#include "src/instruments/bench/path.h"
#include "src/runtime/registered_memory.h"

namespace shmemctl::bench {

namespace {

/// @tparam pulls whether the data comes from the peer
/// @tparam one_slot for latencies: one slot for all operations to a peer, and no reference
template <bool pulls, bool one_slot>
class RegisteredTransfer final : public Case {
public:
  explicit RegisteredTransfer(const Point& point) : point_(point) {}

  std::size_t bytes_needed(const Runtime& runtime, const Point&) const override {
    return layout_for(runtime.n_pes()).total_bytes();
  }

  std::string cannot_run(Runtime& runtime) const override {
    for (const int pe : routes_of(point_, runtime.pe(), runtime.n_pes()).to)
      if (std::string reason = no_buffers_reason(runtime, pe); !reason.empty())
        return reason;
    return "";
  }

  void prepare(Arena& arena) override {
    Runtime& runtime = arena.runtime;
    context_.emplace(HostCaseContext{runtime.rma(), runtime.teams(), runtime.collectives(),
                                     runtime.pe(), runtime.n_pes(), arena.memory, arena.seed});
    buffers_ = &runtime.buffers();
    routes_ = routes_of(point_, runtime.pe(), runtime.n_pes());
    layout_.emplace(layout_for(runtime.n_pes()));
    fill_pattern(arena.memory, source_bytes(point_.size_bytes), arena.seed, runtime.pe());
    for (const int pe : routes_.to)
      add_peer(arena.registered->of(pe));
  }

  bool measures() const override { return !routes_.to.empty(); }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point_.size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }
  std::vector<std::string> carriers() const override {
    return {carriers_.begin(), carriers_.end()};
  }

  void iterate(std::uint64_t first, std::uint64_t count) override {
    if (!measures())
      return;
    std::byte* const memory = context_->memory;
    for_each(first, count, [&](const TransferCursor& cursor, std::size_t slot) {
      const BufferDescriptor& peer = peers_[cursor.peer];
      if (pulls)
        buffers_->get(memory + slot, peer, cursor.source_offset_bytes(), point_.size_bytes);
      else
        buffers_->put(peer, slot, memory + cursor.source_offset_bytes(), point_.size_bytes);
    });
  }

  /// Copies with memcpy between this PE's buffer and the mapping of the peer's buffer.
  bool reference(std::uint64_t first, std::uint64_t count) override {
    if (one_slot || !measures() || mapped_.size() != peers_.size())
      return false;
    std::byte* const memory = context_->memory;
    for_each(first, count, [&](const TransferCursor& cursor, std::size_t slot) {
      std::byte* const peer = mapped_[cursor.peer].address();
      const std::size_t source = cursor.stale_offset_bytes();
      std::memcpy((pulls ? memory : peer) + slot, (pulls ? peer : memory) + source,
                  point_.size_bytes);
    });
    return true;
  }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    const std::vector<int>& writers = pulls ? routes_.to : routes_.from;
    for (std::size_t area = 0; area < writers.size(); ++area)
      if (auto wrong = verify_slots(*context_, *layout_, area, writers[area], iterations, 1))
        return wrong;
    return std::nullopt;
  }

private:
  TransferLayout layout_for(int n_pes) const {
    return {point_.size_bytes, peers_of_a_sender(point_, n_pes), one_slot ? 1 : point_.window, 1};
  }

  void add_peer(const BufferDescriptor& peer) {
    peers_.push_back(peer);
    const BufferPath path = buffers_->path_to(peer);
    carriers_.insert(std::string(registered_buffer_name) + " (" + to_string(path.kind) + ")");
    if (path.kind == BufferPathKind::zero_copy)
      mapped_.push_back(buffers_->hold(peer));
  }

  /// Calls use(cursor, offset of the slot) for each operation.
  template <class Use>
  void for_each(std::uint64_t first, std::uint64_t count, Use&& use) {
    TransferCursor cursor(*layout_);
    cursor.seek(first);
    for (std::uint64_t i = 0; i < count; ++i, cursor.next())
      use(cursor, layout_->slot_offset_bytes(cursor.peer, cursor.slot));
  }

  Point point_;
  std::optional<HostCaseContext> context_; ///< set by prepare(), like the members below
  Buffers* buffers_ = nullptr;
  Routes routes_;
  std::optional<TransferLayout> layout_;
  std::vector<BufferDescriptor> peers_; ///< buffers of the PEs that this PE sends to, or gets from
  std::vector<BufferRef> mapped_;       ///< the mappings of those buffers that are mapped here
  std::set<std::string> carriers_;
};

} // namespace

SHMEMCTL_CASE(registered_put_by_host, RegisteredTransfer<false, false>);
SHMEMCTL_CASE(registered_put_latency_by_host, RegisteredTransfer<false, true>);
SHMEMCTL_CASE(registered_get_by_host, RegisteredTransfer<true, false>);
SHMEMCTL_CASE(registered_get_latency_by_host, RegisteredTransfer<true, true>);

} // namespace shmemctl::bench
