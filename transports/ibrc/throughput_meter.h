// Measures how fast long transfers go through a NIC.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "transports/ibrc/job_view.h"

namespace shmemctl::ibrc {

/// Measures the long transfers of one QP set on one NIC; called under the QP set's lock. Excludes
/// short transfers: they would measure latency and the cost of reading the clock rather than
/// throughput.
class ThroughputMeter {
public:
  /// Half of the smallest transfer that is striped over two NICs.
  static constexpr std::size_t long_bytes = 16384;
  static bool concerns(std::size_t size_bytes) { return size_bytes >= long_bytes; }

  void begin() {
    if (in_flight_++ == 0)
      since_ = Clock::now();
  }
  void end(Nic& nic, std::size_t moved_bytes) {
    bytes_ += moved_bytes;
    if (--in_flight_ > 0)
      return;
    const auto busy = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since_);
    nic.long_bytes.fetch_add(bytes_, std::memory_order_relaxed);
    nic.long_ns.fetch_add(static_cast<std::uint64_t>(busy.count()), std::memory_order_relaxed);
    bytes_ = 0;
  }

private:
  using Clock = std::chrono::steady_clock;
  std::uint32_t in_flight_ = 0;
  std::uint64_t bytes_ = 0; ///< of long transfers that ended since none was in flight last
  Clock::time_point since_;
};

} // namespace shmemctl::ibrc
