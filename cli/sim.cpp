// `shmemctl sim`: simulated traffic per NIC of a cluster, and the time of a step (a dispatch and a
// combine, or one transfer of another pattern).
#include <iostream>

#include "cli/node_job.h"
#include "cli/routing_flags.h"
#include "src/base/input.h"
#include "src/instruments/bench/statistics.h"
#include "src/model/moe/shape_rules.h"
#include "src/model/sim/cluster.h"
#include "src/model/sim/request.h"
#include "src/model/sim/summary.h"
#include "src/model/topo/advice/advice.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/mapping/request.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

namespace {

struct SimFlags {
  sim::Request request;
  SourceFlags source;
  int top = 8;
  bool all = false;
};

ResultRow row_of(const sim::Summary& summary, const sim::OperationTime& time,
                 const sim::Traffic& traffic) {
  ResultRow row;
  row.case_name = "sim-" + time.operation;
  row.params = params_json(summary, traffic);
  row.stats = bench::stats_of(time.samples_us.empty() ? std::vector<double>{time.time_us.mean}
                                                      : time.samples_us);
  row.samples = bench::kept_samples({time.samples_us});
  row.unit = "us";
  if (time.time_us.mean > 0)
    row.bandwidth_GBps = time.crossing_bytes / time.time_us.mean * 1e-3;
  if (!time.limited_by.empty())
    row.limited_by = time.limited_by;
  row.reason = "simulated: no data was transferred";
  return row;
}

void describe(Report& report, const NodeSource& source, const sim::Variants& variants) {
  const Node& node = source.node;
  const sim::Cluster& given = variants.clusters.front();
  report.job.pes = given.ranks();
  report.job.nodes = given.nodes;
  report.hosts = nlohmann::json::array({host_json(node, source.sysroot.get())});
  put_node(node, given.mapping, report);
}

ExitCode run_sim(const SimFlags& flags, Session& session, const Options& options) {
  const sim::Request& request = flags.request;
  std::optional<moe::RecordedRouting> recorded;
  if (request.pattern == "moe" && request.from_file()) {
    session.phase("reading " + request.routing);
    recorded = moe::parse_routing_file(read_input(request.routing), request.routing);
  }
  const NodeSource source = session.load(flags.source);
  const MappingRequest mapping = mapping_request(options, source);
  session.phase("building the cluster");
  const sim::Cluster cluster = build_cluster(source.node, cluster_of(request, mapping));
  const sim::Traffic traffic = traffic_of(request, cluster, recorded);
  session.phase("simulating");
  const sim::Variants variants = simulate_variants(source.node, request, mapping, traffic);
  std::vector<sim::Summary> summaries;
  for (std::size_t i = 0; i < variants.results.size(); ++i)
    summaries.push_back(summarize(variants.names[i], variants.results[i], traffic));
  Report& report = session.report();
  describe(report, source, variants);
  for (const sim::Summary& summary : summaries)
    for (const sim::OperationTime& time : summary.operations)
      report.results.push_back(row_of(summary, time, traffic));
  report.simulation =
      simulation_json(summaries, {traffic, effort_of(request, traffic), what_if_of(request),
                                  flags.all ? 0 : static_cast<std::size_t>(flags.top)});
  report.findings = check_source(source.node);
  for (Finding& finding : check_mapping(source.node, map_nics(source.node, mapping)))
    if (finding.id == "nvshmem-version-unknown") // other findings are for `topo`
      report.findings.push_back(std::move(finding));
  for (const auto& more :
       {cluster_findings(source.node, variants.clusters.front()), simulation_findings(summaries)})
    report.findings.insert(report.findings.end(), more.begin(), more.end());
  return session.finish();
}

void add_cluster_flags(CLI::App& command, sim::Request& request) {
  command
      .add_option("--nodes", request.nodes,
                  "Nodes of the cluster, each with this topology (default 2)")
      ->check(CLI::Range(1, sim::max_nodes));
  command
      .add_option("--fabric", request.fabric,
                  "How NICs are connected. rail (default): NIC i of each node to leaf switch i; "
                  "fat-tree: all NICs of a node to one leaf switch")
      ->type_name("FABRIC")
      ->check(CLI::IsMember({"rail", "fat-tree"}));
  command
      .add_option("--leaf-nodes", request.leaf_nodes,
                  "Nodes that are connected to the same leaf switches (default 32)")
      ->check(CLI::Range(1, sim::max_nodes));
  command
      .add_option(
          "--oversubscription", request.oversubscription,
          "Bandwidth of a leaf switch to its nodes, divided by that of its uplinks (default 1)")
      ->check(CLI::Range(1.0, 1e6));
  command
      .add_option("--nic-gbits", request.nic_Gbps,
                  "Rate of each NIC port in Gbit/s (default: from the topology)")
      ->check(CLI::Range(0.001, 1e6));
  command
      .add_option("--nvlink-gbytes", request.link_GBps,
                  "NVLink bandwidth of each GPU in GB/s (default: from the topology)")
      ->check(CLI::Range(0.001, 1e6));
}

void add_traffic_flags(CLI::App& command, sim::Request& request) {
  command
      .add_option("--pattern", request.pattern,
                  "Which ranks send to which. moe (default): dispatch and combine, the only "
                  "pattern with tokens, experts, routing and random steps; all-to-all: each to "
                  "every other; put-ring: each to its counterpart on the next node; put-pairs "
                  "(even --nodes): each to that half the cluster away; put-incast: all to rank 0")
      ->type_name("PATTERN")
      ->check(CLI::IsMember(sim::pattern_names()));
  command
      .add_option("-b,--bytes", request.size,
                  "Bytes that a rank sends to each target (default 1M; only with a --pattern other "
                  "than moe)")
      ->type_name("SIZE");
  command
      .add_option("--ep-ranks", request.ep_ranks,
                  "Ranks per expert-parallel group: a multiple of a node's ranks, and a divisor of "
                  "the number of all ranks and of --num-experts (default: all)")
      ->check(CLI::Range(1, moe::max_experts));
  command.add_option("--num-tokens", request.tokens, "Tokens per rank (default 128)")
      ->check(CLI::Range(0, moe::tokens_limit));
  command
      .add_option("--hidden", request.hidden,
                  "Hidden size: elements per token, a multiple of 8, with --dtype fp8 of 128 "
                  "(default 7168)")
      ->check(CLI::Range(moe::hidden_step, moe::max_hidden));
  command
      .add_option("--num-topk", request.top_k,
                  "Experts per token, at most --num-experts (default 8)")
      ->check(CLI::Range(1, moe::max_top_k));
  command
      .add_option("--num-experts", request.experts,
                  "Experts per expert-parallel group, a multiple of its ranks (default 256)")
      ->check(CLI::Range(1, moe::max_experts));
  add_routing_flags(
      command, request,
      "written by moe --record (a name with / or .), which also sets the ranks of a group, and "
      "excludes --num-tokens, --num-topk, --num-experts, --uneven and --masked",
      "Rank 0 of a group", "the last one");
  command
      .add_option("--mode", request.mode,
                  "ht (default): each token is sent once to each destination node and forwarded "
                  "there over NVLink; ll: rows are sent directly to their ranks")
      ->type_name("MODE")
      ->check(CLI::IsMember({"ht", "ll"}));
  command.add_flag("--flat", request.flat,
                   "Send each token directly to each destination rank, instead of once to its node "
                   "(only with --mode ht)");
  command
      .add_option("--dtype", request.dtype,
                  "Data type of dispatched rows (default bf16); combine always carries bf16")
      ->type_name("DTYPE")
      ->check(CLI::IsMember({"bf16", "fp8"}));
  command
      .add_option("--combine", request.combine,
                  "Rows that combine returns per token. weighted (default): one for each chosen "
                  "expert; partial: one for each rank (only with --mode ll)")
      ->type_name("KIND")
      ->check(CLI::IsMember({"weighted", "partial"}));
  command
      .add_option(
          "--copies", request.copies,
          "Rows that dispatch sends per token. rank (default): one for each rank, as shmemctl moe "
          "does; choice: one for each chosen expert, as DeepEP does (only with --mode ll)")
      ->type_name("KIND")
      ->check(CLI::IsMember({"rank", "choice"}));
}

void add_effort_flags(CLI::App& command, SimFlags& flags) {
  sim::Request& request = flags.request;
  command.add_option("--seed", request.seed, "Seed of the random number generator (default 1)")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{0xffffffff})); // as moe's
  command
      .add_option("--steps", request.steps,
                  "Number of sampled steps, each a dispatch and a combine (default 64); "
                  "0: expected values only (not with --routing zipf)")
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option("--sample", request.sample,
                  "What is drawn in a step. tokens: the choices of every token (step 0 is what moe "
                  "routes with the same seed); counts: only how many tokens go to each node (only "
                  "with --mode ht, without --flat, with --routing uniform and several nodes in a "
                  "group); auto (default): counts if allowed and --num-tokens >= nodes of a group")
      ->type_name("METHOD")
      ->check(CLI::IsMember({"auto", "tokens", "counts"}));
  command
      .add_option(
          "--kill-nic", request.kill_nics,
          "Also simulate the cluster without this NIC: [NODE/]NAME[:PORT]; without NODE, "
          "on all nodes; may be repeated; one further simulation has all of --kill-nic, --slow-nic "
          "and --move-expert")
      ->type_name("NIC");
  command
      .add_option("--slow-nic", request.slow_nics,
                  "Also simulate the cluster with this NIC at a fraction of its rate, above 0 and "
                  "at most 1: [NODE/]NAME[:PORT]=0.5; without NODE, on all nodes; may be repeated; "
                  "one further simulation has all of --kill-nic, --slow-nic and --move-expert")
      ->type_name("NIC=FRACTION");
  command
      .add_option("--move-expert", request.move_experts,
                  "Also simulate the cluster with this expert on another rank of its group (only "
                  "with --pattern moe); may be repeated; one further simulation has all of "
                  "--kill-nic, --slow-nic and --move-expert")
      ->type_name("EXPERT:RANK");
  command
      .add_option("--top", flags.top,
                  "How many NICs, nodes and switches are listed, the busiest first (default 8)")
      ->check(CLI::Range(1, 1 << 20));
  command.add_flag("--all", flags.all, "List all NICs, nodes and switches, whatever --top says");
}

} // namespace

