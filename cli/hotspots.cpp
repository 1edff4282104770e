// `shmemctl hotspots`: which NIC carries what, which is hot, congested or lossy.
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <thread>
#include <unistd.h>

#include "cli/session.h"
#include "reports/text.h"
#include "src/base/input.h"
#include "src/base/text.h"
#include "src/check/hotspot_log.h"
#include "src/check/hotspot_watch.h"
#include "src/launch/program.h"
#include "src/topo/advice/advice.h"
#include "src/topo/mapping/mapping_json.h"
#include "src/topo/mapping/request.h"
#include "src/topo/readers/reader.h"
#include "src/topo/writers/host_json.h"
#include "src/topo/writers/writer.h"

namespace shmemctl {

namespace {

constexpr double usual_duration_s = 2;
constexpr std::chrono::milliseconds look_at_command{5};
constexpr double all_counters_s = 1; ///< how often `ethtool -S` is asked, which may be dear

struct HotspotFlags {
  std::string sysroot_after, thresholds;
  std::optional<double> watch_s, duration_s, window_s;
  double interval_s = 0.1;
  bool during = false;
};

Error bad(const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, "hotspots", "start", problem, fix};
}

/// What all kinds of runs share.
struct Run {
  Session& session;
  const Context& context;
  const Options& options;
  const HotspotFlags& flags;
  NicThresholds thresholds;
  NodeSource source;
  std::string host;
  Mapping mapping;
};

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

NicThresholds read_thresholds(const std::string& file) {
  return file.empty() ? parse_nic_thresholds(nic_thresholds_text(), "built in")
                      : parse_nic_thresholds(read_input(file), file);
}

/// The node, its mapping, and both in the report.
void describe(Run& run) {
  run.source = run.session.load({});
  const Node& node = run.source.node;
  run.host = node.hostname.empty() ? host_name(*run.source.sysroot) : node.hostname;
  run.session.phase("mapping PEs to NICs");
  MappingRequest request = mapping_request(run.options, node);
  run.mapping = map_nics(node, request);
  request.policy = Policy::optimal;
  Report& report = run.session.report();
  report.job.pes = static_cast<int>(run.mapping.pes.size());
  report.hosts = nlohmann::json::array({host_json(node, run.source.sysroot.get())});
  report.topology = topology_json(node);
  report.mapping = mapping_json(node, run.mapping, advise(node, map_nics(node, request)));
}

Hotspots hotspots_of(const Run& run, const NodeTotals& totals) {
  Hotspots hotspots = read_hotspots(totals, run.host, run.thresholds);
  attribute(hotspots, run.host, run.source.node, run.mapping);
  judge_groups(hotspots, run.thresholds.outliers);
  return hotspots;
}

/// The report as it would be if the run ended now.
void put(Run& run, const NodeTotals& totals, const WatchFacts& facts) {
  Report& report = run.session.report();
  report.findings.clear();
  report.nic_counters = counter_rows(totals, run.host);
  put_hotspots(report, hotspots_of(run, totals), run.thresholds, facts);
  run.session.checkpoint();
}

WatchFacts facts_of(const Run& run, const HotspotWatch& watch, const char* mode) {
  WatchFacts facts;
  facts.mode = mode;
  facts.samples = watch.samples();
  facts.interval_s = run.flags.interval_s;
  facts.core_share = watch.core_share();
  return facts;
}

ExitCode compare(Run& run) {
  run.session.phase("reading the trees");
  const Sysroot after(run.flags.sysroot_after);
  const NodeTotals totals = compare_trees(*run.source.sysroot, run.source.node, after,
                                          read_machine(after), run.flags.window_s);
  WatchFacts facts;
  facts.mode = "trees";
  facts.samples = 2;
  put(run, totals, facts);
  return run.session.finish();
}

/// Samples at the set interval until `done` says so, which is asked every few milliseconds;
/// `tick` comes after each sample.
template <class Done, class Tick>
void sample_until(HotspotWatch& watch, double interval_s, Done&& done, Tick&& tick) {
  double next_s = monotonic_s() + interval_s;
  double next_all_s = monotonic_s() + all_counters_s;
  while (!done()) {
    const double now_s = monotonic_s();
    if (now_s < next_s) {
      const std::chrono::duration<double> rest(next_s - now_s);
      std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(rest, look_at_command));
      continue;
    }
    const bool all = now_s >= next_all_s;
    watch.sample(all ? SampleDepth::all : SampleDepth::files);
    if (all)
      next_all_s = now_s + all_counters_s;
    next_s = std::max(next_s + interval_s, now_s); // a late one is not made up for
    tick();
  }
  watch.sample(SampleDepth::all);
}

