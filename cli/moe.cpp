// `shmemctl moe`: dispatch and combine of mixture-of-experts models, verified and timed.
#include <fmt/format.h>
#include <iostream>

#include "cli/job_session.h"
#include "cli/session.h"
#include "reports/text.h"
#include "src/base/atomic_file.h"
#include "src/base/input.h"
#include "src/base/text.h"
#include "src/bench/moe/open_backend.h"
#include "src/bench/moe/point.h"
#include "src/bench/moe/request.h"
#include "src/bench/nic_watch.h"
#include "src/bench/pinning.h"
#include "src/bench/timer.h"
#include "src/bringup/bringup.h"
#include "src/bringup/connections.h"
#include "src/runtime/fault.h"

namespace shmemctl {

namespace {

struct MoeFlags {
  moe::Request request;
  moe::Effort effort;
  std::string backend = "host", record, straggler, pin = "auto";
  std::string dispatch_settings, combine_settings;
  bool no_verify = false, tune = false;

  moe::BackendKind kind() const {
    return backend == "gpu" ? moe::BackendKind::gpu : moe::BackendKind::host;
  }
};

Error bad(const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, "moe", "start", problem, fix};
}

/// "2:500": PE 2 begins each call 500 us late.
std::optional<std::pair<int, double>> straggler_flag(const std::string& text) {
  if (text.empty())
    return std::nullopt;
  const std::vector<std::string> parts = split(text, ':');
  const auto pe = parse_integer(parts[0]);
  const auto late_us = parts.size() == 2 ? parse_number(parts[1]) : std::nullopt;
  if (!pe || !late_us || *pe < 0 || *pe >= moe::max_ranks || *late_us < 0 || *late_us > 1e6)
    throw bad("--straggler " + printable(text) + " is not PE:MICROSECONDS",
              "write --straggler 2:500");
  return std::pair{static_cast<int>(*pe), *late_us};
}

/// Ranks of a node, where nodes have equally many that follow each other; rows that cross nodes are
/// handed on by ranks with the same place on theirs.
int node_ranks_of(const Placement& placement, bool flat) {
  if (flat || placement.n_nodes() == 1)
    return placement.n_pes;
  if (!placement.equal_pes_per_node || placement.distribution != Distribution::block)
    throw bad("rows that cross nodes need nodes with equally many PEs that follow each other",
              "start as many PEs on each node, in blocks; or give --flat");
  return placement.n_pes / placement.n_nodes();
}

/// A PE that stays away is masked by the others, which takes somebody to go on.
void require_absent(const MoeFlags& flags, int n_pes) {
  const std::optional<int> absent = flags.effort.absent;
  if (absent && flags.request.patience_us <= 0)
    throw bad("--absent without --patience-us: the others would wait for it",
              "add --mode ll --patience-us 100000");
  if (absent && (*absent < 0 || *absent >= n_pes || n_pes < 2))
    throw bad(fmt::format("--absent names PE {}, and the job has {}", *absent, n_pes),
              n_pes < 2 ? "start two PEs or more" : fmt::format("name PE 0 to {}", n_pes - 1));
}

/// Settings that are given, and delays that are not the backend's, leave nothing to look for.
void require_tunable(const MoeFlags& flags) {
  if (!flags.tune)
    return;
  if (!(flags.dispatch_settings + flags.combine_settings).empty())
    throw bad("--tune looks for the settings that are given here",
              "leave --dispatch-settings and --combine-settings out, or --tune");
  if (!flags.straggler.empty() || flags.effort.most_delay_us > 0)
    throw bad("--tune looks for the fastest settings, and knows no --straggler and no "
              "--max-delay-us",
              "tune without them, then give the settings that it prints");
}

std::optional<moe::RecordedRouting> read_recorded(const moe::Request& request) {
  if (!request.from_file())
    return std::nullopt;
  return moe::parse_routing_file(read_input(request.routing), request.routing);
}

/// All PEs have read the same file.
void require_one_routing(Runtime& runtime, const moe::RecordedRouting& recorded,
                         const std::string& file) {
  const std::string mine =
      fmt::format("{:016x}", moe::routing_hash(recorded.shape, recorded.routing));
  const std::vector<std::string> all = runtime.gather_text(mine);
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (all[pe] != all[0])
      throw Error(ExitCode::usage, file, "read", fmt::format("PE {} reads another file there", pe),
                  "give all nodes the same file");
}

moe::JobRank job_rank(Runtime& runtime, JobSession& session, const std::string& where) {
  moe::JobRank rank;
  rank.pe = runtime.pe();
  rank.n_pes = runtime.n_pes();
  rank.barrier = [&runtime] { runtime.collectives().barrier(team_world); };
  rank.gather = [&runtime](const std::string& text) { return runtime.gather_text(text); };
  if (session.leads())
    rank.tell = [](const std::string& words) { std::cerr << "shmemctl: " << words << std::endl; };
  rank.step = [&session, where](const std::string& words) { session.step(where + words); };
  return rank;
}

std::string words_of(const moe::Setup& setup) {
  return fmt::format("moe {} {}, {} tokens x {}, top {} of {}: ", to_string(setup.mode),
                     to_string(setup.format), setup.shape.max_tokens, setup.shape.hidden,
                     setup.shape.top_k, setup.shape.n_experts);
}

moe::DirectionSettings settings_of(const MoeFlags& flags) {
  moe::DirectionSettings all;
  if (!flags.dispatch_settings.empty())
    all.dispatch = moe::parse_settings("--dispatch-settings", flags.dispatch_settings);
  if (!flags.combine_settings.empty())
    all.combine = moe::parse_settings("--combine-settings", flags.combine_settings);
  return all;
}

/// Puts the backend to what was asked for. Throws Error (usage) for what it cannot do.
void use_settings(moe::Backend& backend, const moe::DirectionSettings& given) {
  for (const auto direction : {moe::Direction::dispatch, moe::Direction::combine})
    if (const std::string problem = backend.cannot_use(direction, given.of(direction));
        !problem.empty())
      throw bad(fmt::format("--{}-settings {} does not go with --backend {}: {}",
                            moe::to_string(direction), to_text(given.of(direction)), backend.name(),
                            problem),
                "leave it out, or let --tune find some");
  backend.use(given);
}

/// One point, from its memory to its rows. @return whether data was right everywhere
bool measure_point(const MoeFlags& flags, const moe::PointRequest& request,
                   const std::optional<moe::RecordedRouting>& recorded,
                   const bench::LinkMeasurement& link, JobSession& session, Runtime& runtime,
                   const Options& options, const TextStyle& style) {
  const moe::Routing routing = routing_of(request, recorded);
  moe::Setup setup = request.setup;
  setup.routing = &routing;
  const std::string where = words_of(setup);
  session.step(where + "memory");
  moe::OpenBackend opened(runtime, flags.kind(), setup);
  moe::Backend& backend = opened.backend();
  inject_fault(options, runtime.pe(), "moe");
  moe::Effort effort = flags.effort;
  effort.seed = setup.seed;
  effort.verify = !flags.no_verify;
  effort.straggler = straggler_flag(flags.straggler);
  effort.corrupt = is_fault(options, FaultKind::corrupt, runtime.pe(), "verify");
  const moe::DirectionSettings given = settings_of(flags);
  use_settings(backend, given);
  moe::JobRank rank = job_rank(runtime, session, where);
  rank.leave = [&] { inject_fault(options, runtime.pe(), "absent"); };
  std::vector<moe::Tuned> tuned;
  if (flags.tune)
    tuned = moe::tune(backend, setup, effort, rank);
  moe::LinkWatch links(runtime, flags.kind() == moe::BackendKind::gpu, link);
  const moe::PointResult result = measure(backend, setup, effort, rank);
  const moe::Point point{
      setup,
      backend.name(),
      request.routing_name,
      request.routing.tokens,
      backend.memory(),
      result,
      given,
      {backend.settings(moe::Direction::dispatch), backend.settings(moe::Direction::combine)},
      flags.tune,
      tuned,
      links.end(),
      backend.window()};
  if (session.leads()) {
    Report& report = session.report();
    const std::vector<ResultRow> rows = rows_of(point);
    report.results.insert(report.results.end(), rows.begin(), rows.end());
    report.moe.push_back(json_of(point));
    for (Finding& finding : findings_of(point))
      report.findings.push_back(std::move(finding));
    session.checkpoint();
    if (session.wants_text())
      std::cout << (flags.tune ? moe::tuned_text(tuned, style) + "\n" : "")
                << results_text(rows, style) << text_of(point) << '\n'
                << std::flush;
  }
  opened.close();
  return result.wrong.empty() && moe::all_right(tuned);
}

void describe_job(Runtime& runtime, const Context& context, const Options& options,
                  const bench::Pinning& pinning, Report& report) {
  report.job = {runtime.n_pes(), runtime.placement().n_nodes(), runtime.bootstrap().name(),
                runtime.launcher()};
  report.phases = gather_phases(runtime);
  if (!context.json_path.empty())
    report.hosts = gather_hosts(runtime, options);
  const bench::SteadyClock clock;
  const bench::TimerQuality quality = measure_timer(clock);
  report.measurement = {clock.name(), quality.resolution_ns, quality.cost_ns, pinning.rows()};
  report.findings = pinning.findings();
  report.connections = merge_connections(
      runtime.gather_text(connections_text(runtime.transports(), runtime.n_pes())));
  for (Finding& finding : software_findings(report.connections))
    report.findings.push_back(std::move(finding));
}

void write_record(const MoeFlags& flags, const Context& context, const moe::PointRequest& point,
                  const std::optional<moe::RecordedRouting>& recorded) {
  write_file_atomically(flags.record,
                        routing_file_text(point.setup.shape, routing_of(point, recorded)),
                        context.force);
}

ExitCode measure_all(const Context& context, const MoeFlags& flags,
                     const std::optional<moe::RecordedRouting>& recorded, JobSession& session,
                     Runtime& runtime, const Options& options) {
  const std::vector<moe::PointRequest> points = points_of(
      flags.request, recorded, runtime.n_pes(),
      node_ranks_of(runtime.placement(), flags.request.flat), moe::ranks_limit(flags.kind()));
  if (const auto straggler = straggler_flag(flags.straggler);
      straggler && straggler->first >= runtime.n_pes())
    throw bad(fmt::format("--straggler names PE {}, and the job has {}", straggler->first,
                          runtime.n_pes()),
              fmt::format("name PE 0 to {}", runtime.n_pes() - 1));
  require_absent(flags, runtime.n_pes());
  if (recorded)
    require_one_routing(runtime, *recorded, flags.request.routing);
  if (!flags.record.empty() && session.leads())
    write_record(flags, context, points.front(), recorded);
  session.step("gathering phases and hosts");
  const bench::Pinning pinning(runtime, bench::parse_pin_choice(flags.pin));
  describe_job(runtime, context, options, pinning, session.report());
  session.step("measuring the links between the GPUs");
  bench::Point exchange; // every rank to all the others, as rows go
  exchange.traffic = bench::Traffic::all_to_all;
  bench::LinkMeter meter(runtime);
  const bench::LinkMeasurement link =
      flags.kind() == moe::BackendKind::gpu ? meter.of(exchange) : bench::LinkMeasurement{};
  bench::NicWatch nics(runtime);
  const TextStyle style = text_style(context, options);
  bool right = true;
  for (const moe::PointRequest& point : points)
    right = measure_point(flags, point, recorded, link, session, runtime, options, style) && right;
  session.step("gathering the verdict");
  Report& report = session.report();
  const bool elsewhere = nics.end(report);
  const ExitCode code = right && !elsewhere ? ExitCode::ok : ExitCode::finding;
  return session.conclude(code);
}

ExitCode run_moe(Context& context, const MoeFlags& flags) {
  bench::parse_pin_choice(flags.pin); // words are looked at before anything is started
  straggler_flag(flags.straggler);
  settings_of(flags);
  require_tunable(flags);
  if (const std::string reason = moe::backend_missing(flags.kind()); !reason.empty())
    throw Error(ExitCode::unavailable, "--backend " + flags.backend, "start moe", reason,
                "use --backend host");
  if (flags.request.num_sms != moe::Request().num_sms && flags.kind() == moe::BackendKind::host)
    throw bad("--num-sms is for kernels", "leave it out, or use --backend gpu");
  if (!flags.record.empty())
    check_output_path(flags.record, context.force);
  const auto recorded = read_recorded(flags.request);
  if (flags.effort.absent)
    require_absent(flags, moe::max_ranks);
  // What needs no job to be judged ends here, before there is one.
  const int ranks = recorded ? recorded->shape.n_ranks : 1;
  const auto points =
      points_of(flags.request, recorded, ranks, ranks, moe::ranks_limit(flags.kind()));
  if (!flags.record.empty() && points.size() > 1)
    throw bad("--record writes one routing, and this is a sweep of " +
                  std::to_string(points.size()) + " points",
              "give one number of tokens, hidden, experts and choices");
  RuntimeRequest request;
  if (flags.kind() == moe::BackendKind::gpu)
    request.gpu = GpuUse::required;
  return with_job(context, std::move(request),
                  [&](JobSession& session, Runtime& runtime, const Options& options) {
                    return measure_all(context, flags, recorded, session, runtime, options);
                  });
}

void add_shape_flags(CLI::App& command, moe::Request& request) {
  command.add_option("--num-tokens", request.tokens, "Tokens of a rank (default 128)")
      ->type_name("N[,N...]");
  command.add_option("--hidden", request.hidden, "Channels of a token (default 7168)")
      ->type_name("N[,N...]");
  command.add_option("--num-topk", request.top_k, "Experts that a token chooses (default 8)")
      ->type_name("N[,N...]");
  command.add_option("--num-experts", request.experts, "Experts of all ranks (default 256)")
      ->type_name("N[,N...]");
  command.add_option("--expert-alignment", request.expert_alignment,
                     "Counts per expert are rounded up to a multiple of it");
  command.add_option("--seed", request.seed, "Of routing and data (default 1)");
}

void add_routing_flags(CLI::App& command, MoeFlags& flags) {
  moe::Request& request = flags.request;
  command.add_option("--routing", request.routing,
                     "Who chooses whom: " + join(moe::routing_names(), ", ") +
                         "; or a file of --record (with / or . in its name)");
  command.add_option("--num-groups", request.groups, "grouped: groups of experts (default 8)");
  command.add_option("--num-topk-groups", request.top_groups,
                     "grouped: groups that a token chooses first (default 4)");
  command.add_option("--masked", request.masked_percent, "Percent of the choices that are none")
      ->check(CLI::Range(0, 100));
  command.add_flag("--uneven", request.uneven,
                   "Rank 0 has all tokens, the last rank none, the others some");
  command.add_option("--record", flags.record, "Write the routing to this file")->type_name("FILE");
}

void add_mode_flags(CLI::App& command, MoeFlags& flags) {
  moe::Request& request = flags.request;
  command
      .add_option("--mode", request.mode,
                  "ht: counts first, rows without gaps; ll: fixed slots, nothing goes ahead")
      ->check(CLI::IsMember({"ht", "ll"}));
  command.add_option("--dtype", request.dtype, "What a dispatch carries; a combine is bf16")
      ->check(CLI::IsMember({"bf16", "fp8"}));
  command.add_option("--scales", request.scales, "fp8: scales as FP32 or powers of two")
      ->check(CLI::IsMember({"float", "ue8m0"}));
  command
      .add_option("--combine", request.combine,
                  "ll: weighted adds a row per choice at home, partial a row per rank")
      ->check(CLI::IsMember({"weighted", "partial"}));
  command
      .add_option("--layout", request.layout,
                  "ll: received rows by source rank, or packed per expert besides")
      ->check(CLI::IsMember({"source", "expert"}));
  command.add_flag("--topk-weights", request.weights_home,
                   "ht: combine brings the weights of the choices home as well");
  command.add_flag("--bias", request.bias, "ht: combine adds a bias to each token");
  command.add_flag("--flat", request.flat,
                   "Several nodes: every row goes straight, none is handed on");
  command.add_option("--backend", flags.backend, "Who moves the rows")
      ->check(CLI::IsMember({"host", "gpu"}));
  command
      .add_option("--num-sms", request.num_sms,
                  "gpu: SMs that a kernel takes (default, and 0: its own)")
      ->type_name("N[,N...]");
}

void add_settings_flags(CLI::App& command, MoeFlags& flags) {
  command.add_flag("--tune", flags.tune,
                   "Try settings, verify each, say what was tried, and go on with the best");
  const char* const names = "sms, warps, stages, kept, self_sms, chunk_bytes (host: chunk_bytes)";
  command
      .add_option("--dispatch-settings", flags.dispatch_settings,
                  std::string("Of a dispatch, as --tune prints them: ") + names)
      ->type_name("NAME=N[,...]");
  command.add_option("--combine-settings", flags.combine_settings, "Of a combine, in the same way")
      ->type_name("NAME=N[,...]");
}

void add_effort_flags(CLI::App& command, MoeFlags& flags) {
  moe::Effort& effort = flags.effort;
  command.add_option("-n,--iters", effort.iterations, "Timed calls of each operation (default 20)")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("-w,--warmup", effort.warmup, "Calls before (default 3)")
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option("--verify-every", effort.verify_every,
                  "Verify every Nth iteration too (default: the first and the last)")
      ->check(CLI::Range(1, 1 << 20));
  command.add_flag("--no-verify", flags.no_verify, "Do not compare the data");
  command
      .add_option("--max-delay-us", effort.most_delay_us,
                  "Each PE comes so much later at most, at random")
      ->check(CLI::Range(0, 1'000'000));
  command
      .add_option("--patience-us", flags.request.patience_us,
                  "ll: a rank that does not come in that time is masked, and the rest go on")
      ->check(CLI::Range(1.0, 1e9));
  command.add_option("--absent", effort.absent,
                     "ll, with --patience-us: at the end this PE stays away from some more calls");
  command.add_option("--straggler", flags.straggler, "This PE comes so many us late, always")
      ->type_name("PE:US");
  command.add_option("--pin", flags.pin, "auto, none, or CPUs by local rank: 0,2,4-7")
      ->type_name("CPUS");
}

} // namespace

void add_moe(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "moe", "Dispatch and combine of mixture-of-experts models, verified and timed");
  command->footer(
      "Each PE is a rank with its share of the experts. Rows are compared bit by bit; times are\n"
      "those of the slowest rank of each iteration. Exit code 1: data was wrong; 3: a PE was "
      "lost.\n"
      "Examples:\n"
      "  shmemctl run -n 4 moe --num-tokens 128,1024\n"
      "  shmemctl run -n 4 --nodes 2 moe --mode ht --dtype fp8 --routing zipf\n"
      "  mpirun -n 16 shmemctl moe --mode ll --num-tokens 1,16,128 --json moe.json\n"
      "  shmemctl run -n 4 moe --routing grouped --record routing.txt\n"
      "  shmemctl run -n 2 moe --backend gpu --num-tokens 4096 --tune");
  auto flags = std::make_shared<MoeFlags>();
  add_shape_flags(*command, flags->request);
  add_routing_flags(*command, *flags);
  add_mode_flags(*command, *flags);
  add_settings_flags(*command, *flags);
  add_effort_flags(*command, *flags);
  add_measuring_job_options(*command, context);
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) { return run_moe(run_context, *flags); };
  });
}

} // namespace shmemctl