void add_sim(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("sim", "Simulate a MoE dispatch and combine, or another traffic pattern, "
                                "on a cluster: the time, and the traffic of each NIC");
  command->footer(
      "A cluster is --nodes copies of one topology (--from, --sysroot or this machine). No data "
      "is\nmoved: times are lower bounds, the bytes of the busiest link divided by its rate.\n"
      "Examples:\n"
      "  shmemctl sim --from topo.xml --nodes 8 --num-tokens 4096 --dtype fp8\n"
      "  shmemctl sim --from topo.xml --nodes 2048 --ep-ranks 256 --steps 1024 --world deepep-ht\n"
      "  shmemctl sim --from topo.xml --nodes 32 --routing zipf --mode ll --kill-nic 3/mlx5_0\n"
      "  shmemctl sim --nodes 16 --pattern all-to-all --fabric fat-tree --oversubscription 4\n"
      "  shmemctl sim --from topo.xml --nodes 4 --slow-nic 0/mlx5_2=0.5 --move-expert 7:31");
  auto flags = std::make_shared<SimFlags>();
  auto source = std::shared_ptr<SourceFlags>(flags, &flags->source);
  add_source_flags(*command, context, source);
  add_cluster_flags(*command, flags->request);
  add_traffic_flags(*command, flags->request);
  add_effort_flags(*command, *flags);
  add_mapping_flags(*command, context);
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) {
      return once_per_job(run_context, [&](Session& session, const Options& options) {
        return run_sim(*flags, session, options);
      });
    };
  });
}

} // namespace shmemctl
