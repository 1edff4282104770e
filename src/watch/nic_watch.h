// What the NICs' own counters say of a run, beside what the transports claim to have moved.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "src/runtime/runtime.h"
#include "src/topo/nic_counters.h"

namespace shmemctl::bench {

/// What this PE's transports claim so far, of all of them.
std::vector<NicTraffic> traffic_of(Runtime& runtime);

/// What PEs of one host claim of one port.
struct PortClaim {
  std::string host;
  NicTraffic traffic;
};

/// `traffic-elsewhere` for each port whose counters moved less than `claims` say: the transport
/// has silently gone another way. Ports without counters that count bytes give nothing.
Findings judge_claims(const std::vector<NicCounter>& counters,
                      const std::vector<PortClaim>& claims);

/// What one PE tells PE 0.
std::string watch_text(const std::vector<CounterChange>& changes,
                       const std::vector<NicTraffic>& claims);
/// Adds what watch_text() of a PE on that host says. Throws Error (unavailable) for a text that is
/// none.
void read_watch_text(const std::string& text, const std::string& host,
                     std::vector<NicCounter>& counters, std::vector<PortClaim>& claims);

/// Reads the counters of this machine's NICs when it is made (one PE of each machine does).
class NicWatch {
public:
  explicit NicWatch(Runtime& runtime);
  /// Collective: reads again; on PE 0 adds rows to `report.nic_counters`, and findings. True on
  /// every PE if traffic went elsewhere.
  bool end(Report& report);

private:
  Runtime& runtime_;
  bool reads_ = false; ///< this PE does, for its machine
  std::vector<CounterReading> before_;
  std::vector<NicTraffic> claimed_before_;
};

} // namespace shmemctl::bench
