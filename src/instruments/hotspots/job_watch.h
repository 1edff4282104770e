// What the NICs of all machines of a job counted while it ran, compared with what its transports
// report.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/hotspots/hotspots.h"
#include "src/instruments/hotspots/sampler.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// Bytes that a PE on this host reports for one port.
struct PortClaim {
  std::string host;
  NicTraffic traffic;
};

/// `traffic-elsewhere` for each port and direction whose counters show less than `claims` say: the
/// transport silently used another path. A port without moved_bytes() gives no finding.
Findings judge_claims(const std::vector<HostTotals>& hosts, const std::vector<PortClaim>& claims);

/// What one PE reports to PE 0.
struct WatchPart {
  bool leads = false; ///< whether it has read its machine's counters into `totals`
  NodeTotals totals = NodeTotals(std::vector<PortTotals>());
  std::size_t left_out = 0;       ///< counters omitted because the text was full
  std::vector<NicTraffic> claims; ///< traffic that its transports report
  std::vector<HcaPort> mapped;    ///< the ports that the mapping gives it
};
/// At most about `max_bytes`: the least informative counters are omitted first.
std::string watch_text(const WatchPart& part, std::size_t max_bytes);
/// Throws Error (unavailable) for a text that cannot be parsed.
WatchPart read_watch_text(const std::string& text, const std::string& host);

/// The parts of all PEs, merged.
struct WatchVerdict {
  std::vector<HostTotals> hosts;
  Hotspots hotspots;
  Findings findings;
};
/// @param parts     by PE
/// @param alike     the PEs are expected to send and receive equal amounts
/// @param networked the job uses a network: otherwise NIC traffic is reported, and only broken
/// links and the like are findings
WatchVerdict judge_watch(const std::vector<WatchPart>& parts, const std::vector<JobHost>& hosts,
                         const NicThresholds& thresholds, bool alike, bool networked);

/// Sets `nic_counters` and `hotspots` of the report (neither if no machine has an RDMA port) and
/// adds the findings.
void put_job_watch(Report& report, const WatchVerdict& verdict, const NicThresholds& thresholds);

/// Reads the RDMA port counters of every machine of a job, by one PE per machine, at construction
/// and at the end. Reads below the option SYSROOT where a PE has it.
class NicWatch {
public:
  /// Collective.
  NicWatch(Runtime& runtime, const Options& options);
  /// Collective: reads again and gathers. On PE 0 sets `nic_counters` and `hotspots` of the report
  /// and adds findings. Returns true on every PE if one of them is of severity error.
  bool end(Report& report, bool alike);

private:
  void sample();

  Runtime& runtime_;
  std::vector<JobHost> hosts_;
  std::vector<HcaPort> mapped_;
  std::optional<CounterSampler> sampler_; ///< set if this PE reads the counters of its machine
  std::optional<NodeTotals> totals_;
  NodeSample last_;
  std::vector<NicTraffic> claimed_before_;
};

/// `slow-nic` for each port through which long transfers ran at less than 0.6 times the median rate
/// of the other ports of its host or, if it is the only one there, of all other ports. A port's
/// rate is the sum over its PEs of bytes divided by the time in which transfers were in flight. A
/// port with less than 4 MiB of long transfers is not judged.
Findings judge_paces(const std::vector<PortClaim>& claims);

} // namespace shmemctl
