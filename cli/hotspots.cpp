// `shmemctl hotspots`: the load of each NIC, and which NICs are hot, congested or lossy.
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <unistd.h>

#include "cli/hotspots.h"
#include "cli/terminal.h"
#include "reports/text.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/hotspots/watch.h"
#include "src/launch/spawn.h"
#include "src/topo/readers/reader.h"
#include "src/topo/readers/sysfs_nics.h"
#include "src/topo/writers/host_json.h"

namespace shmemctl {

namespace {

constexpr double timeout_poll_s = 0.1; ///< how much longer than --timeout a command may run
constexpr double report_every_s = 1;   ///< interval of checkpoints, in case the run dies

/// The node and its mapping into the report.
void describe(HotspotRun& run) {
  read_node(run);
  const Node& node = run.source.node;
  Report& report = run.session.report();
  report.job.pes = static_cast<int>(run.mapping.pes.size());
  report.hosts = nlohmann::json::array({host_json(node, run.source.sysroot.get())});
  put_node(node, run.mapping, report);
}

Hotspots hotspots_of(const HotspotRun& run, const NodeTotals& totals) {
  Hotspots hotspots = read_hotspots(totals, run.host, run.thresholds);
  attribute(hotspots, run.host, run.source.node, run.mapping);
  judge_groups(hotspots, run.thresholds.outliers);
  return hotspots;
}

/// The report as it would be if the run ended now.
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
  const TextStyle style = text_style(run.context, run.options);
  HotspotLog log(std::cout, style,
                 !run.context.no_progress && is_terminal(STDOUT_FILENO, run.context.environment));
  for (WatchRounds rounds(run.flags); rounds.next();) {
    watch->begin_interval();
    sample_for(*watch, std::min(run.flags.interval_s, rounds.length_s()), rounds.length_s());
    put(run, watch->totals(), facts_of(run, *watch, "watch"));
    if (run.session.wants_text())
      log.show(hotspots_of(run, watch->interval()), run.thresholds);
    require_stdout(); // later rounds would not be shown
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
    throw bad_hotspots("--during ends with its command",
                       "omit --watch and --duration; --timeout SECONDS limits the command");
  if (!flags.sysroot_after.empty() && options.text("SYSROOT").empty())
    throw bad_hotspots("--sysroot-after needs --sysroot", "pass the earlier tree with --sysroot");
  if (!flags.sysroot_after.empty() && (flags.during || flags.watch_s || flags.duration_s))
    throw bad_hotspots("recorded trees cannot be watched", "omit --during, --watch and --duration");
  if (flags.window_s && flags.sysroot_after.empty())
    throw bad_hotspots("--window is the time between two recorded trees",
                       "pass --sysroot and --sysroot-after, or use --duration");
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
  seconds("--watch", flags.watch_s, "Show the load repeatedly at this interval", 0.05, 86400);
  seconds("-D,--duration", flags.duration_s,
          "End after this time (default 2; with --watch: until interrupted)", 0.05, 1e7);
  command.add_flag(
      "--during", flags.during,
      "Watch while the command runs that follows this flag; all later arguments are its own");
  command
      .add_option("--interval", flags.interval_s,
                  "Sampling interval (default 0.1); peak rates are averages over one interval")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.01, 3600.0));
  command
      .add_option("--sysroot-after", flags.sysroot_after,
                  "Compare --sysroot with this later copy of the same tree")
      ->type_name("DIR");
  seconds("--window", flags.window_s,
          "Time between the two copies (default: from /proc/uptime in both)", 1e-3, 1e9);
  command
      .add_option("--thresholds", flags.thresholds,
                  "Read thresholds from this file instead of the built-in ones")
      ->type_name("FILE");
}

} // namespace

std::vector<std::string> take_watched_command(const CLI::App& app, Context& context,
                                              std::vector<std::string> arguments) {
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_subcommand = [&all](const std::string& word) {
    return std::any_of(all.begin(), all.end(),
                       [&word](const CLI::App* child) { return child->get_name() == word; });
  };
  const auto first = std::find_if(arguments.begin(), arguments.end(), is_subcommand);
  if (first == arguments.end() || *first != "hotspots")
    return arguments;
  const auto during = std::find(first, arguments.end(), "--during");
  if (during == arguments.end())
    return arguments;
  auto command = during + 1;
  if (command != arguments.end() && *command == "--")
    ++command;
  context.watched_command.assign(command, arguments.end());
  context.watches_itself =
      !context.watched_command.empty() && is_subcommand(context.watched_command[0]);
  arguments.erase(during + 1, arguments.end());
  return arguments;
}

void add_hotspots(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "hotspots", "Show NIC load, imbalance, congestion and loss from hardware counters");
  command->footer(
      "Reads the counters of every RDMA port, network interface and EFA device of this machine.\n"
      "The exit code is 1 if there is a finding of severity error or the command failed; the\n"
      "command's exit code is in the report. After --during, a subcommand of shmemctl may stand\n"
      "in place of a command. Under mpirun, srun or shmemctl run, one process per machine reads\n"
      "the counters and PE 0 shows all of them.\n"
      "Examples:\n"
      "  shmemctl hotspots\n"
      "  shmemctl hotspots --watch 1\n"
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
