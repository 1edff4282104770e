// `shmemctl bench`: latency, bandwidth and rates of the runtime, verified.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iostream>
#include <limits>
#include <optional>

#include "cli/job_session.h"
#include "cli/session.h"
#include "reports/result_table.h"
#include "reports/text.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/bench/case_table.h"
#include "src/instruments/bench/engine.h"
#include "src/instruments/bench/ladder.h"
#include "src/instruments/bench/moe/rung.h"
#include "src/instruments/bench/path.h"
#include "src/instruments/bench/pinning.h"
#include "src/instruments/bench/self_test.h"
#include "src/instruments/bench/timer.h"
#include "src/instruments/bringup/bringup.h"
#include "src/instruments/bringup/connections.h"
#include "src/instruments/hotspots/job_watch.h"
#include "src/runtime/fault.h"

namespace shmemctl {

namespace {

using namespace bench;

struct BenchFlags {
  std::vector<std::string> cases;
  std::string min_bytes, max_bytes, step_bytes, sizes, traffic, pes;
  std::optional<double> step_factor;
  double max_noise_percent = 0;
  std::string unit = "GB/s";
  bool p999 = false;
  Effort effort;
  int window = 0;
  std::uint64_t seed = 1;
  bool bidirectional = false, no_verify = false, list = false, self_test = false, quick = false,
       ladder = false;
  std::string pin = "auto";
  std::string initiator, memory, scope;
  int ctas = 0, threads = 0;
  bool graph = false;
};

Error bad(const std::string& problem, const std::string& fix) {
  return Error(ExitCode::usage, "bench", "", problem, fix).on_all_pes();
}

std::size_t size_flag(const std::string& flag, const std::string& text) {
  if (text.empty())
    return 0;
  const std::optional<std::uint64_t> size_bytes = parse_size_bytes(text);
  if (!size_bytes || *size_bytes == 0)
    throw bad(flag + " " + printable(text) + " is not a size",
              "pass a size above 0, such as 8, 4K, 2M or 1G");
  return *size_bytes;
}

/// Parses "8,4K,1M".
std::vector<std::size_t> sizes_flag(const std::string& text) {
  std::vector<std::size_t> sizes;
  if (!text.empty())
    for (const std::string& part : split(text, ',')) {
      if (part.empty())
        throw bad("--sizes " + printable(text) + " has an empty size", "write it as 8,4K,1M");
      sizes.push_back(size_flag("--sizes", part));
    }
  return sizes;
}

/// Parses "0,3", the two PEs of Traffic::pair. Returns the job's default for an empty text.
std::pair<int, int> pair_flag(const std::string& text, std::pair<int, int> otherwise) {
  if (text.empty())
    return otherwise;
  const std::vector<std::string> parts = split(text, ',');
  const auto number = [&](std::size_t i) {
    return i < parts.size() ? parse_integer(parts[i]).value_or(-1) : -1;
  };
  if (parts.size() != 2 || number(0) < 0 || number(1) < 0 || number(0) > 1 << 20 ||
      number(1) > 1 << 20 || number(0) == number(1))
    throw bad("--pair " + printable(text) + " is not two different PEs", "write it as 0,1");
  return {static_cast<int>(number(0)), static_cast<int>(number(1))};
}

/// The enumerator with this name; empty if there is none.
template <class Kind>
std::optional<Kind> named(const std::string& text, std::initializer_list<Kind> kinds) {
  for (const Kind kind : kinds)
    if (text == to_string(kind))
      return kind;
  return std::nullopt;
}

/// Accepts the names of these enumerators as a flag's values.
template <class Kind>
CLI::IsMember names_of(std::initializer_list<Kind> kinds) {
  std::vector<std::string> names;
  for (const Kind kind : kinds)
    names.emplace_back(to_string(kind));
  return CLI::IsMember(names);
}

LaunchRequest launch_flags(const BenchFlags& flags) {
  LaunchRequest request;
  request.initiator = named(flags.initiator, all_initiators).value_or(Initiator::host);
  request.memory = named(flags.memory, all_memories);
  request.scope = named(flags.scope, all_scopes);
  request.ctas = flags.ctas;
  request.threads = flags.threads;
  request.graph = flags.graph;
  return request;
}

std::vector<BenchCase> cases_for(const BenchFlags& flags) {
  const LaunchRequest request = launch_flags(flags);
  return cases_of(request.initiator, check_launch(request));
}

/// @param pair the job's pair for --traffic pair, unless --pair names another
Sweep sweep_of(const BenchFlags& flags, std::pair<int, int> pair = {0, 1}) {
  Sweep sweep;
  sweep.launch = launch_flags(flags);
  sweep.min_bytes = size_flag("--min-bytes", flags.min_bytes);
  sweep.max_bytes = size_flag("--max-bytes", flags.max_bytes);
  sweep.step_factor = flags.step_factor.value_or(2);
  sweep.step_bytes = size_flag("--step-bytes", flags.step_bytes);
  sweep.sizes = sizes_flag(flags.sizes);
  if (flags.ladder && sweep.sizes.empty())
    sweep.sizes = {std::size_t{1} << 20};
  sweep.window = flags.window;
  if (flags.quick && flags.min_bytes.empty() && flags.max_bytes.empty() &&
      flags.step_bytes.empty() && !flags.step_factor)
    sweep.step_factor = 512; // 1, 512, 256 KiB and 4 MiB are sufficient
  for (const Traffic traffic :
       {Traffic::pair, Traffic::pairs, Traffic::all_to_all, Traffic::collective, Traffic::local})
    if (flags.traffic == to_string(traffic))
      sweep.traffic = traffic;
  if (flags.traffic == "matrix") {
    if (!flags.pes.empty())
      throw bad("--pair cannot be combined with --traffic matrix, which measures every pair of PEs",
                "omit --pair");
    sweep.traffic = Traffic::pair;
    sweep.matrix = true;
  }
  sweep.direction = flags.bidirectional ? Direction::bi : Direction::uni;
  std::tie(sweep.first_pe, sweep.second_pe) = pair_flag(flags.pes, pair);
  return sweep;
}

Effort effort_of(const BenchFlags& flags) {
  Effort effort = flags.effort;
  effort.verify = !flags.no_verify;
  effort.max_noise = flags.max_noise_percent / 100;
  if (flags.quick)
    effort.budget_s = 0.03;
  return effort;
}

CheckRow check_row(const SelfTestRow& row) {
  CheckRow check;
  check.id = row.what;
  std::replace(check.id.begin(), check.id.end(), ' ', '-');
  check.title = row.what;
  check.group = "self-test";
  check.status = row.passed ? "pass" : "fail";
  check.reason = row.reported ? fmt::format("injected {:.6g} {}, reported {:.6g} ({:+.2f}%)",
                                            row.injected, row.unit, *row.reported, 100 * row.error)
                              : "injected, and not reported";
  check.fix = row.passed ? "" : "try again on an idle machine";
  return check;
}

TextStyle rows_style(const Context& context, const BenchFlags& flags, const Options& options) {
  TextStyle style = text_style(context, options);
  style.gigabits = flags.unit == "Gb/s";
  style.p999 = flags.p999;
  return style;
}

/// The rows of all cases, kept in the report so that an aborted run writes them.
class Rows {
public:
  Rows(JobSession& session, const TextStyle& style) : session_(session), style_(style) {}

