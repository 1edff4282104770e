// Samples the NICs of this machine, shows them on a terminal or as log lines, and puts them into a
// report.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "reports/report.h"
#include "reports/table.h"
#include "src/instruments/hotspots/hotspots.h"
#include "src/instruments/hotspots/watched_command.h"

namespace shmemctl {

/// How the machine was watched: what the report contains besides the loads.
struct WatchFacts {
  std::string mode; ///< as in the schema
  int samples = 0;
  std::optional<double> interval_s, core_share;
  std::vector<std::string> argv; ///< argv of the watched command, if there is one
  std::optional<CommandEnd> command;
};

/// Reads counters when the caller requests it.
class HotspotWatch {
public:
  HotspotWatch(const Sysroot& sysroot, const Node& node);
  void sample(SampleDepth depth);
  /// Samples the load counters; once a second all counters.
  void sample();
  /// Starts an interval: interval() has the totals since the last sample before this call.
  void begin_interval() { interval_ = totals_.from_here(); }
  const NodeTotals& totals() const { return totals_; }
  /// Only after begin_interval().
  const NodeTotals& interval() const { return *interval_; }
  int samples() const { return samples_; }
  /// CPU time of the samples after the first one as a share of the time since that one.
  std::optional<double> core_share() const;
  std::size_t counters() const { return sampler_.counters(); }

private:
  CounterSampler sampler_;
  NodeSample last_;
  NodeTotals totals_;
  std::optional<NodeTotals> interval_;
  int samples_ = 0;
  double first_s_ = 0, last_all_s_ = 0, cpu_s_ = 0;
};

/// Samples at that interval until `done`, called before each pause and sample, returns true.
/// @param pause waits for at most this many seconds
/// @param tick  called after each sample
void sample_until(HotspotWatch& watch, double interval_s, const std::function<bool()>& done,
                  const std::function<void(double)>& pause, const std::function<void()>& tick);
/// Samples for a fixed time; the last sample is at its end.
void sample_for(HotspotWatch& watch, double interval_s, double duration_s);

/// Rows for the report's `nic_counters`.
std::vector<NicCounter> counter_rows(const NodeTotals& totals, const std::string& host);

/// Sets `hotspots` of the report.
void put_section(Report& report, const Hotspots& hotspots, const NicThresholds& thresholds,
                 const WatchFacts& facts);
/// Sets `hotspots` of the report, and adds findings.
void put_hotspots(Report& report, const Hotspots& hotspots, const NicThresholds& thresholds,
                  const WatchFacts& facts);

/// Raises the limit of open files as far as allowed, for one file per counter; the destructor
/// restores it.
class ManyFiles {
public:
  ManyFiles();
  ManyFiles(const ManyFiles&) = delete;
  ManyFiles& operator=(const ManyFiles&) = delete;
  ~ManyFiles();

private:
  std::optional<std::uint64_t> before_;
};

class HotspotLog {
public:
  /// @param page redraw the terminal instead of adding lines
  HotspotLog(std::ostream& out, const TextStyle& style, bool page)
      : out_(out), style_(style), page_(page) {}
  /// Prints what happened since the last call.
  void show(const Hotspots& now, const NicThresholds& thresholds);

private:
  std::ostream& out_;
  TextStyle style_;
  bool page_;
};

/// One line per link: time, host, NIC, rates, direction, and problems:
/// "2026-11-23T00:10:00.000Z node7 mlx5_0:1 sent 38.1 GB/s 76% received 0 GB/s 0% sent HOT".
std::string log_lines(const Hotspots& now, const std::string& time);

} // namespace shmemctl
