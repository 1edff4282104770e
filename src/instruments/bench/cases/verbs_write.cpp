// RDMA writes by libibverbs alone: what a put over ibrc, ibdevx or ibgda does, without the runtime
// and the transport.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/cases/transfer_buffers.h"
#include "transports/ibrc/raw_writes.h"

namespace shmemctl::bench {

namespace {

constexpr const char* connection_data = "connection data";

/// Exchanges texts through the runtime, because the bootstrap belongs to the runtime.
class TextExchange final : public Exchange {
public:
  explicit TextExchange(Runtime& runtime) : runtime_(runtime) {}

  std::vector<std::string> allgather(const std::string& own) override {
    return runtime_.gather_text(own);
  }
  /// Sends all texts to all PEs: there are few, since each PE has texts for at most one other PE.
  std::vector<std::string> alltoall(const std::vector<std::string>& to_each) override {
    const std::vector<std::vector<std::string>> all =
        runtime_.gather_values(to_each, connection_data);
    const auto own = static_cast<std::size_t>(runtime_.pe());
    std::vector<std::string> received;
    for (std::size_t pe = 0; pe < all.size(); ++pe) {
      if (all[pe].size() <= own)
        throw malformed_message(pe, connection_data);
      received.push_back(all[pe][own]);
    }
    return received;
  }

private:
  Runtime& runtime_;
};

/// The ports with which the PE's transport reaches a peer, if that transport uses verbs.
/// @param why receives the reason if it does not: one clause
std::vector<HcaPort> verbs_ports(Runtime& runtime, int peer, std::string& why) {
  constexpr std::array over_verbs = {"ibrc", "ibdevx", "ibgda"};
  const int index = runtime.transport_index_by_pe()[static_cast<std::size_t>(peer)];
  if (index < 0) {
    why = "no transport reaches PE " + std::to_string(peer);
    return {};
  }
  Transport& transport =
      runtime.transports()[static_cast<std::size_t>(index)].transport->for_host_memory();
  const std::string name = transport.name();
  if (std::find(over_verbs.begin(), over_verbs.end(), name) == over_verbs.end()) {
    why = name + " carries its puts to PE " + std::to_string(peer) +
          ", and not ibrc, ibdevx or ibgda";
    return {};
  }
  std::vector<HcaPort> ports;
  for (const NicPair& pair : transport.nics_to(peer))
    if (!pair.local.device.empty())
      ports.push_back(pair.local);
  if (ports.empty())
    why = name + " reaches PE " + std::to_string(peer) + " without an RDMA device";
  return ports;
}

/// @tparam one_by_one for latencies: each operation is completed before the next one
template <bool one_by_one>
class VerbsWrite final : public Case {
public:
  explicit VerbsWrite(const Point& point) : point_(point) {}

  std::size_t bytes_needed(const Runtime& runtime, const Point&) const override {
    return layout_for(runtime.n_pes()).total_bytes();
  }

  /// Opens the devices, because only that shows whether they can be used.
  std::string cannot_run(Runtime& runtime) const override {
    std::string why;
    std::vector<HcaPort> ports;
    if (const int peer = peer_of(routes_of(point_, runtime.pe(), runtime.n_pes())); peer >= 0)
      ports = verbs_ports(runtime, peer, why);
    if (why.empty())
      writes_ = ibrc::open_raw_writes(runtime.transport_setup(), ports, why);
    return why;
  }

  void prepare(Arena& arena) override {
    Runtime& runtime = arena.runtime;
    context_.emplace(HostCaseContext{runtime.rma(), runtime.teams(), runtime.collectives(),
                                     runtime.pe(), runtime.n_pes(), arena.memory, arena.seed});
    routes_ = routes_of(point_, runtime.pe(), runtime.n_pes());
    layout_.emplace(layout_for(runtime.n_pes()));
    fill_pattern(arena.memory, source_bytes(point_.size_bytes), arena.seed, runtime.pe());
    TextExchange exchange(runtime);
    const std::chrono::duration<double> timeout(runtime.transport_setup().timeout_s);
    writes_->connect(peer_of(routes_), arena.memory, arena.size_bytes, exchange,
                     Deadline::after(timeout));
  }

  bool measures() const override { return !routes_.to.empty(); }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point_.size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }
  std::uint64_t batch_multiple() const override { return layout_->window; }
  std::vector<std::string> carriers() const override {
    return measures() ? std::vector<std::string>{"verbs"} : std::vector<std::string>();
  }
  std::vector<NicTraffic> traffic() const override { return writes_->traffic(); }

  void iterate(std::uint64_t first, std::uint64_t count) override {
    if (!measures())
      return;
    TransferCursor cursor(*layout_);
    cursor.seek(first);
    const std::byte* const memory = context_->memory;
    const std::uint64_t paths = writes_->paths();
    for (std::uint64_t left = count; left > 0;) {
      const std::uint64_t batch = std::min(layout_->window, left);
      for (std::uint64_t i = 0; i < batch; ++i, cursor.next())
        writes_->write(memory + cursor.source_offset_bytes(),
                       layout_->slot_offset_bytes(cursor.peer, cursor.slot), point_.size_bytes,
                       i + paths >= batch);
      writes_->complete();
      left -= batch;
    }
  }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    for (std::size_t area = 0; area < routes_.from.size(); ++area)
      if (auto wrong = verify_slots(*context_, *layout_, area, routes_.from[area], iterations, 1))
        return wrong;
    const std::size_t end = layout_->signal_offset_bytes(0);
    return stray_byte(*context_, end, layout_->total_bytes() - end);
  }

private:
  TransferLayout layout_for(int n_pes) const {
    return {point_.size_bytes, peers_of_a_sender(point_, n_pes), one_by_one ? 1 : point_.window, 1};
  }
  /// The PE's only peer (this case supports only traffic with at most one); -1 if it has none.
  static int peer_of(const Routes& routes) {
    if (!routes.to.empty())
      return routes.to.front();
    return routes.from.empty() ? -1 : routes.from.front();
  }

  Point point_;
  mutable std::unique_ptr<ibrc::RawWrites> writes_; ///< set by cannot_run()
  std::optional<HostCaseContext> context_;          ///< set by prepare(), like the members below
  Routes routes_;
  std::optional<TransferLayout> layout_;
};

} // namespace

SHMEMCTL_CASE(verbs_write_by_host, VerbsWrite<false>);
SHMEMCTL_CASE(verbs_write_latency_by_host, VerbsWrite<true>);

} // namespace shmemctl::bench
