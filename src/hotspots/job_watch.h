// What the NICs of all machines of a job counted while it ran, compared with what its transports
// report.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "src/hotspots/hotspots.h"
#include "src/hotspots/sampler.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// What PEs of one host claim of one port.
struct PortClaim {
  std::string host;
  NicTraffic traffic;
};

/// `traffic-elsewhere` for each port whose counters moved less than `claims` say: the transport
/// has silently used another path. Ports without counters of such bytes give no finding.
Findings judge_claims(const std::vector<HostTotals>& hosts, const std::vector<PortClaim>& claims);

/// What one PE reports to PE 0.
struct WatchPart {
  bool leads = false; ///< it counted, for its machine
  NodeTotals totals = NodeTotals(std::vector<PortTotals>());
  std::size_t left_out = 0;       ///< counters that had no room in the text
  std::vector<NicTraffic> claims; ///< of its transports
  std::vector<HcaPort> mapped;    ///< the ports that the mapping gives it
};
/// At most about `most_bytes`: the least informative counters are omitted first.
std::string watch_text(const WatchPart& part, std::size_t most_bytes);
/// Throws Error (unavailable) for a text that is none.
WatchPart read_watch_text(const std::string& text, const std::string& host);

/// What all parts say.
struct WatchVerdict {
  std::vector<HostTotals> hosts;
  Hotspots hotspots;
  Findings findings;
};
/// @param parts     by PE
/// @param alike     the PEs ought to send and receive as much as each other
/// @param networked the job has a network to use: where it has none, what NICs do in the meantime
///                  is told, and only broken links and the like are findings
WatchVerdict judge_watch(const std::vector<WatchPart>& parts, const std::vector<JobHost>& hosts,
                         const NicThresholds& thresholds, bool alike, bool networked);

/// Sets `nic_counters` and `hotspots` of the report (neither if no machine has an RDMA port) and
/// adds the findings.
void put_job_watch(Report& report, const WatchVerdict& verdict, const NicThresholds& thresholds);

/// Reads the counters of the RDMA ports of every machine of a job, one PE for each machine, when it
/// is made and when it ends. Of the tree of the option SYSROOT, where a PE has that.
class NicWatch {
public:
  /// Collective.
  NicWatch(Runtime& runtime, const Options& options);
  /// Collective: reads again and gathers. On PE 0 sets `nic_counters` and `hotspots` of the report
  /// and adds findings. True on every PE if one of them is of severity error.
  bool end(Report& report, bool alike);

private:
  void sample();

  Runtime& runtime_;
  std::vector<JobHost> hosts_;
  std::vector<HcaPort> mapped_;
  std::optional<CounterSampler> sampler_; ///< this PE reads, for its machine
  std::optional<NodeTotals> totals_;
  NodeSample last_;
  std::vector<NicTraffic> claimed_before_;
};

/// `slow-nic` for each port through which long transfers went at less than 0.6 times the median
/// rate of the other ports of its host or, where it is the only one there, of all other ports. A
/// port's rate is the sum of what its PEs reached while they had transfers under way. A port with
/// less than 4 MiB of long transfers is not judged.
Findings judge_paces(const std::vector<PortClaim>& claims);

} // namespace shmemctl
