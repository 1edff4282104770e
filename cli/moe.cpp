// `shmemctl moe`: dispatch and combine of mixture-of-experts models, verified and timed.
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <optional>

#include "cli/job_session.h"
#include "cli/moe_flags.h"
#include "cli/session.h"
#include "reports/text.h"
#include "src/base/atomic_file.h"
#include "src/base/input.h"
#include "src/base/text.h"
#include "src/instruments/bench/interference.h"
#include "src/instruments/bench/moe/gpu_layout.h"
#include "src/instruments/bench/moe/open_backend.h"
#include "src/instruments/bench/moe/point.h"
#include "src/instruments/bench/moe/request.h"
#include "src/instruments/bench/moe/summary.h"
#include "src/instruments/bench/path.h"
#include "src/instruments/bench/pinning.h"
#include "src/instruments/bench/timer.h"
#include "src/instruments/bringup/bringup.h"
#include "src/instruments/bringup/connections.h"
#include "src/instruments/hotspots/job_watch.h"
#include "src/runtime/fault.h"

namespace shmemctl {

namespace {

bool has_equal_nodes(const Placement& placement) {
  return placement.equal_pes_per_node && placement.distribution == Distribution::block;
}

/// Whether no rank forwards rows: because the user requests it, or because nodes have different
/// numbers of ranks or no consecutive ranks, so that not every rank has a counterpart with the same
/// local index on each node.
bool sends_directly(const Placement& placement, const moe::Request& request) {
  return request.flat || !has_equal_nodes(placement);
}

/// Ranks per node, if rows between nodes are forwarded by the rank with the same local index on the
/// other node; else the number of all ranks.
int node_ranks_of(const Placement& placement, const moe::Request& request) {
  if (placement.n_nodes() == 1 && request.flat)
    throw bad_moe("--flat needs several nodes, but this job has one",
                  "omit it, or start PEs on several nodes");
  if (placement.n_nodes() == 1 || sends_directly(placement, request))
    return placement.n_pes;
  return placement.n_pes / placement.n_nodes();
}

/// The other PEs mask an absent PE, which requires --patience-us.
void require_absent(const MoeFlags& flags, int n_pes) {
  const std::optional<int> absent = flags.effort.absent;
  if (absent && flags.request.rank_timeout_us <= 0)
    throw bad_moe("--absent needs --patience-us: the other PEs would wait forever",
                  "add --mode ll --patience-us 100000");
  if (absent && (*absent < 0 || *absent >= n_pes || n_pes < 2))
    throw bad_moe(fmt::format("--absent names PE {}, but the job has {} PEs, and one must remain",
                              *absent, n_pes),
                  n_pes < 2 ? "start two or more PEs" : fmt::format("pass PE 0 to {}", n_pes - 1));
}

/// Rejects --tune with explicit settings or with delays outside the backend.
void require_tunable(const MoeFlags& flags) {
  if (!flags.tune)
    return;
  if (!(flags.dispatch_settings + flags.combine_settings).empty())
    throw bad_moe("--tune excludes --dispatch-settings and --combine-settings",
                  "omit these settings, or --tune");
  if (!flags.straggler.empty() || flags.effort.max_delay_us > 0)
    throw bad_moe("--tune excludes --straggler and --max-delay-us",
                  "run --tune without them, then pass the settings it prints");
}

/// Rejects flags for the start of timed calls that are impossible, or whose effect would be hidden.
void require_start(const MoeFlags& flags) {
  const moe::CallStart& start = flags.start;
  const char* const flag = start.kernels_only ? "--kernels-only" : "--flush-l2";
  if ((start.kernels_only || start.flush_l2) && flags.kind() == moe::BackendKind::host)
    throw bad_moe(std::string(flag) + " needs --backend gpu", "omit it, or use --backend gpu");
  if (start.kernels_only && (!flags.straggler.empty() || flags.effort.max_delay_us > 0))
    throw bad_moe("--kernels-only excludes --straggler and --max-delay-us: the GPUs wait for each "
                  "other before the call",
                  "omit --kernels-only, or --straggler and --max-delay-us");
  if (start.kernels_only && flags.request.rank_timeout_us > 0)
    throw bad_moe("--kernels-only excludes --patience-us: the GPUs wait for each other before the "
                  "call, without masking",
                  "omit --kernels-only or --patience-us");
}

std::optional<moe::RecordedRouting> read_recorded(const moe::Request& request) {
  if (!request.from_file())
    return std::nullopt;
  return moe::parse_routing_file(read_input(request.routing), request.routing);
}

/// Checks that all PEs have read the same file.
void require_one_routing(Runtime& runtime, const moe::RecordedRouting& recorded,
                         const std::string& file) {
  const std::string own_text =
      fmt::format("{:016x}", moe::routing_hash(recorded.shape, recorded.routing));
  const std::vector<std::string> all = runtime.gather_text(own_text);
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (all[pe] != all[0])
      throw Error(ExitCode::usage, file, "replay",
                  fmt::format("its content on PE {} differs from that on PE 0", pe),
                  "copy the same file to all nodes, or use a shared file system");
}

/// Announces what this PE does, for the message if it is lost in that step.
void begin_step(Runtime& runtime, JobSession& session, const std::string& name) {
  runtime.failure_detector().phase(name);
  session.step(name);
}

moe::JobRank job_rank(Runtime& runtime, JobSession& session, const std::string& where) {
  moe::JobRank rank;
  rank.pe = runtime.pe();
  rank.n_pes = runtime.n_pes();
  rank.barrier = [&runtime] { runtime.barrier(); };
  rank.gather = [&runtime](const std::string& text) { return runtime.gather_text(text); };
  if (session.leads())
    rank.print_line = [](const std::string& text) {
      std::cerr << "shmemctl: " << safe_text(text) << std::endl;
    };
  rank.step = [&, where](const std::string& name) { begin_step(runtime, session, where + name); };
  return rank;
}

std::string setup_text(const moe::Setup& setup) {
  return fmt::format("moe {} {}, {} tokens x {}, top {} of {}: ", to_string(setup.mode),
                     to_string(setup.format), setup.shape.max_tokens, setup.shape.hidden,
                     setup.shape.top_k, setup.shape.n_experts);
}

/// Throws Error (usage) if a point cannot be run with the settings.
void require_settings(Runtime& runtime, const MoeFlags& flags, const moe::Setup& setup,
                      const moe::MoePath& path) {
  const moe::DirectionSettings given = settings_of(flags);
  for (const auto direction : {moe::Direction::dispatch, moe::Direction::combine})
    if (const std::string problem = moe::settings_invalid_reason(runtime, flags.kind(), setup, path,
                                                                 direction, given.of(direction));
        !problem.empty())
      throw bad_moe(fmt::format("--{}-settings {} does not go with --backend {}, {}{}",
                                moe::to_string(direction), to_text(given.of(direction)),
                                flags.backend, setup_text(setup), problem),
                    "omit it, or let --tune find valid settings");
}

/// The rows that are not a phase of another row. Their usual phase names are removed, so that they
/// need no column.
std::vector<ResultRow> whole_calls(const std::vector<ResultRow>& rows) {
  std::vector<ResultRow> whole;
  for (const ResultRow& row : rows) {
    const std::string phase = row.params.value("phase", "");
    const bool usual = phase == "total" || phase == "period";
    if (!usual && phase != "without it")
      continue;
    whole.push_back(row);
    if (usual)
      whole.back().params.erase("phase");
  }
  return whole;
}

/// Collective. How other processes used the CPU of each PE; empty for lost PEs.
std::vector<bench::Interference> gather_interference(Runtime& runtime,
                                                     const bench::Interference& own) {
  std::vector<bench::Interference> all;
  const std::vector<std::string> texts = runtime.gather_text(to_bytes(own));
  for (std::size_t pe = 0; pe < texts.size(); ++pe)
    all.push_back(texts[pe].empty()
                      ? bench::Interference{}
                      : value_of_pe<bench::Interference>(texts[pe], pe, "interference counters"));
  return all;
}

/// Runs one point, from its memory to its rows. @return whether all data was correct
bool measure_point(const MoeFlags& flags, const moe::PointRequest& request,
                   const moe::MoePath& path, const std::optional<moe::RecordedRouting>& recorded,
                   const bench::LinkMeasurement& link, JobSession& session, Runtime& runtime,
                   const Options& options, const TextStyle& style,
                   const std::optional<Finding>& oversubscribed) {
  const moe::Routing routing = routing_of(request, recorded);
  moe::Setup setup = request.setup;
  setup.routing = &routing;
  const std::string where = setup_text(setup);
  begin_step(runtime, session, where + "memory");
  moe::OpenBackend opened(runtime, flags.kind(), setup, path);
  moe::Backend& backend = opened.backend();
  inject_fault(options, runtime.pe(), "moe");
  moe::Effort effort = flags.effort;
  effort.seed = setup.seed;
  effort.verify = !flags.no_verify;
  effort.straggler = straggler_flag(flags.straggler);
  effort.corrupt = is_fault(options, FaultKind::corrupt, runtime.pe(), "verify");
  const moe::DirectionSettings given = settings_of(flags);
  backend.use(given);
  moe::JobRank rank = job_rank(runtime, session, where);
  rank.leave = [&] { inject_fault(options, runtime.pe(), "absent"); };
  rank.middle = [&] { inject_fault(options, runtime.pe(), "moe-middle"); };
  std::optional<moe::CallStarter> starter;
  if (flags.start.flush_l2 || flags.start.kernels_only) {
    starter.emplace(*runtime.gpu(), flags.start);
    rank.flush = [&starter] { starter->flush(); };
    rank.align = [&starter] { starter->align(); };
  }
  std::vector<moe::Tuned> tuned;
  if (flags.tune)
    tuned = moe::tune(backend, setup, effort, rank);
  moe::LinkWatch links(runtime, flags.kind() == moe::BackendKind::gpu, link,
                       options.text("NVML_LIBRARY"));
  const bench::InterferenceWatch watch;
  const moe::PointResult result = measure(backend, setup, effort, rank);
  std::optional<Finding> interference, disturbed;
  if (flags.kind() == moe::BackendKind::host && !oversubscribed) {
    const std::vector<bench::Interference> by_pe = gather_interference(runtime, watch.end());
    interference = bench::interference_finding(where.substr(0, where.find(": ")), by_pe);
    if (bench::hides_who_is_slow(by_pe))
      disturbed = interference;
  }
  const moe::Point point{
      setup,
      backend.name(),
      request.routing_name,
      request.routing.tokens,
      backend.memory(),
      result,
      given,
      {backend.settings(moe::Direction::dispatch), backend.settings(moe::Direction::combine)},
      backend.launches(moe::Direction::dispatch),
      backend.launches(moe::Direction::combine),
      flags.tune,
      tuned,
      links.end(),
      backend.window(),
      recorded ? moe::RoutingRequest{} : request.routing,
      effort.max_delay_us,
      effort.straggler,
      effort.absent,
      recorded.has_value(),
      oversubscribed,
      disturbed,
      moe::parse_byte_count(flags.count),
      flags.start};
  if (session.leads()) {
    Report& report = session.report();
    const std::vector<ResultRow> rows = rows_of(point);
    report.results.insert(report.results.end(), rows.begin(), rows.end());
    report.moe.push_back(json_of(point));
    if (interference)
      report.findings.push_back(*interference);
    for (Finding& finding : findings_of(point))
      report.findings.push_back(std::move(finding));
    session.checkpoint();
    if (session.wants_text())
      std::cout << (flags.tune ? moe::tuned_text(tuned, style) + "\n" : "")
                << results_text(style.verbose ? rows : whole_calls(rows), style)
                << (style.verbose ? text_of(point) : slow_text_of(point))
                << to_text(moe::summary_of(point, rows, style.gigabits), style) << '\n'
                << std::flush;
  }
  if (starter)
    starter->close();
  opened.close();
  return result.wrong.empty() && moe::all_right(tuned);
}

std::optional<Finding> finding_with_id(const Findings& findings, const std::string& id) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.id == id; });
  return found == findings.end() ? std::nullopt : std::optional<Finding>(*found);
}

