// Shared by the modes of `shmemctl hotspots`.
#include <limits>
#include <unistd.h>

#include "cli/hotspots.h"
#include "src/base/input.h"
#include "src/topo/mapping/request.h"
#include "src/topo/readers/sysfs_nics.h"

namespace shmemctl {

namespace {

/// Of this machine, or of the one whose tree it is.
std::string host_name(const Sysroot& sysroot) {
  if (!sysroot.live()) {
    const auto recorded = sysroot.read_line("/proc/sys/kernel/hostname");
    return recorded && !recorded->empty() ? *recorded : "recorded";
  }
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0)
    return "localhost";
  name.resize(name.find('\0'));
  return name;
}

} // namespace

Error bad_hotspots(const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, "hotspots", "", problem, fix};
}

NicThresholds read_thresholds(const std::string& file) {
  return file.empty() ? parse_nic_thresholds(nic_thresholds_text(), "built in")
                      : parse_nic_thresholds(read_input(file), file);
}

void read_node(HotspotRun& run) {
  run.source = run.session.load({});
  const Node& node = run.source.node;
  run.host = node.hostname.empty() ? host_name(*run.source.sysroot) : node.hostname;
  run.session.phase("mapping PEs to NICs");
  run.mapping = map_nics(node, mapping_request(run.options, node));
}

WatchFacts facts_of(const HotspotRun& run, const HotspotWatch& watch, const char* mode) {
  WatchFacts facts;
  facts.mode = mode;
  facts.samples = watch.samples();
  facts.interval_s = run.flags.interval_s;
  facts.core_share = watch.core_share();
  return facts;
}

std::unique_ptr<HotspotWatch> begin_watch(HotspotRun& run) {
  run.session.phase("opening the counters");
  const ManyFiles many;
  auto watch = std::make_unique<HotspotWatch>(
      *run.source.sysroot, with_virtual_interfaces(run.source.node, *run.source.sysroot));
  watch->sample(SampleDepth::all);
  return watch;
}

WatchRounds::WatchRounds(const HotspotFlags& flags)
    : every_s_(flags.watch_s.value_or(flags.duration())),
      left_s_(flags.duration_s.value_or(std::numeric_limits<double>::infinity())) {}

bool WatchRounds::next() {
  constexpr double of_rounding_s = 1e-3;
  if (left_s_ < of_rounding_s)
    return false;
  length_s_ = std::min(every_s_, left_s_);
  left_s_ -= length_s_;
  return true;
}

} // namespace shmemctl
