// `shmemctl hotspots`: the load of each NIC, and which NICs are hot, congested or lossy.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fmt/format.h>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

#include "cli/help_format.h"
#include "cli/host_description.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "reports/text.h"
#include "src/base/finding.h"
#include "src/base/input.h"
#include "src/base/options.h"
#include "src/base/secret_filter.h"
#include "src/base/text.h"
#include "src/instruments/hotspots/gather_hosts.h"
#include "src/instruments/hotspots/watch.h"
#include "src/instruments/launch/spawn.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/mapping/mapping_json.h"
#include "src/model/topo/mapping/request.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/readers/sysfs_nics.h"
#include "src/model/topo/writers/writer.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/identity.h"

namespace shmemctl {

namespace {

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

/// The rounds of --watch: the same on every PE, whatever its clock.
class WatchRounds {
public:
  explicit WatchRounds(const HotspotFlags& flags);
  bool next();
  double length_s() const { return length_s_; }

private:
  double every_s_, left_s_, length_s_ = 0;
};

/// The name of this machine, or of the machine that the recorded tree is from.
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

/// The error for invalid flags of hotspots.
Error bad_hotspots(const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, "hotspots", "", problem, fix};
}

/// The thresholds of the file, or those of this binary.
NicThresholds read_thresholds(const std::string& file) {
  return file.empty() ? parse_nic_thresholds(nic_thresholds_text(), "built in")
                      : parse_nic_thresholds(read_input(file), file);
}

/// The node, its name and its mapping.
void read_node(HotspotRun& run) {
  run.source = run.session.load({});
  const Node& node = run.source.node;
  run.host = node.hostname.empty() ? host_name(*run.source.sysroot) : node.hostname;
  run.session.phase("mapping PEs to NICs");
  run.mapping = map_nics(node, mapping_request(run.options, node));
}

/// The parameters of the watch, for the report.
WatchFacts facts_of(const HotspotRun& run, const HotspotWatch& watch, const char* mode) {
  WatchFacts facts;
  facts.mode = mode;
  facts.samples = watch.samples();
  facts.interval_s = run.flags.interval_s;
  facts.core_share = watch.core_share();
  return facts;
}

/// Opens the counters' files and reads them once.
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

// Under a launcher: all machines of a job together.

/// One PE of a job that watches its NICs.
class JobWatch {
public:
  JobWatch(HotspotRun& run, Bootstrap& bootstrap)
      : run_(run), bootstrap_(bootstrap), gathering_(bootstrap, machine(run), deadline(0)) {
    Report& report = run.session.report();
    report.job = {bootstrap.size(), static_cast<int>(gathering_.hosts().size()), bootstrap.name(),
                  launcher_name(run.context.environment)};
    describe_hosts();
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
    run_.session.set_deadline(std::nullopt); // the watch lasts until it is interrupted
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
      if (leads_job() && !require_stdout()) // later tables would not be shown
        throw Error(ExitCode::unavailable, "stdout", "write", "nobody reads it any more",
                    "keep the program that reads stdout running, redirect stdout to a file, or "
                    "pass --quiet");
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

  /// Collective.
  void describe_hosts() {
    std::vector<HostPes> places;
    for (const JobHost& host : gathering_.hosts())
      places.push_back({host.leader, host.pes, {static_cast<int>(places.size())}});
    std::optional<HostDescription> own;
    for (const HostPes& place : places)
      if (place.leader == bootstrap_.rank())
        own = describe_host(run_.source.node, run_.mapping, place.pes, place,
                            with_virtual_interfaces(run_.source.node, *run_.source.sysroot),
                            run_.source.sysroot.get());
    JobHosts all =
        gather_job_hosts(places, bootstrap_.rank(), own, [this](const std::string& text) {
          return allgather_text(bootstrap_, text, deadline(0));
        });
    Report& report = run_.session.report();
    report.hosts = std::move(all.hosts);
    report.other_nodes = std::move(all.other_nodes);
  }

  void begin() {
    if (gathering_.leads())
      watch_ = begin_watch(run_);
  }

  void sample_round() {
    run_.session.phase("sampling the counters");
    if (watch_) // the other PEs wait in gather()
      sample_for(*watch_, std::min(run_.flags.interval_s, round_s_), round_s_);
  }

  /// The users of this machine's ports, according to the mapping.
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
  Hotspots gather(const NodeTotals* totals) {
    run_.session.phase("gathering the counters of " + std::to_string(gathering_.hosts().size()) +
                       " hosts");
    HostPart part{totals, {}};
    if (totals)
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
    const Report& report = run_.session.report();
    const bool wrong = leads_job() && has_finding(report.findings, report.fail_on);
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

/// Whether a launcher started this process as one of several that watch together.
bool watches_as_job(const Context& context, const HotspotFlags& flags) {
  return !flags.during && flags.sysroot_after.empty() && launched_size(context.environment) > 1;
}

/// The first PE of each machine watches it; PE 0 shows all of them.
ExitCode run_hotspots_job(const Context& context, const HotspotFlags& flags) {
  return with_bootstrap(context, [&flags](const BootstrapSession& job) {
    if (!flags.thresholds.empty())
      job.session.phase("reading " + flags.thresholds);
    NicThresholds limits = read_thresholds(flags.thresholds);
    HotspotRun run{job.session, job.context, job.options, flags, std::move(limits), {}, "", {}};
    read_node(run);
    JobWatch watch(run, job.bootstrap);
    return flags.watch_s ? watch.again_and_again() : watch.for_a_time();
  });
}

// This machine alone.

constexpr double timeout_poll_s = 0.1; ///< --timeout may end a command this much late
constexpr double report_every_s = 1;   ///< interval of checkpoints, in case the run dies

/// Adds the node and its mapping to the report.
void describe(HotspotRun& run) {
  read_node(run);
  const Node& node = run.source.node;
  Report& report = run.session.report();
  report.job.pes = static_cast<int>(run.mapping.pes.size());
  report.hosts = nlohmann::json::array({described_host(node, run.source.sysroot.get())});
  put_node(node, run.mapping, report);
}

Hotspots hotspots_of(const HotspotRun& run, const NodeTotals& totals) {
  Hotspots hotspots = read_hotspots(totals, run.host, run.thresholds);
  attribute(hotspots, run.host, run.source.node, run.mapping);
  judge_groups(hotspots, run.thresholds.outliers);
  return hotspots;
}

/// The report of the run so far.
void put(HotspotRun& run, const NodeTotals& totals, const WatchFacts& facts) {
  Report& report = run.session.report();
  report.findings.clear();
  report.nic_counters = counter_rows(totals, run.host);
  put_hotspots(report, hotspots_of(run, totals), run.thresholds, facts);
  run.session.checkpoint();
}

ExitCode compare(HotspotRun& run) {
  run.session.phase("reading the trees");
  const Sysroot after(run.flags.sysroot_after);
  const Sysroot& before = *run.source.sysroot;
  const NodeTotals totals =
      compare_trees(before, with_virtual_interfaces(run.source.node, before), after,
                    with_virtual_interfaces(read_machine(after), after), run.flags.window_s);
  WatchFacts facts;
  facts.mode = "trees";
  facts.samples = 2;
  put(run, totals, facts);
  return run.session.finish();
}

ExitCode watch_for(HotspotRun& run) {
  const double duration_s = run.flags.duration();
  run.session.set_deadline(duration_s + run.options.number("TIMEOUT"));
  const auto watch = begin_watch(run);
  run.session.phase("sampling the counters");
  sample_for(*watch, std::min(run.flags.interval_s, duration_s), duration_s);
  watch->sample(SampleDepth::all);
  put(run, watch->totals(), facts_of(run, *watch, "time"));
  return run.session.finish();
}

ExitCode watch_again_and_again(HotspotRun& run) {
  const auto watch = begin_watch(run);
  run.session.set_deadline(std::nullopt); // runs until interrupted
  run.session.leave_terminal();
  const TextStyle style = text_style(run.context, run.options);
  HotspotLog log(std::cout, style,
                 !run.context.no_progress && is_terminal(STDOUT_FILENO, run.context.environment));
  for (WatchRounds rounds(run.flags); rounds.next();) {
    watch->begin_interval();
    sample_for(*watch, std::min(run.flags.interval_s, rounds.length_s()), rounds.length_s());
    put(run, watch->totals(), facts_of(run, *watch, "watch"));
    if (run.session.wants_text())
      log.show(hotspots_of(run, watch->interval()), run.thresholds);
    if (!require_stdout()) // later rounds would not be shown
      break;
  }
  watch->sample(SampleDepth::all);
  put(run, watch->totals(), facts_of(run, *watch, "watch"));
  return run.session.finish();
}

void add_command_finding(Report& report, const std::vector<std::string>& argv,
                         const CommandEnd& end) {
  if (end.exit_code == 0 && !end.timed_out)
    return;
  const std::string how = end.timed_out   ? "it timed out"
                          : end.exit_code ? fmt::format("exit code {}", *end.exit_code)
                                          : "ended by " + end.signal;
  report.findings.push_back({"command-failed", Severity::error, argv[0],
                             "the watched command failed: " + how,
                             "run it without hotspots and check its output"});
}

ExitCode watch_command(HotspotRun& run, const CommandKeeper& keeper) {
  const std::vector<std::string>& watched = run.context.watched_command;
  const std::string program = run.context.watches_itself
                                  ? own_program()
                                  : find_program(watched[0], run.context.environment);
  const auto given = run.context.command_line.find("TIMEOUT");
  const double timeout_s =
      given == run.context.command_line.end() ? 0 : parse_number(given->second).value_or(0);
  const auto watch = begin_watch(run);
  run.session.set_deadline(std::nullopt);
  std::vector<std::string> argv = watched;
  if (run.context.watches_itself)
    argv.insert(argv.begin(), "shmemctl");
  const bool data_is_ours = run.context.json_path == "-" || run.context.csv_path == "-";
  std::cout.flush();
  run.session.leave_terminal();
  WatchedCommand command(program, argv, run.context.environment, data_is_ours, &keeper);
  run.session.output().ask_before_ending([&command](int signal, bool from_terminal) {
    command.hand_on(signal, from_terminal);
    return true;
  });
  const double start_s = monotonic_s();
  WatchFacts facts;
  const auto facts_now = [&] {
    facts = facts_of(run, *watch, "command");
    facts.argv = SecretFilter(run.options)(watched);
    facts.command = command.end();
    return facts;
  };
  double next_s = start_s;
  const auto done = [&] {
    if (timeout_s > 0 && monotonic_s() > start_s + timeout_s)
      command.time_out();
    return command.ended();
  };
  sample_until(
      *watch, run.flags.interval_s, done,
      [&command](double rest_s) { command.wait(std::min(rest_s, timeout_poll_s)); },
      [&] {
        if (monotonic_s() < next_s)
          return;
        next_s = monotonic_s() + report_every_s;
        put(run, watch->totals(), facts_now());
      });
  watch->sample(SampleDepth::all);
  if (command.interrupted() || command.end().timed_out)
    command.end_rest();
  run.session.output().ask_before_ending({});
  put(run, watch->totals(), facts_now());
  add_command_finding(run.session.report(), watched, command.end());
  if (command.interrupted())
    return run.session.finish_early(ExitCode::interrupted);
  if (command.end().timed_out)
    return run.session.finish_early(ExitCode::deadline);
  return run.session.finish();
}

void check_flags(const Context& context, const Options& options, const HotspotFlags& flags) {
  if (flags.during && context.watched_command.empty())
    throw bad_hotspots("--during needs a command", "write shmemctl hotspots --during CMD ARGS...");
  if (flags.during && (flags.watch_s || flags.duration_s))
    throw bad_hotspots(
        "--watch and --duration cannot be combined with --during, which ends with its command",
        "omit --watch and --duration; --timeout SECONDS before --during limits the command");
  if (!flags.sysroot_after.empty() && options.text("SYSROOT").empty())
    throw bad_hotspots("--sysroot-after needs --sysroot", "pass the earlier tree with --sysroot");
  if (!flags.sysroot_after.empty() && (flags.during || flags.watch_s || flags.duration_s))
    throw bad_hotspots("--during, --watch and --duration cannot be combined with --sysroot-after, "
                       "which compares recorded trees",
                       "omit these three, or --sysroot-after");
  if (flags.window_s && flags.sysroot_after.empty())
    throw bad_hotspots("--window needs --sysroot-after: it is the time between two recorded trees",
                       "pass --sysroot and --sysroot-after, or use --duration to set how long to "
                       "watch this machine");
}

ExitCode run_hotspots(Context& context, const HotspotFlags& flags) {
  if (watches_as_job(context, flags)) {
    check_flags(context, context.options(), flags);
    return run_hotspots_job(context, flags);
  }
  std::optional<CommandKeeper> keeper;
  if (flags.during)
    keeper.emplace(); // before there are threads
  return with_session(context, [&](Session& session, const Options& options) {
    check_flags(context, options, flags);
    if (!flags.thresholds.empty())
      session.phase("reading " + flags.thresholds);
    HotspotRun run{session, context, options, flags, read_thresholds(flags.thresholds), {}, "", {}};
    describe(run);
    if (!flags.sysroot_after.empty())
      return compare(run);
    if (keeper)
      return watch_command(run, *keeper);
    return flags.watch_s ? watch_again_and_again(run) : watch_for(run);
  });
}

void add_hotspot_flags(CLI::App& command, HotspotFlags& flags) {
  const auto seconds = [&](const char* name, std::optional<double>& to, const char* doc,
                           double min_s, double max_s) {
    command.add_option(name, to, doc)->type_name("SECONDS")->check(CLI::Range(min_s, max_s));
  };
  seconds("--watch", flags.watch_s,
          "Show the load again and again, at this interval (without a number: 1; not with --during "
          "or --sysroot-after)",
          0.05, 86400);
  seconds("-D,--duration", flags.duration_s,
          "End after this time (default 2; with --watch: until interrupted; not with --during or "
          "--sysroot-after)",
          0.05, 1e7);
  command.add_flag("--during", flags.during,
                   "Watch while a command runs, for any time unless --timeout is given: all words "
                   "after this flag are the command (not with --watch, -D or --sysroot-after)");
  command
      .add_option("--interval", flags.interval_s,
                  "Time between two readings of the load counters (default 0.1; others are read "
                  "once a second at most); a peak rate is the average over one such interval")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.01, 3600.0));
  command
      .add_option("--sysroot-after", flags.sysroot_after,
                  "Report what changed from the copy --sysroot, which must be given, to this later "
                  "one of the same machine (not with --during, --watch or --duration)")
      ->type_name("DIR");
  seconds("--window", flags.window_s,
          "Time that passed between the two copies (default: by /proc/uptime in both; only with "
          "--sysroot-after)",
          1e-3, 1e9);
  command
      .add_option("--thresholds", flags.thresholds,
                  "Judge the counters by the thresholds in this file instead of the built-in ones")
      ->type_name("FILE");
}

} // namespace

namespace {

constexpr const char* default_watch_s = "1";

/// Whether a word is the value of the preceding flag, not a flag itself; "-1" counts as an invalid
/// value.
bool is_value(const std::string& word) {
  return !starts_with(word, "-") ||
         (word.size() > 1 &&
          (std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.'));
}

/// "--watch -D 10" -> "--watch 1 -D 10", up to the command of --during, whose words are its own.
/// The parser does not support an optional value: it would take the next word as the value.
std::vector<std::string> with_watch_interval(std::vector<std::string> arguments,
                                             std::ptrdiff_t first) {
  const auto end = std::find(arguments.begin() + first, arguments.end(), "--during");
  const auto watch = std::find(arguments.begin() + first, end, "--watch");
  if (watch != end && (watch + 1 == arguments.end() || !is_value(*(watch + 1))))
    arguments.insert(watch + 1, default_watch_s);
  return arguments;
}

} // namespace

std::vector<std::string> take_watched_command(const CLI::App& app, Context& context,
                                              std::vector<std::string> arguments) {
  const auto is_subcommand = [&app](const std::string& word) {
    return find_subcommand(app, word) != nullptr;
  };
  const auto subcommand = std::find_if(arguments.begin(), arguments.end(), is_subcommand);
  if (subcommand == arguments.end() || *subcommand != "hotspots")
    return arguments;
  const std::ptrdiff_t first = subcommand - arguments.begin();
  arguments = with_watch_interval(std::move(arguments), first);
  const auto during = std::find(arguments.begin() + first, arguments.end(), "--during");
  if (during == arguments.end())
    return arguments;
  auto command = during + 1;
  if (command != arguments.end() && *command == "--")
    ++command;
  context.watched_command.assign(command, arguments.end());
  context.watches_itself =
      !context.watched_command.empty() && is_subcommand(context.watched_command[0]);
  if (!context.watched_command.empty() && !context.watches_itself)
    require_program(app, context.watched_command[0], context.environment);
  arguments.erase(during + 1, arguments.end());
  return arguments;
}

void add_hotspots(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "hotspots", "Show NIC load, imbalance, congestion and loss from hardware counters");
  command->footer(
      "Reads the counters of every RDMA port, network interface and EFA device of this machine.\n"
      "The exit code is 1 if there is a finding of severity error or the command failed; the\n"
      "command's exit code is in the report. The command after --during may also be a subcommand\n"
      "of shmemctl. Without --during, under mpirun, srun or shmemctl run, one process per machine\n"
      "reads the counters and PE 0 shows all of them.\n"
      "Examples:\n"
      "  shmemctl hotspots\n"
      "  shmemctl hotspots --watch\n"
      "  shmemctl hotspots --json nics.json --during mpirun -n 16 ./job\n"
      "  shmemctl hotspots --during run -n 8 moe\n"
      "  srun -N 16 --ntasks-per-node=1 shmemctl hotspots -D 30\n"
      "  shmemctl hotspots --sysroot before --sysroot-after after");
  auto flags = std::make_shared<HotspotFlags>();
  add_hotspot_flags(*command, *flags);
  add_option(*command, context, "SYSROOT");
  add_mapping_flags(*command, context);
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) { return run_hotspots(run_context, *flags); };
  });
}

} // namespace shmemctl