void describe_run(Runtime& runtime, const bench::Pinning& pinning, Report& report) {
  const bench::SteadyClock clock;
  const bench::TimerQuality quality = measure_timer(clock);
  report.measurement = {clock.name(), quality.resolution_ns, quality.cost_ns, pinning.rows()};
  report.findings.insert(report.findings.end(), pinning.findings().begin(),
                         pinning.findings().end());
  report.connections =
      gather_connections(runtime, connections_message(bench::connections_in_use(runtime)));
  for (Finding& finding : emulated_hca_findings(report.connections))
    report.findings.push_back(std::move(finding));
}

void write_record(const MoeFlags& flags, const Context& context, const moe::PointRequest& point,
                  const std::optional<moe::RecordedRouting>& recorded) {
  write_file_atomically(flags.record,
                        routing_file_text(point.setup.shape, routing_of(point, recorded)),
                        context.force);
}

std::vector<moe::PointRequest> points_of(const MoeFlags& flags,
                                         const std::optional<moe::RecordedRouting>& recorded,
                                         const Runtime& runtime) {
  const Placement& placement = runtime.placement();
  std::vector<moe::PointRequest> points = moe::points_of(flags.request, recorded, runtime.n_pes(),
                                                         node_ranks_of(placement, flags.request));
  for (moe::PointRequest& point : points) {
    if (sends_directly(placement, flags.request))
      point.setup.node_of_rank = placement.node;
    if (flags.kind() == moe::BackendKind::gpu)
      point.setup.scale_bytes = moe::scale_bytes_of(point.setup);
  }
  return points;
}

