// Put and get cases: operations of one kind on slots of a peer, completed once for each window.
#pragma once

#include <cstring>
#include <vector>

#include "src/instruments/bench/cases/transfer_buffers.h"
#include "transports/transport.h"

namespace shmemctl::bench {

/// One operation. `slot` and `source` are addresses on this PE.
struct Issue {
  Rma& rma;
  std::byte *slot, *source;
  std::size_t size_bytes;
  std::uint64_t* signal;   ///< for this PE's area at the peer; like `slot`, its address on this PE
  std::uint64_t operation; ///< number of the operation among those to this peer
  /// Distance to the peer's mapped memory; add it to an address on this PE.
  std::ptrdiff_t delta_bytes;
  int pe;
  Transport* transport = nullptr; ///< with TransferKind::by_transport
  RemoteAddress remote = {};      ///< with TransferKind::by_transport: the peer's slot
};

/// How one kind of operation is issued. Data goes to the peer's slot or, if `pulls`, from the
/// peer's source to a slot on this PE.
struct TransferKind {
  static constexpr bool pulls = false;   ///< the data comes from the peer
  static constexpr bool signals = false; ///< the signal word contains the number of operations
  /// Each operation is completed before the next one (latency).
  static constexpr bool one_by_one = true;
  static constexpr bool direct = false;       ///< needs the peer's memory mapped here
  static constexpr bool by_transport = false; ///< calls the transport, without the runtime
  static constexpr int spread = 1;
};

template <class Kind>
class Transfer final : public HostCase {
public:
  using HostCase::HostCase;

  std::size_t bytes_for(int n_pes) const override { return layout_for(n_pes).total_bytes(); }
  bool measures() const override { return !routes_.to.empty(); }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point().size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }

  void iterate(std::uint64_t first, std::uint64_t count) override {
    if (routes_.to.empty())
      return;
    const TimedRegion frame = this->frame();
    std::uint64_t under_way = 0;
    for_each(first, count, [&](const TransferCursor& cursor) {
      Kind::issue(frame.at(cursor, cursor.source_offset_bytes()));
      if (++under_way == frame.layout.window) {
        Kind::complete(frame.rma);
        under_way = 0;
      }
    });
    if (under_way > 0)
      Kind::complete(frame.rma);
  }

  std::uint64_t batch_multiple() const override { return layout_->window; }

  bool reference(std::uint64_t first, std::uint64_t count) override {
    if (Kind::one_by_one || Kind::direct || !mapped_)
      return false;
    const TimedRegion frame = this->frame();
    for_each(first, count, [&](const TransferCursor& cursor) {
      const Issue at = frame.at(cursor, cursor.stale_offset_bytes());
      if (Kind::pulls)
        std::memcpy(at.slot, at.source + at.delta_bytes, at.size_bytes);
      else
        std::memcpy(at.slot + at.delta_bytes, at.source, at.size_bytes);
    });
    return true;
  }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    const std::vector<int>& writers = Kind::pulls ? routes_.to : routes_.from;
    const HostCaseContext memory = seen();
    for (std::size_t area = 0; area < writers.size(); ++area) {
      if (auto wrong =
              verify_slots(memory, *layout_, area, writers[area], iterations, Kind::spread))
        return wrong;
      if (auto wrong = verify_signal(memory, area, writers[area], iterations))
        return wrong;
    }
    return std::nullopt;
  }

  std::string cannot_run(Runtime& runtime) const override {
    return Kind::direct ? unmapped_peer(runtime) : "";
  }

private:
  template <class Use>
  void for_each(std::uint64_t first, std::uint64_t count, Use&& use) {
    TransferCursor cursor = *cursor_;
    cursor.seek(first);
    for (std::uint64_t i = 0; i < count; ++i, cursor.next())
      use(cursor);
    *cursor_ = cursor;
  }
  /// Computes the arguments of operations from their numbers. A copy, so that it stays in
  /// registers.
  struct TimedRegion {
    Rma& rma;
    std::byte* memory;
    TransferLayout layout;
    const std::ptrdiff_t* deltas;
    const int* to;
    Transport* const* transports;
    const RemoteAddress* bases;

    Issue at(const TransferCursor& cursor, std::size_t source_offset_bytes) const {
      const std::uint64_t area = cursor.peer;
      if constexpr (Kind::by_transport) {
        const std::size_t offset_bytes = layout.slot_offset_bytes(area, cursor.slot);
        RemoteAddress slot = bases[area];
        slot.offset_bytes += offset_bytes;
        return {rma,
                memory + offset_bytes,
                memory + source_offset_bytes,
                layout.size_bytes,
                nullptr,
                cursor.operation,
                0,
                to[area],
                transports[area],
                slot};
      }
      return {rma,
              memory + layout.slot_offset_bytes(area, cursor.slot),
              memory + source_offset_bytes,
              layout.size_bytes,
              reinterpret_cast<std::uint64_t*>(memory + layout.signal_offset_bytes(area)),
              cursor.operation,
              deltas[area],
              to[area]};
    }
  };
  TimedRegion frame() const {
    return {context().rma,     context().memory,   *layout_,     deltas_.data(),
            routes_.to.data(), transports_.data(), bases_.data()};
  }
  TransferLayout layout_for(int n_pes) const {
    return {point().size_bytes, peers_of_a_sender(point(), n_pes),
            Kind::one_by_one ? 1 : point().window, Kind::spread};
  }

  void set_up() override {
    routes_ = routes_of(point(), context().pe, context().n_pes);
    layout_.emplace(layout_for(context().n_pes));
    cursor_.emplace(*layout_);
    deltas_ = deltas_to(routes_.to);
    bases_.clear();
    transports_.clear();
    if (Kind::by_transport)
      for (const int pe : routes_.to) {
        bases_.push_back(context().rma.locate(context().memory, pe));
        transports_.push_back(context().transports.at(static_cast<std::size_t>(pe)));
      }
    mapped_ = !routes_.to.empty() && !on_gpu();
    for (const int pe :
         // mapped memory may nevertheless be reached by a network
         routes_.to)
      mapped_ = mapped_ && context().rma.mapped_address(context().memory, 1, pe);
    fill(source_bytes(point().size_bytes));
  }

  /// Checks the signal word, and that the rest of its cache line was not written.
  std::optional<WrongByte> verify_signal(const HostCaseContext& memory, std::uint64_t area,
                                         int writer, std::uint64_t iterations) const {
    const std::size_t at = layout_->signal_offset_bytes(area);
    std::uint64_t found = 0;
    std::memcpy(&found, memory.memory + at, sizeof found);
    const std::uint64_t expected = Kind::signals ? layout_->operations_to(area, iterations) : 0;
    if (found != expected)
      return WrongByte{memory.pe, at, expected, found,
                       "signal word of PE " + std::to_string(writer)};
    return stray_byte(memory, at + sizeof found, 64 - sizeof found);
  }

  Routes routes_;
  std::optional<TransferLayout> layout_;
  std::optional<TransferCursor> cursor_;
  std::vector<std::ptrdiff_t> deltas_; ///< by peer: distance to its mapped memory
  std::vector<Transport*> transports_; ///< by peer, with Kind::by_transport
  /// By peer, with Kind::by_transport: the beginning of its memory.
  std::vector<RemoteAddress> bases_;
  /// All peers' memory is mapped, and reached by loads and stores.
  bool mapped_ = false;
};

} // namespace shmemctl::bench