std::unique_ptr<HotspotWatch> begin(Run& run) {
  run.session.phase("opening the counters");
  const ManyFiles many;
  auto watch = std::make_unique<HotspotWatch>(*run.source.sysroot, run.source.node);
  watch->sample(SampleDepth::all);
  return watch;
}

ExitCode watch_for(Run& run) {
  const double duration_s = run.flags.duration_s.value_or(usual_duration_s);
  run.session.set_deadline(duration_s + run.options.number("TIMEOUT"));
  const auto watch = begin(run);
  run.session.phase("sampling the counters");
  const double end_s = monotonic_s() + duration_s;
  sample_until(
      *watch, std::min(run.flags.interval_s, duration_s),
      [end_s] { return monotonic_s() >= end_s; }, [] {});
  put(run, watch->totals(), facts_of(run, *watch, "time"));
  return run.session.finish();
}

ExitCode watch_again_and_again(Run& run) {
  const double every_s = *run.flags.watch_s;
  const double interval_s = std::min(run.flags.interval_s, every_s);
  const auto watch = begin(run);
  watch->begin_interval();
  run.session.set_deadline(std::nullopt); // it lasts as long as somebody looks
  const TextStyle style = text_style(run.context, run.options);
  HotspotLog log(std::cout, style, !run.context.no_progress && ::isatty(STDOUT_FILENO) == 1);
  const double start_s = monotonic_s();
  double next_s = start_s + every_s;
  const auto done = [&] {
    return run.flags.duration_s && monotonic_s() >= start_s + *run.flags.duration_s;
  };
  sample_until(*watch, interval_s, done, [&] {
    if (monotonic_s() < next_s)
      return;
    next_s += every_s;
    const Hotspots now = hotspots_of(run, watch->interval());
    watch->begin_interval();
    put(run, watch->totals(), facts_of(run, *watch, "watch"));
    if (run.session.wants_text())
      log.show(now, run.thresholds);
  });
  put(run, watch->totals(), facts_of(run, *watch, "watch"));
  return run.session.finish();
}

void add_command_finding(Report& report, const std::vector<std::string>& argv,
                         const CommandEnd& end) {
  if (end.exit_code == 0 && !end.timed_out)
    return;
  const std::string how = end.timed_out   ? "its time was over"
                          : end.exit_code ? fmt::format("exit code {}", *end.exit_code)
                                          : "ended by " + end.signal;
  report.findings.push_back({"command-failed", Severity::error, argv[0],
                             "the command that was watched failed: " + how,
                             "run it without hotspots, and look at what it says"});
}

ExitCode watch_command(Run& run) {
  const std::vector<std::string>& words = run.context.watched_command;
  const std::string program =
      run.context.watches_itself ? own_program() : find_program(words[0], run.context.environment);
  const auto given = run.context.command_line.find("TIMEOUT");
  const double timeout_s =
      given == run.context.command_line.end() ? 0 : parse_number(given->second).value_or(0);
  const auto watch = begin(run);
  run.session.set_deadline(std::nullopt);
  std::vector<std::string> argv = words;
  if (run.context.watches_itself)
    argv.insert(argv.begin(), "shmemctl");
  const bool data_is_ours = run.context.json_path == "-" || run.context.csv_path == "-";
  std::cout.flush();
  WatchedCommand command(program, argv, run.context.environment, data_is_ours);
  run.session.output().ask_before_ending([&command](int signal, bool from_terminal) {
    command.hand_on(signal, from_terminal);
    return true;
  });
  const double start_s = monotonic_s();
  WatchFacts facts;
  const auto facts_now = [&] {
    facts = facts_of(run, *watch, "command");
    facts.argv = words;
    facts.command = command.end();
    return facts;
  };
  double next_s = start_s;
  const auto done = [&] {
    if (timeout_s > 0 && monotonic_s() > start_s + timeout_s)
      command.time_out();
    return command.ended();
  };
  sample_until(*watch, run.flags.interval_s, done, [&] {
    if (monotonic_s() < next_s)
      return;
    next_s = monotonic_s() + all_counters_s;
    put(run, watch->totals(), facts_now());
  });
  run.session.output().ask_before_ending({});
  put(run, watch->totals(), facts_now());
  add_command_finding(run.session.report(), words, command.end());
  if (command.interrupted())
    return run.session.finish_early(ExitCode::interrupted);
  if (command.end().timed_out)
    return run.session.finish_early(ExitCode::deadline);
  return run.session.finish();
}