/// @param left_out points that were not measured, because a PE had been lost before
void add_lost(const Runtime& runtime, std::size_t left_out, Report& report) {
  for (const LostPe& lost : runtime.lost()) {
    const auto pe = static_cast<std::size_t>(lost.pe);
    report.findings.push_back(
        {"moe-lost", Severity::error, fmt::format("PE {}", lost.pe),
         fmt::format(
             "{}: the others went on without it{}: {}", runtime.placement().hosts[pe].host_name,
             left_out > 0 ? fmt::format(" to the end of this point, and left {} out", left_out)
                          : "",
             lost.why),
         fmt::format("check the output of PE {}, its exit status and the kernel log of its host",
                     lost.pe)});
  }
}

ExitCode measure_all(const Context& context, const MoeFlags& flags,
                     const std::optional<moe::RecordedRouting>& recorded, JobSession& session,
                     Runtime& runtime, const Options& options) {
  const std::vector<moe::PointRequest> points = points_of(flags, recorded, runtime);
  if (const auto straggler = straggler_flag(flags.straggler);
      straggler && straggler->first >= runtime.n_pes())
    throw bad_moe(fmt::format("--straggler names PE {}, but the job has {} PEs", straggler->first,
                              runtime.n_pes()),
                  fmt::format("pass PE 0 to {}", runtime.n_pes() - 1));
  require_absent(flags, runtime.n_pes());
  std::vector<moe::MoePath> paths; // by point
  for (const moe::PointRequest& point : points) {
    paths.push_back(moe::require_backend(runtime, flags.kind(), point.setup));
    require_settings(runtime, flags, point.setup, paths.back());
  }
  if (recorded)
    require_one_routing(runtime, *recorded, flags.request.routing);
  if (!flags.record.empty() && session.leads())
    write_record(flags, context, points.front(), recorded);
  begin_step(runtime, session, "gathering phases and hosts");
  const bench::Pinning pinning(runtime, bench::parse_pin_choice(flags.pin));
  describe_job(runtime, context, options, session.report());
  describe_run(runtime, pinning, session.report());
  begin_step(runtime, session, "measuring the links between the GPUs");
  bench::Point exchange; // all pairs of ranks, because rows move between all of them
  exchange.traffic = bench::Traffic::all_to_all;
  bench::LinkMeter meter(runtime);
  const bench::LinkMeasurement link =
      flags.kind() == moe::BackendKind::gpu ? meter.of(exchange) : bench::LinkMeasurement{};
  NicWatch nics(runtime, options);
  TextStyle style = text_style(context, options);
  style.gigabits = flags.unit == "Gb/s";
  const std::vector<std::string> gpus = gpu_models(runtime);
  if (session.wants_text())
    std::cout << job_text(session.report(), gpus, style) << '\n' << std::flush;
  const std::optional<Finding> oversubscribed =
      finding_with_id(pinning.findings(), "bench-oversubscribed");
  if (flags.request.rank_timeout_us > 0)
    runtime.allow_loss();
  bool right = true;
  std::size_t measured = 0;
  for (; measured < points.size() && !runtime.any_pe_lost(); ++measured)
    right = measure_point(flags, points[measured], paths[measured], recorded, link, session,
                          runtime, options, style, oversubscribed) &&
            right;
  begin_step(runtime, session, "gathering the NIC counters of all hosts");
  const bool nics_wrong = nics.end(session.report(), true);
  session.show_nics();
  add_lost(runtime, points.size() - measured, session.report());
  right = right && !nics_wrong && !runtime.any_pe_lost();
  return session.conclude(right ? ExitCode::ok : ExitCode::finding);
}

