// `shmemctl hotspots` under a launcher: the machines of a job side by side.
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/hotspots.h"
#include "cli/terminal.h"
#include "reports/text.h"
#include "src/bootstrap/select.h"
#include "src/hotspots/gather_hosts.h"
#include "src/hotspots/watch.h"
#include "src/runtime/identity.h"
#include "src/topo/mapping/mapping_json.h"
#include "src/topo/writers/host_json.h"

namespace shmemctl {

namespace {

/// One PE of a job that watches.
class JobWatch {
public:
  JobWatch(HotspotRun& run, Bootstrap& bootstrap)
      : run_(run), bootstrap_(bootstrap), gathering_(bootstrap, machine(run), deadline(0)) {
    Report& report = run.session.report();
    report.job = {bootstrap.size(), static_cast<int>(gathering_.hosts().size()), bootstrap.name(),
                  launcher_name(run.context.environment)};
    report.hosts = nlohmann::json::array();
    const auto mine = gathering_.leads() ? host_json(run.source.node, run.source.sysroot.get())
                                         : nlohmann::json();
    for (nlohmann::json& host : gathering_.gather_values(mine, deadline(0)))
      if (host.is_object())
        report.hosts.push_back(std::move(host));
    if (leads_job())
      put_node(run.source.node, numbered_by_job(run.mapping, gathering_.my_host().pes), report);
    run.session.checkpoint();
  }

  ExitCode for_a_time() {
    round_s_ = run_.flags.duration();
    run_.session.set_deadline(round_s_ + 2 * timeout_s());
    begin();
    sample_round();
    return conclude("time");
  }

  ExitCode again_and_again() {
    run_.session.set_deadline(std::nullopt); // lasts until it is interrupted
    begin();
    const TextStyle style = text_style(run_.context, run_.options);
    HotspotLog log(std::cout, style,
                   !run_.context.no_progress &&
                       is_terminal(STDOUT_FILENO, run_.context.environment));
    for (WatchRounds rounds(run_.flags); rounds.next();) {
      round_s_ = rounds.length_s();
      if (watch_)
        watch_->begin_interval();
      sample_round();
      const Hotspots now = gather(watch_ ? &watch_->interval() : nullptr);
      put("watch");
      if (leads_job() && run_.session.wants_text())
        log.show(now, run_.thresholds);
      if (leads_job())
        require_stdout(); // the next ones would not be shown
    }
    return conclude("watch");
  }

private:
  static PeMachine machine(const HotspotRun& run) {
    const HostIdentity identity = read_machine_identity(*run.source.sysroot);
    return {identity.machine_id, run.host};
  }
  double timeout_s() const { return run_.options.number("TIMEOUT"); }
  Deadline deadline(double more_s) const {
    return Deadline::after(std::chrono::duration<double>(timeout_s() + more_s));
  }
  bool leads_job() const { return bootstrap_.rank() == 0; }

  void begin() {
    if (gathering_.leads())
      watch_ = begin_watch(run_);
  }

  void sample_round() {
    run_.session.phase("sampling the counters");
    if (watch_) // the others wait in gather()
      sample_for(*watch_, std::min(run_.flags.interval_s, round_s_), round_s_);
  }

  /// Of this machine, according to the mapping.
  std::vector<PortUser> users() const {
    const Mapping mapping = numbered_by_job(run_.mapping, gathering_.my_host().pes);
    std::vector<PortUser> users;
    for (const NicLoad& load : mapping.nics)
      for (const int pe : load.pes) {
        PortUser user;
        user.device = run_.source.node.nics[static_cast<std::size_t>(load.nic)].name;
        user.port = load.port;
        user.moved.pe = pe;
        users.push_back(std::move(user));
      }
    return users;
  }

  /// Collective. The counters of all machines; only on PE 0.
  Hotspots gather(const NodeTotals* mine) {
    run_.session.phase("gathering the counters of " + std::to_string(gathering_.hosts().size()) +
                       " hosts");
    HostPart part{mine, {}};
    if (mine)
      part.users = users();
    last_ = gathering_.gather(part, deadline(round_s_));
    if (!leads_job())
      return {};
    return hotspots_of_job(last_.hosts, last_.users, run_.thresholds, &run_.thresholds.outliers);
  }

  /// Collective. Adds everything since the start to PE 0's report.
  void put(const char* mode) {
    const Hotspots all = gather(watch_ ? &watch_->totals() : nullptr);
    if (!leads_job())
      return;
    Report& report = run_.session.report();
    report.findings.clear();
    report.nic_counters.clear();
    for (const HostTotals& host : last_.hosts)
      for (NicCounter& row : counter_rows(host.totals, host.host))
        report.nic_counters.push_back(std::move(row));
    put_hotspots(report, all, run_.thresholds, facts_of(run_, *watch_, mode));
    run_.session.checkpoint();
  }

  ExitCode conclude(const char* mode) {
    if (watch_)
      watch_->sample(SampleDepth::all);
    put(mode);
    run_.session.phase("agreeing on the verdict");
    const bool wrong = leads_job() && has_error(run_.session.report().findings);
    const ExitCode code = gathering_.agree(wrong ? ExitCode::finding : ExitCode::ok, deadline(0));
    bootstrap_.finish(deadline(0));
    if (leads_job())
      run_.session.finish();
    return code;
  }

  HotspotRun& run_;
  Bootstrap& bootstrap_;
  JobGathering gathering_;
  std::unique_ptr<HotspotWatch> watch_; ///< only on a machine's first PE
  GatheredHosts last_;
  double round_s_ = 0;
};

} // namespace

bool watches_as_job(const Context& context, const HotspotFlags& flags) {
  return !flags.during && flags.sysroot_after.empty() && launched_size(context.environment) > 1;
}

ExitCode run_hotspots_job(Context context, const HotspotFlags& flags) {
  const Context given = context;
  // Only PE 0 writes files and prints, and which process that is is known only later.
  context.json_path.clear();
  context.csv_path.clear();
  context.quiet = true;
  return with_session(context, [&](Session& session, const Options& options) {
    session.phase("opening the bootstrap");
    BootstrapRequest request;
    request.options = &options;
    request.environment = context.environment;
    const std::unique_ptr<Bootstrap> bootstrap =
        open_bootstrap(std::move(request),
                       Deadline::after(std::chrono::duration<double>(options.number("TIMEOUT"))));
    if (bootstrap->rank() == 0) {
      context.json_path = given.json_path;
      context.csv_path = given.csv_path;
      context.quiet = given.quiet;
      session.output().set_targets({given.json_path, given.csv_path, given.force});
    }
    if (!flags.thresholds.empty())
      session.phase("reading " + flags.thresholds);
    HotspotRun run{session, context, options, flags, read_thresholds(flags.thresholds), {}, "", {}};
    read_node(run);
    JobWatch watch(run, *bootstrap);
    return flags.watch_s ? watch.again_and_again() : watch.for_a_time();
  });
}

} // namespace shmemctl
