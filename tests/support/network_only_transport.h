// A transport that is as late as it may be: what is not complete by the contract is not done yet.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "src/runtime/rma.h"
#include "transports/forwarding_transport.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {

/// Reaches the memory of all PEs of a thread world, which Rma itself does not see as mapped. Puts
/// are delivered at fence(), quiet() or progress(), those between two fences in random order;
/// non-blocking ones read their source, and gets are made, only then. So who forgets a quiet()
/// sees old data.
class NetworkOnlyTransport final : public ForwardingOperations {
public:
  /// @param between called between two deliveries
  NetworkOnlyTransport(std::vector<RegionView> regions, unsigned seed,
                       std::function<void()> between = {})
      : ForwardingOperations(make_shm_transport()), random_(seed), between_(std::move(between)) {
    for (const RegionView& region : regions)
      below().set_region(region);
  }

  const char* name() const override { return "far"; }
  Reach reach(const PeerLocation&, const PeerLocation&) const override {
    return {can_put | can_get | can_atomics | can_put_signal, "a test's transport"};
  }

  void put(int, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override {
    add(source, size_bytes, blocking, [this, target, size_bytes](const void* from) {
      below().put(0, target, from, size_bytes, true);
    });
  }

  void get(int, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override {
    if (blocking)
      return below().get(0, target, source, size_bytes, true);
    late_.push_back([=, this] { below().get(0, target, source, size_bytes, true); });
  }

  void put_signal(int, const RemoteAddress& target, const void* source, std::size_t size_bytes,
                  const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                  bool blocking) override {
    add(source, size_bytes, blocking, [=, this](const void* from) {
      below().put_signal(0, target, from, size_bytes, signal, signal_value, op, true);
    });
  }

  void fence(int) override { deliver(); }
  void quiet(int) override { deliver(); }
  void progress() override { deliver(); }

private:
  template <class Deliver>
  void add(const void* source, std::size_t size_bytes, bool blocking, Deliver&& make) {
    if (!blocking) {
      late_.push_back([=] { make(source); });
      return;
    }
    const auto* bytes = static_cast<const std::byte*>(source);
    late_.push_back(
        [make, copy = std::vector<std::byte>(bytes, bytes + size_bytes)] { make(copy.data()); });
  }

  void deliver() {
    const auto work = std::exchange(late_, {});
    std::vector<std::size_t> order(work.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::size_t i : order) {
      work[i]();
      if (between_)
        between_();
    }
    below().quiet(0);
  }

  std::mt19937 random_;
  std::function<void()> between_;
  std::vector<std::function<void()>> late_;
};

} // namespace shmemctl::test
