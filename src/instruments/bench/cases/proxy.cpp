// Requests through the proxy's ring, compared with the same calls without it.
#include <cstring>

#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/cases/transfer_buffers.h"
#include "src/runtime/proxy/proxy.h"

namespace shmemctl::bench {

namespace {

constexpr std::size_t proxy_line_bytes = 64;

/// One operation. Addresses are on this PE, and refer to the same symmetric memory at the peer.
struct ProxyIssue {
  std::byte *slot, *source;
  std::size_t size_bytes;
  std::uint64_t* word; ///< the signal, or the word that is incremented
  std::uint64_t value; ///< value of the signal
  int pe;
};

/// Makes the operations by calls of the runtime, as host code does.
struct DirectPath {
  Rma& rma;
  void put(const ProxyIssue& at) { rma.put(at.slot, at.source, at.size_bytes, at.pe, 0, false); }
  void put_signal(const ProxyIssue& at) {
    rma.put_signal(at.slot, at.source, at.size_bytes, at.word, at.value, SignalOp::set, at.pe, 0,
                   false);
  }
  std::uint64_t fetch_add(const ProxyIssue& at) {
    return rma.atomic(at.word, {AtomicOp::add, 8, 1}, at.pe);
  }
  void add(const ProxyIssue& at) { rma.post_atomic(at.word, {AtomicOp::add, 8, 1}, at.pe); }
  void quiet() { rma.quiet(); }
};

/// Makes the same operations by requests to the proxy.
struct ProxyPath {
  Rma& rma;
  ProxyProducer& producer;
  void put(const ProxyIssue& at) {
    producer.put(rma.locate(at.slot, at.pe), at.source, at.size_bytes);
  }
  void put_signal(const ProxyIssue& at) {
    producer.put_signal(rma.locate(at.slot, at.pe), at.source, at.size_bytes,
                        rma.locate(at.word, at.pe), at.value, SignalOp::set);
  }
  std::uint64_t fetch_add(const ProxyIssue& at) {
    return producer.atomic(rma.locate(at.word, at.pe), {AtomicOp::add, 8, 1});
  }
  void add(const ProxyIssue& at) {
    producer.post_atomic(rma.locate(at.word, at.pe), {AtomicOp::add, 8, 1});
  }
  void quiet() { producer.quiet(); }
};

/// The kinds of operation. A quiet completes a window; a fetch-add waits for its result instead.
struct PutRequest {
  static constexpr bool moves_data = true, counts = false, fetches = false;
  template <class Path>
  static std::uint64_t issue(Path& path, const ProxyIssue& at) {
    path.put(at);
    return 0;
  }
};
struct PutSignalRequest {
  static constexpr bool moves_data = true, counts = true, fetches = false;
  template <class Path>
  static std::uint64_t issue(Path& path, const ProxyIssue& at) {
    path.put_signal(at);
    return 0;
  }
};
struct FetchAddRequest {
  static constexpr bool moves_data = false, counts = true, fetches = true;
  template <class Path>
  static std::uint64_t issue(Path& path, const ProxyIssue& at) {
    return path.fetch_add(at);
  }
};
struct AddRequest {
  static constexpr bool moves_data = false, counts = true, fetches = false;
  template <class Path>
  static std::uint64_t issue(Path& path, const ProxyIssue& at) {
    path.add(at);
    return 0;
  }
};

/// The reference makes the same operations without the proxy: puts to the same slots, with data
/// that verification would not accept, and additions to separate words.
template <class Kind, bool one_by_one>
class ProxyCase final : public Case {
public:
  explicit ProxyCase(const Point& point) : point_(point) {}

  std::size_t bytes_needed(const Runtime& runtime, const Point&) const override {
    const TransferLayout layout = layout_for(runtime.n_pes());
    return layout.total_bytes() + layout.peers * proxy_line_bytes;
  }

  void prepare(Arena& arena) override {
    Runtime& runtime = arena.runtime;
    context_.emplace(HostCaseContext{runtime.rma(), runtime.teams(), runtime.collectives(),
                                     runtime.pe(), runtime.n_pes(), arena.memory, arena.seed});
    routes_ = routes_of(point_, runtime.pe(), runtime.n_pes());
    layout_.emplace(layout_for(runtime.n_pes()));
    fill_pattern(arena.memory, source_bytes(point_.size_bytes), arena.seed, runtime.pe());
    if (!routes_.to.empty())
      producer_.emplace(runtime.proxy().channel(), proxy_context);
  }

