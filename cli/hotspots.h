// Shared by the modes of `shmemctl hotspots`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/session.h"
#include "src/hotspots/watch.h"
#include "src/topo/mapping/mapping.h"

namespace shmemctl {

struct HotspotFlags {
  std::string sysroot_after, thresholds;
  std::optional<double> watch_s, duration_s, window_s;
  double interval_s = 0.1;
  bool during = false;

  double duration() const { return duration_s.value_or(2); }
};

/// One run: on this machine, on a recorded tree, or as one PE of a job.
struct HotspotRun {
  Session& session;
  const Context& context;
  const Options& options;
  const HotspotFlags& flags;
  NicThresholds thresholds;
  NodeSource source;
  std::string host;
  Mapping mapping;
};

/// The node, its name and its mapping.
void read_node(HotspotRun& run);
/// How the run watched, for the report.
WatchFacts facts_of(const HotspotRun& run, const HotspotWatch& watch, const char* mode);
/// Opens the counters' files and reads them once.
std::unique_ptr<HotspotWatch> begin_watch(HotspotRun& run);

/// The rounds of --watch: the same on every PE, independent of its clock.
class WatchRounds {
public:
  explicit WatchRounds(const HotspotFlags& flags);
  bool next();
  double length_s() const { return length_s_; }

private:
  double every_s_, left_s_, length_s_ = 0;
};

/// The thresholds of the file, or those of this binary.
NicThresholds read_thresholds(const std::string& file);

/// The error for invalid flags of hotspots.
Error bad_hotspots(const std::string& problem, const std::string& fix);

/// Whether a launcher started this process as one of several that watch together.
bool watches_as_job(const Context& context, const HotspotFlags& flags);
/// The first PE of each machine watches it; PE 0 shows all of them.
ExitCode run_hotspots_job(Context context, const HotspotFlags& flags);

} // namespace shmemctl