ExitCode run_moe(Context& context, const MoeFlags& flags) {
  bench::parse_pin_choice(flags.pin); // values are checked before anything is started
  straggler_flag(flags.straggler);
  settings_of(flags);
  require_tunable(flags);
  require_start(flags);
  if (const std::string reason = moe::backend_missing(flags.kind()); !reason.empty())
    throw Error(ExitCode::unavailable, "--backend " + flags.backend, "run moe", reason,
                "use --backend host");
  if (flags.request.num_sms != moe::Request().num_sms && flags.kind() == moe::BackendKind::host)
    throw bad_moe("--num-sms needs --backend gpu", "omit it, or use --backend gpu");
  if (flags.request.expert_alignment != moe::Request().expert_alignment &&
      flags.kind() == moe::BackendKind::gpu && flags.request.mode == "ll" &&
      flags.request.layout == "source")
    throw bad_moe("--expert-alignment needs --layout expert in low-latency mode on GPUs",
                  "omit it, or use --layout expert");
  if (!flags.record.empty())
    check_output_path(flags.record, context.force);
  const auto recorded = read_recorded(flags.request);
  if (flags.effort.absent)
    require_absent(flags, moe::max_ranks);
  // Errors that can be found without a job end the run here, before the job starts.
  const int ranks = recorded ? recorded->shape.n_ranks : 1;
  const auto points = moe::points_of(flags.request, recorded, ranks, ranks, recorded.has_value());
  if (!flags.record.empty() && points.size() > 1)
    throw bad_moe(
        "--record writes one routing, but this sweep has " + std::to_string(points.size()) +
            " points",
        "pass one value each to --num-tokens, --hidden, --num-experts, --num-topk and --num-sms");
  RuntimeRequest request;
  if (flags.kind() == moe::BackendKind::gpu) {
    request.gpu = GpuUse::required;
    request.kernels = true;
  }
  return with_job(context, std::move(request),
                  [&](JobSession& session, Runtime& runtime, const Options& options) {
                    return measure_all(context, flags, recorded, session, runtime, options);
                  });
}

} // namespace

void add_moe(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "moe", "MoE dispatch and combine (expert parallelism): verified, then timed");
  command->footer(
      "Each PE is a rank, of 64 at most, and owns an equal share of the experts. Rows are\n"
      "compared bit by bit; the time of an iteration is that of its slowest rank. Exit code 1:\n"
      "wrong data, or, with --patience-us, the job lost PEs and went on; 3: a lost PE ended it.\n"
      "Examples:\n"
      "  shmemctl run -n 4 moe --num-tokens 128,1024\n"
      "  shmemctl run -n 4 --nodes 2 moe --mode ht --dtype fp8 --routing zipf\n"
      "  mpirun -n 16 shmemctl moe --mode ll --num-tokens 1,16,128 --json moe.json\n"
      "  shmemctl run -n 4 moe --routing grouped --record routing.txt\n"
      "  shmemctl run -n 2 moe --backend gpu --num-tokens 4096 --tune");
  auto flags = std::make_shared<MoeFlags>();
  add_moe_flags(*command, *flags);
  add_job_options(*command, context);
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) { return run_moe(run_context, *flags); };
  });
}

} // namespace shmemctl
