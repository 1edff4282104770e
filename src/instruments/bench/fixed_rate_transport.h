// A fake transport with a fixed rate, for bench --self-test.
#pragma once

#include <cstdint>
#include <optional>

#include "transports/region_table.h"
#include "transports/transport.h"

namespace shmemctl::bench {

/// A link that carries puts one after the other, each in a known time. The time is measured with
/// CLOCK_MONOTONIC_RAW, which is not the engine's clock. Data goes to this PE's own memory. Only
/// put(), fence() and quiet() work; the other operations throw Error (usage).
class FixedRateTransport final : public Transport {
public:
  explicit FixedRateTransport(std::uint64_t put_ns);

  /// Marks the link as idle: the time of the next put begins now. Puts that follow each other keep
  /// the link's own schedule, so that the delay of one late clock reading does not add to all later
  /// ones.
  void start();
  /// Corrupts byte `offset_bytes` of the region in later puts.
  void damage(std::uint64_t offset_bytes) { damaged_ = offset_bytes; }

  const char* name() const override { return "known-link"; }
  std::string local_info() override { return {}; }
  Reach reach(const PeerLocation&, const PeerLocation&) const override {
    return {can_put, "self-test"};
  }
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView& region) override {
    regions_.set(region);
    return {};
  }

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override;
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override;
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest&) override;
  void put_signal(int, const RemoteAddress&, const void*, std::size_t, const RemoteAddress&,
                  std::uint64_t, SignalOp, bool) override;
  void fence(int) override {}
  void quiet(int) override;

private:
  RegionTable regions_;
  std::uint64_t put_ns_;
  std::int64_t reading_ns_;     ///< duration of one reading of the clock
  std::int64_t free_at_ns_ = 0; ///< when the last put is complete
  std::optional<std::uint64_t> damaged_;
};

} // namespace shmemctl::bench