  /// @param varying parameters that differ between the rows of the case
  void begin_case(std::vector<std::string> varying) {
    live_.emplace(std::move(varying), style_);
    printed_ = 0;
  }
  /// Results of the case that is being measured: prints those that are new.
  void update(const std::vector<ResultRow>& rows) {
    if (!session_.leads())
      return;
    session_.report().results = ended_;
    append(session_.report().results, rows);
    session_.checkpoint();
    if (session_.wants_text())
      for (; printed_ < rows.size(); ++printed_)
        std::cout << live_->add(rows[printed_]) << std::flush;
  }
  void end_case(const std::vector<ResultRow>& rows) {
    update(rows);
    append(ended_, rows);
    if (session_.wants_text() && !rows.empty())
      std::cout << live_->end() << '\n' << std::flush;
  }
  /// The text that concerns the tables of all cases.
  void end() const {
    ResultRows rows;
    for (const ResultRow& row : ended_)
      rows.push_back(&row);
    const std::string text = session_.wants_text() ? result_columns_text(rows, style_) : "";
    if (!text.empty())
      std::cout << text << '\n' << std::flush;
  }
  const std::vector<ResultRow>& all() const { return ended_; }
  const TextStyle& style() const { return style_; }

private:
  static void append(std::vector<ResultRow>& to, const std::vector<ResultRow>& rows) {
    to.insert(to.end(), rows.begin(), rows.end());
  }
  JobSession& session_;
  TextStyle style_;
  std::optional<LiveResults> live_; ///< the case that is being measured
  std::size_t printed_ = 0;         ///< how many of its rows were printed
  std::vector<ResultRow> ended_;
};

/// Parameters that may differ between the rows of a case: they have columns.
std::vector<std::string> varying_of(const BenchCase& bench_case, const Sweep& sweep) {
  std::vector<std::string> names = {"size_bytes"};
  if (sweep.matrix)
    names = {"first_pe", "second_pe", "size_bytes"};
  if (bench_case.info.metric != Metric::latency)
    names.emplace_back("window");
  return names;
}

Measurement measurement_of(const Pinning& pinning) {
  const SteadyClock clock;
  const TimerQuality quality = measure_timer(clock);
  return {clock.name(), quality.resolution_ns, quality.cost_ns, pinning.rows()};
}

/// The cases that were asked for.
std::vector<std::string> names_of_cases(const BenchFlags& flags) {
  return flags.ladder ? ladder_cases(launch_flags(flags).initiator) : flags.cases;
}

void sort_like(const std::vector<std::string>& names, std::vector<BenchCase>& cases) {
  const auto position = [&names](const BenchCase& bench_case) {
    return std::find(names.begin(), names.end(), bench_case.info.name);
  };
  std::sort(cases.begin(), cases.end(),
            [&](const BenchCase& a, const BenchCase& b) { return position(a) < position(b); });
}

/// The note as a line; empty if there is none.
std::string note_line(const std::string& note, const TextStyle& style) {
  return note.empty() ? "" : wrapped(safe_text(note), style.width, 4) + "\n";
}

/// Measures the last step of the ladder, MoE, and shows the cost of each step.
void climb(const BenchFlags& flags, JobSession& session, Runtime& runtime, Rows& rows) {
  const moe::BackendKind kind = check_launch(launch_flags(flags)) == MemoryKind::gpu
                                    ? moe::BackendKind::gpu
                                    : moe::BackendKind::host;
  rows.begin_case({});
  std::vector<ResultRow> steps = rows.all();
  const std::vector<ResultRow> of_moe = moe::measure_rung(
      runtime, kind, [&session](const std::string& words) { session.step(words); });
  rows.end_case(of_moe);
  steps.insert(steps.end(), of_moe.begin(), of_moe.end());
  const std::vector<Rung> rungs = rungs_of(steps);
  if (const auto finding = ladder_finding(rungs))
    session.report().findings.push_back(*finding);
  if (session.wants_text())
    std::cout << ladder_text(rungs, rows.style())
              << note_line(ladder_note(steps, rungs), rows.style()) << '\n'
              << std::flush;
}

ExitCode measure(const Context& context, const BenchFlags& flags, JobSession& session,
                 Runtime& runtime, const Options& options) {
  const Sweep sweep = sweep_of(flags, default_pair(runtime.placement()));
  std::vector<BenchCase> cases = choose_cases(cases_for(flags), names_of_cases(flags));
  if (flags.ladder) // from the lowest step, whatever the order of the table
    sort_like(names_of_cases(flags), cases);
  std::vector<std::vector<Point>> points;
  for (const BenchCase& bench_case :
       cases) // checked before any measurement: an invalid flag ends the run at once
    points.push_back(points_of(bench_case.info, sweep, runtime.n_pes()));
  Report& report = session.report();
  session.step("gathering phases and hosts");
  describe_job(runtime, context, options, report);
  session.step("pinning PEs to cores");
  const Pinning pinning(runtime, parse_pin_choice(flags.pin));
  report.measurement = measurement_of(pinning);
  report.findings.insert(report.findings.end(), pinning.findings().begin(),
                         pinning.findings().end());
  report.connections =
      gather_connections(runtime, connections_message(connections_in_use(runtime)));
  for (Finding& finding : emulated_hca_findings(report.connections))
    report.findings.push_back(std::move(finding));
  NicWatch nics(runtime, options);
  LinkMeter links(runtime);
  const std::vector<std::string> gpus = gpu_models(runtime);
  std::vector<Point> all_points;
  for (const std::vector<Point>& of_case : points)
    all_points.insert(all_points.end(), of_case.begin(), of_case.end());
  const std::string path = to_text(planned_path(runtime, all_points).value_or(RowPath{}));
  if (session.wants_text())
    std::cout << job_text(report, gpus, text_style(context, options), path) << '\n' << std::flush;
  Rows rows(session, rows_style(context, flags, options));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EngineCallbacks callbacks;
    callbacks.links = &links;
    callbacks.begins = [&](const std::string& words) {
      session.step(words);
      inject_fault(options, runtime.pe(), "bench-" + cases[i].info.name);
    };
    if (is_fault(options, FaultKind::corrupt, runtime.pe(), "verify"))
      callbacks.before_verification = [](std::byte* memory, std::size_t size_bytes) {
        std::transform(memory, memory + size_bytes, memory, [](std::byte b) { return ~b; });
      };
    callbacks.done = [&rows](const std::vector<ResultRow>& so_far) { rows.update(so_far); };
    rows.begin_case(varying_of(cases[i], sweep));
    rows.end_case(measure_case(runtime, cases[i], points[i], effort_of(flags), flags.seed,
                               callbacks, report.findings));
  }
  if (flags.ladder)
    climb(flags, session, runtime, rows);
  rows.end();
  session.step("gathering the NIC counters of all hosts");
  const bool nics_wrong = nics.end(report, !flags.ladder && loads_alike(cases, points));
  session.show_nics();
  session.step("gathering the verdict");
  return session.conclude(any_failed(runtime, rows.all()) || nics_wrong ? ExitCode::finding
                                                                        : ExitCode::ok);
}

ExitCode test_itself(const Context& context, const BenchFlags& flags, JobSession& session,
                     Runtime& runtime, const Options& options) {
  Report& report = session.report();
  session.step("gathering phases and hosts");
  describe_job(runtime, context, options, report);
  session.step("running the self-test");
  const Pinning pinning(runtime, parse_pin_choice(flags.pin));
  report.measurement = measurement_of(pinning);
  report.findings.insert(report.findings.end(), pinning.findings().begin(),
                         pinning.findings().end());
  const SelfTestResult result = self_test(runtime);
  for (const SelfTestRow& row : result.rows)
    report.checks.push_back(check_row(row));
  if (session.wants_text())
    std::cout << checks_text(report.checks, text_style(context, options)) << '\n';
  return session.conclude(result.passed ? ExitCode::ok : ExitCode::finding);
}

/// The rows of all initiators, unless a flag selects some of them.
std::vector<BenchCase> listed_cases(const BenchFlags& flags) {
  std::vector<BenchCase> of_flags = cases_for(flags);
  if (!flags.initiator.empty() || !flags.memory.empty())
    return of_flags;
  std::vector<BenchCase> all;
  for (const Initiator initiator : all_initiators)
    for (BenchCase& bench_case : cases_of(initiator, MemoryKind::host))
      all.push_back(std::move(bench_case));
  return all;
}

ExitCode list(const Context& context, const BenchFlags& flags) {
  const std::vector<BenchCase> cases = listed_cases(flags);
  if (context.json_path == "-")
    std::cout << list_json(cases).dump(2) << '\n';
  else
    std::cout << list_text(cases, text_style(context, context.options()));
  return ExitCode::ok;
}

/// Steps are compared at one size of one pair: rejects flags that select anything else.
void require_ladder(const BenchFlags& flags) {
  if (!flags.cases.empty())
    throw bad("--ladder chooses its cases itself", "omit " + printable(join(flags.cases, ", ")));
  if (!flags.traffic.empty() || flags.bidirectional)
    throw bad("--traffic and --bidir cannot be combined with --ladder, which measures one pair in "
              "one direction, then MoE",
              "omit --traffic and --bidir; --pair chooses the pair");
  if (flags.initiator == to_string(Initiator::stream) ||
      flags.memory == to_string(MemoryKind::registered) ||
      (flags.memory == to_string(MemoryKind::gpu) && flags.initiator != to_string(Initiator::gpu)))
    throw bad("--ladder measures calls of the host on host memory, or of kernels on GPU memory",
              "omit --memory and --initiator, or pass --initiator gpu for kernels");
  if (!flags.min_bytes.empty() || !flags.max_bytes.empty() || !flags.step_bytes.empty() ||
      flags.step_factor || sizes_flag(flags.sizes).size() > 1)
    throw bad("--ladder measures one size only", "pass only --sizes, with one size: --sizes 1M");
}

ExitCode run_bench(Context& context, const BenchFlags& flags) {
  if (flags.list)
    return list(context, flags);
  parse_pin_choice(flags.pin); // values are checked before anything is started
  if (flags.self_test && !flags.cases.empty())
    throw bad("--self-test takes no case", "omit " + printable(join(flags.cases, ", ")));
  if (flags.self_test)
    return with_job(context, {},
                    [&](JobSession& session, Runtime& runtime, const Options& options) {
                      return test_itself(context, flags, session, runtime, options);
                    });
  if (flags.ladder)
    require_ladder(flags);
  else if (flags.cases.empty())
    throw bad("no case given",
              "pass the name of a case, or \"all\"; shmemctl bench --list shows all cases");
  const Sweep sweep = sweep_of(flags);
  for (const BenchCase& bench_case : choose_cases(cases_for(flags), names_of_cases(flags)))
    launch_of(bench_case.info.name, bench_case.info.launch, sweep.launch);
  if (!std::isfinite(flags.effort.duration_s)) // range comparisons are false for NaN
    throw bad("--duration is not a number of seconds", "pass 0.001 to 86400");
  RuntimeRequest request;
  if (check_launch(sweep.launch) == MemoryKind::gpu)
    request.gpu = GpuUse::required;
  request.kernels = sweep.launch.initiator == Initiator::gpu;
  return with_job(context, std::move(request),
                  [&](JobSession& session, Runtime& runtime, const Options& options) {
                    return measure(context, flags, session, runtime, options);
                  });
}

void add_launch_flags(CLI::App& command, BenchFlags& flags) {
  command
      .add_option("--initiator", flags.initiator,
                  "What issues the operations: the host (default), a CUDA stream, or GPU kernels")
      ->check(names_of(all_initiators));
  command
      .add_option("--memory", flags.memory,
                  "Memory of the buffers. host, gpu: a symmetric heap in that memory; registered: "
                  "host memory that each PE registers with the runtime (default: host; --initiator "
                  "stream and gpu need gpu, which is then the default)")
      ->check(names_of(all_memories));
  command
      .add_option("--scope", flags.scope,
                  "Threads that make one device API call together (default: chosen by the case, "
                  "which may refuse others; only with --initiator gpu)")
      ->check(names_of(all_scopes));
  command
      .add_option(
          "--ctas", flags.ctas,
          "Thread blocks (default: the case's, some allow only 1; only with --initiator gpu)")
      ->type_name("N")
      ->check(CLI::Range(1, max_ctas));
  command
      .add_option("--threads", flags.threads,
                  "Threads per block, with --scope warp a multiple of 32 (default: chosen by the "
                  "case, which may refuse others; only with --initiator gpu)")
      ->type_name("N")
      ->check(CLI::Range(1, max_threads));
  command.add_flag("--graph", flags.graph,
                   "Launch the operations as CUDA graphs (only with --initiator stream)");
}

void add_sweep_flags(CLI::App& command, BenchFlags& flags) {
  CLI::Option* smallest =
      command
          .add_option("-b,--min-bytes", flags.min_bytes,
                      "Smallest message size, such as 8, 4K or 2M (default: chosen by the case)")
          ->type_name("SIZE");
  CLI::Option* largest = command
                             .add_option("-e,--max-bytes", flags.max_bytes,
                                         "Largest message size (default: chosen by the case)")
                             ->type_name("SIZE");
  CLI::Option* factor = command
                            .add_option("-f,--step-factor", flags.step_factor,
                                        "Factor from one message size to the next (default 2)")
                            ->type_name("FACTOR")
                            ->check(CLI::Range(1.0001, 1e6));
  CLI::Option* step = command
                          .add_option("-i,--step-bytes", flags.step_bytes,
                                      "Bytes from one message size to the next, instead of -f")
                          ->type_name("SIZE")
                          ->excludes(factor);
  command
      .add_option("--sizes", flags.sizes, "Message sizes, instead of -b, -e, -f and -i: 8,4K,1M")
      ->type_name("SIZE[,SIZE...]")
      ->excludes(smallest)
      ->excludes(largest)
      ->excludes(factor)
      ->excludes(step);
  command
      .add_option("--traffic", flags.traffic,
                  "Which PEs send to which. pair: one to another; pairs: PE i of the first half to "
                  "PE i of the second; all-to-all: each to every other; collective: all call a "
                  "collective; local: none, each copies to and from its own GPU; matrix: every "
                  "ordered pair, one after the other (default: chosen by the case, which may "
                  "refuse others)")
      ->check(CLI::IsMember({"pair", "pairs", "all-to-all", "collective", "local", "matrix"}));
  command
      .add_option("--pair", flags.pes,
                  "PEs of --traffic pair: A calls, B is the target (default: PE 0 and the first PE "
                  "of another node; on one node 0,1; not with --traffic matrix)")
      ->type_name("A,B");
  command.add_flag("--bidir", flags.bidirectional,
                   "Transfer in both directions at once (some cases refuse it)");
  command
      .add_option("--window", flags.window,
                  "Operations posted before each wait for completion (default 64; latency cases 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 65536));
}

void add_effort_flags(CLI::App& command, BenchFlags& flags) {
  Effort& effort = flags.effort;
  CLI::Option* iterations = command
                                .add_option("-n,--iters", effort.iterations,
                                            "Iterations per point (default: as many as take 0.2 s)")
                                ->type_name("N")
                                ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  command
      .add_option("-w,--warmup", effort.warmup,
                  "Warm-up iterations per point (default: until the times are stable)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  CLI::Option* duration =
      command
          .add_option("-D,--duration", effort.duration_s,
                      "Measure each point for SECONDS (20, 20s, 500ms, 5m) instead of -n "
                      "iterations")
          ->type_name("SECONDS")
          ->check(CLI::Range(0.001, 86400.0))
          ->excludes(iterations);
  command
      .add_option("--max-noise", flags.max_noise_percent,
                  "Measure each point until the 95% confidence interval of p50 reaches no further "
                  "than PERCENT on either side, but for no more than 15 s longer")
      ->type_name("PERCENT")
      ->check(CLI::Range(0.01, 100.0))
      ->excludes(iterations)
      ->excludes(duration);
  command
      .add_option(
          "--pin", flags.pin,
          "Bind PEs to CPUs. auto (default): each to a core of its own, unless the "
          "launcher has done so; none; or a list with a CPU for each local rank, such as 0,2,4-7")
      ->type_name("CPUS");
  command.add_option("--seed", flags.seed, "Seed of the data pattern (default 1)")
      ->type_name("SEED")
      ->check(
          CLI::Range(std::uint64_t{0}, std::uint64_t{std::numeric_limits<std::int64_t>::max()}));
  command.add_flag("--no-verify", flags.no_verify,
                   "Do not verify the data; rows say that it is unchecked");
  command.add_option("--unit", flags.unit, "Unit of bandwidths in the table (default GB/s)")
      ->check(CLI::IsMember({"GB/s", "Gb/s"}));
  command.add_flag("--p999", flags.p999,
                   "Add a column for p99.9, which needs 1000 samples or more");
  command.add_flag("--histogram", effort.histogram, "Add a histogram of the samples to each row");
  command.add_flag(
      "--quick", flags.quick,
      "For a test: few sizes (-f 512, unless -b, -e or -i), 0.03 s per point (unless -n or -D)");
}

} // namespace

void add_bench(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "bench",
      "Latency, bandwidth and message rate of one-sided operations and collectives, verified");
  command->footer(
      "CASE is a name, a pattern with * and ?, or all. The cases, which --list describes:\n" +
      case_names_text(76) +
      "\n\nEach sample times a batch of operations that is long compared with the resolution of\n"
      "the clock; data is verified after the timed loop. Exit code 1: wrong data, or another\n"
      "finding of severity error; 3: a PE was lost (the report has what was measured before).\n"
      "Examples:\n"
      "  shmemctl run -n 2 bench put get --json put.json\n"
      "  mpirun -n 16 shmemctl bench 'atomic-*' --traffic pairs\n"
      "  shmemctl run -n 4 bench alltoall -b 8 -e 1M -f 4\n"
      "  shmemctl run -n 2 bench put get --memory registered\n"
      "  shmemctl run -n 8 bench put --initiator gpu --traffic matrix -b 16M -e 16M\n"
      "  shmemctl run -n 2 bench --ladder\n"
      "  shmemctl bench --self-test");
  auto flags = std::make_shared<BenchFlags>();
  command->add_option(
      "CASE", flags->cases,
      "Cases to measure, by name or pattern, or all; none with --ladder or --self-test");
  command->add_flag("--list", flags->list,
                    "List the cases, what each measures and how, and exit; with --initiator or "
                    "--memory, only the cases for it");
  command->add_flag(
      "--ladder", flags->ladder,
      "Measure one path layer by layer (memcpy or RDMA writes by verbs, the transport alone, put, "
      "MoE; with --initiator gpu: stores, put, MoE), and show how much bandwidth each layer loses; "
      "all but MoE at one size, which --sizes sets (default 1M); not with CASE, --traffic, "
      "--bidir, -b, -e, -f, -i, --initiator stream, --memory registered, or --memory gpu without "
      "--initiator gpu");
  command->add_flag("--self-test", flags->self_test,
                    "Test the measurement itself instead of the machine: inject known delays and "
                    "rates, and compare what is reported");
  add_sweep_flags(*command, *flags);
  add_launch_flags(*command, *flags);
  add_effort_flags(*command, *flags);
  add_job_options(*command, context);
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) { return run_bench(run_context, *flags); };
  });
}

} // namespace shmemctl