void check_flags(const Context& context, const Options& options, const HotspotFlags& flags) {
  if (flags.during && context.watched_command.empty())
    throw bad("--during names no command", "write shmemctl hotspots --during CMD ARGS...");
  if (flags.during && (flags.watch_s || flags.duration_s))
    throw bad("--during lasts as long as its command",
              "leave out --watch and --duration; --timeout S bounds the command");
  if (!flags.sysroot_after.empty() && options.text("SYSROOT").empty())
    throw bad("--sysroot-after needs the tree before", "give it with --sysroot");
  if (!flags.sysroot_after.empty() && (flags.during || flags.watch_s || flags.duration_s))
    throw bad("two recorded trees do not change", "leave out --during, --watch and --duration");
  if (flags.window_s && flags.sysroot_after.empty())
    throw bad("--window is the time between two recorded trees",
              "give --sysroot and --sysroot-after, or use --duration");
}

ExitCode run_hotspots(Context& context, const HotspotFlags& flags) {
  return with_session(context, [&](Session& session, const Options& options) {
    check_flags(context, options, flags);
    Run run{session, context, options, flags, read_thresholds(flags.thresholds), {}, "", {}};
    describe(run);
    if (!flags.sysroot_after.empty())
      return compare(run);
    if (flags.during)
      return watch_command(run);
    return flags.watch_s ? watch_again_and_again(run) : watch_for(run);
  });
}

void add_hotspot_flags(CLI::App& command, HotspotFlags& flags) {
  const auto seconds = [&](const char* name, std::optional<double>& to, const char* doc,
                           double least, double most) {
    command.add_option(name, to, doc)->type_name("S")->check(CLI::Range(least, most));
  };
  seconds("--watch", flags.watch_s, "Show the load again and again, every S seconds", 0.05, 86400);
  seconds("-D,--duration", flags.duration_s,
          "End after S seconds (default 2; with --watch: when interrupted)", 0.05, 1e7);
  command.add_flag("--during", flags.during,
                   "Watch while the command runs that follows; all words behind are its own");
  command
      .add_option("--interval", flags.interval_s,
                  "Seconds between samples (default 0.1): peaks are of such a time")
      ->type_name("S")
      ->check(CLI::Range(0.01, 3600.0));
  command
      .add_option("--sysroot-after", flags.sysroot_after,
                  "A later copy of the tree of --sysroot: compare the two")
      ->type_name("FOLDER");
  seconds("--window", flags.window_s,
          "Time between the two trees (default: by /proc/uptime in both)", 1e-3, 1e9);
  command
      .add_option("--thresholds", flags.thresholds,
                  "File of thresholds instead of the built-in ones")
      ->type_name("FILE");
}

} // namespace

std::vector<std::string> take_watched_command(const CLI::App& app, Context& context,
                                              std::vector<std::string> words) {
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_subcommand = [&all](const std::string& word) {
    return std::any_of(all.begin(), all.end(),
                       [&word](const CLI::App* child) { return child->get_name() == word; });
  };
  const auto first = std::find_if(words.begin(), words.end(), is_subcommand);
  if (first == words.end() || *first != "hotspots")
    return words;
  const auto during = std::find(first, words.end(), "--during");
  if (during == words.end())
    return words;
  auto command = during + 1;
  if (command != words.end() && *command == "--")
    ++command;
  context.watched_command.assign(command, words.end());
  context.watches_itself =
      !context.watched_command.empty() && is_subcommand(context.watched_command[0]);
  words.erase(during + 1, words.end());
  return words;
}

void add_hotspots(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "hotspots", "Which NIC carries what: load, imbalance, congestion, loss, by its counters");
  command->footer(
      "Reads the counters of every RDMA port, network interface and EFA device of this machine.\n"
      "The exit code is 1 if there is a finding of severity error, or the command failed; the\n"
      "command's own exit code is in the report. The name of a subcommand behind --during means\n"
      "this program itself.\n"
      "Examples:\n"
      "  shmemctl hotspots\n"
      "  shmemctl hotspots --watch 1\n"
      "  shmemctl hotspots --json nics.json --during mpirun -n 16 ./job\n"
      "  shmemctl hotspots --during run -n 8 moe\n"
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