  bool measures() const override { return !routes_.to.empty(); }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point_.size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }
  std::uint64_t batch_multiple() const override { return layout_->window; }

  void iterate(std::uint64_t first, std::uint64_t count) override {
    if (!measures())
      return;
    ProxyPath path{context_->rma, *producer_};
    fetched_ = perform(path, first, count, true);
  }

  bool reference(std::uint64_t first, std::uint64_t count) override {
    if (!measures())
      return false;
    DirectPath path{context_->rma};
    perform(path, first, count, false);
    return true;
  }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    for (std::size_t area = 0; area < routes_.from.size(); ++area) {
      const std::uint64_t moved = Kind::moves_data ? iterations : 0;
      if (auto wrong = verify_slots(*context_, *layout_, area, routes_.from[area], moved, 1))
        return wrong;
      if (auto wrong = verify_word(area, iterations))
        return wrong;
    }
    const std::uint64_t before = iterations > 0 ? (iterations - 1) / layout_->peers : 0;
    if (Kind::fetches && measures() && iterations > 0 && fetched_ != before)
      return WrongByte{routes_.to[(iterations - 1) % layout_->peers],
                       layout_->signal_offset_bytes((iterations - 1) % layout_->peers), before,
                       fetched_, "value that the last iteration fetched"};
    return std::nullopt;
  }

private:
  TransferLayout layout_for(int n_pes) const {
    return {point_.size_bytes, peers_of_a_sender(point_, n_pes), one_by_one ? 1 : point_.window, 1};
  }

  template <class Path>
  std::uint64_t perform(Path& path, std::uint64_t first, std::uint64_t count, bool right) {
    TransferCursor cursor(*layout_);
    cursor.seek(first);
    std::byte* const memory = context_->memory;
    std::uint64_t under_way = 0, fetched = 0;
    for (std::uint64_t i = 0; i < count; ++i, cursor.next()) {
      const std::uint64_t area = cursor.peer;
      const std::size_t word_at =
          right ? layout_->signal_offset_bytes(area)
                : (Kind::moves_data ? layout_->signal_offset_bytes(area)
                                    : layout_->total_bytes() + area * proxy_line_bytes);
      fetched = Kind::issue(
          path, {memory + layout_->slot_offset_bytes(area, cursor.slot),
                 memory + (right ? cursor.source_offset_bytes() : cursor.stale_offset_bytes()),
                 point_.size_bytes, reinterpret_cast<std::uint64_t*>(memory + word_at),
                 right ? cursor.operation + 1 : 0, routes_.to[area]});
      if (++under_way == layout_->window && !Kind::fetches) {
        path.quiet();
        under_way = 0;
      }
    }
    if (under_way > 0 && !Kind::fetches)
      path.quiet();
    return fetched;
  }

  /// Checks the signal word or the sum.
  std::optional<WrongByte> verify_word(std::uint64_t area, std::uint64_t iterations) const {
    const std::size_t at = layout_->signal_offset_bytes(area);
    std::uint64_t found = 0;
    std::memcpy(&found, context_->memory + at, sizeof found);
    const std::uint64_t expected = Kind::counts ? layout_->operations_to(area, iterations) : 0;
    if (found != expected)
      return WrongByte{context_->pe, at, expected, found,
                       "word of PE " + std::to_string(routes_.from[area])};
    return stray_byte(*context_, at + sizeof found, proxy_line_bytes - sizeof found);
  }

  Point point_;
  std::optional<HostCaseContext> context_; ///< set by prepare(), like the members below
  Routes routes_;
  std::optional<TransferLayout> layout_;
  std::optional<ProxyProducer> producer_;
  std::uint64_t fetched_ = 0;
};

} // namespace

SHMEMCTL_CASE(proxy_put_by_host, ProxyCase<PutRequest, true>);
SHMEMCTL_CASE(proxy_put_rate_by_host, ProxyCase<PutRequest, false>);
SHMEMCTL_CASE(proxy_put_signal_by_host, ProxyCase<PutSignalRequest, true>);
SHMEMCTL_CASE(proxy_atomic_fetch_add_by_host, ProxyCase<FetchAddRequest, true>);
SHMEMCTL_CASE(proxy_atomic_rate_by_host, ProxyCase<AddRequest, false>);

} // namespace shmemctl::bench
