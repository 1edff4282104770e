// What to simulate, from options and flags.
#include "src/model/sim/request.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/model/moe/shape_rules.h"
#include "src/model/sim/expected.h"

namespace shmemctl::sim {

namespace {

Error bad(const std::string& flag, const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, flag, "", problem, fix};
}

void refuse(bool idle, const char* flag, const char* why, const char* fix) {
  if (idle)
    throw bad(flag, why, fix);
}

/// Rejects flags that only --pattern moe uses.
void refuse_flags_of_moe(const Request& request) {
  const Request untouched;
  const std::pair<const char*, bool> set[] = {
      {"--ep-ranks", request.ep_ranks != untouched.ep_ranks},
      {"--num-tokens", request.tokens.has_value()},
      {"--hidden", request.hidden != untouched.hidden},
      {"--num-topk", request.top_k.has_value()},
      {"--num-experts", request.experts.has_value()},
      {"--routing", request.routing != untouched.routing},
      {"--num-groups", request.groups != untouched.groups},
      {"--num-topk-groups", request.top_groups != untouched.top_groups},
      {"--masked", request.masked_percent != untouched.masked_percent},
      {"--uneven", request.uneven},
      {"--mode", request.mode != untouched.mode},
      {"--flat", request.flat},
      {"--dtype", request.dtype != untouched.dtype},
      {"--combine", request.combine != untouched.combine},
      {"--copies", request.copies != untouched.copies},
      {"--seed", request.seed != untouched.seed},
      {"--steps", request.steps != untouched.steps},
      {"--sample", request.sample != untouched.sample},
      {"--move-expert", !request.move_experts.empty()}};
  for (const auto& [flag, idle] : set)
    refuse(idle, flag, "only --pattern moe has tokens, experts, routing and random steps",
           "omit it, or use --pattern moe");
}

/// Rejects flags that would have no effect.
void refuse_idle_flags(const Request& request) {
  const Request untouched;
  const bool low = request.mode == "ll", file = request.from_file();
  if (request.pattern != "moe")
    return refuse_flags_of_moe(request);
  refuse(request.size != untouched.size, "--bytes",
         "with --pattern moe, the size of a row follows from --hidden",
         "omit it, or use another --pattern");
  refuse(request.flat && low, "--flat", "low-latency mode always sends rows directly",
         "omit it, or use --mode ht");
  refuse(request.combine != untouched.combine && !low, "--combine",
         "high-throughput mode always returns one unweighted row per rank or node",
         "omit it, or use --mode ll");
  refuse(request.copies != untouched.copies && !low, "--copies",
         "high-throughput mode always sends one row per rank or node", "omit it, or use --mode ll");
  refuse((request.groups != untouched.groups || request.top_groups != untouched.top_groups) &&
             request.routing != moe::to_string(moe::RoutingKind::grouped),
         "--num-groups", "it and --num-topk-groups need --routing grouped",
         "omit them, or use --routing grouped");
  refuse((request.uneven || request.masked_percent > 0 || request.tokens || request.top_k ||
          request.experts) &&
             file,
         "--routing", "a recorded routing already fixes the tokens, the experts and all choices",
         "omit --num-tokens, --num-topk, --num-experts, --uneven and --masked");
}

/// The number of ranks of a group, nearest to `wanted`, with which equal groups of whole nodes
/// share the experts evenly; nothing if there is none.
std::optional<int> nearest_group(const Cluster& cluster, int experts, int wanted) {
  std::optional<int> nearest;
  for (int nodes = 1; nodes <= cluster.nodes; ++nodes) {
    const int ranks = nodes * cluster.node_pes;
    if (cluster.nodes % nodes != 0 || experts % ranks != 0)
      continue;
    if (!nearest || std::abs(ranks - wanted) < std::abs(*nearest - wanted))
      nearest = ranks;
  }
  return nearest;
}

/// Why a group of that many ranks with that many experts does not fit the cluster; "" if it does.
std::string group_problem(const Cluster& cluster, int experts, int ranks) {
  if (ranks < 1 || ranks % cluster.node_pes != 0)
    return fmt::format("{} ranks are not a whole number of nodes of {} ranks each", ranks,
                       cluster.node_pes);
  if (cluster.ranks() % ranks != 0)
    return fmt::format("{} ranks cannot be put into groups of {}", cluster.ranks(), ranks);
  if (experts % ranks != 0)
    return fmt::format("{} experts cannot be shared evenly by {} ranks", experts, ranks);
  return "";
}

std::string other_file(const Cluster& cluster) {
  return fmt::format("record a routing of {} ranks, or simulate a cluster that fits it",
                     cluster.node_pes);
}

/// @param groups a suggested number of experts must fit these, too
/// @param recorded a file fixes experts and ranks: nothing else can be suggested
void check_group(const Cluster& cluster, const moe::Shape& shape, const moe::GroupRule& groups,
                 bool recorded) {
  const int experts = shape.n_experts, ranks = shape.n_ranks;
  const std::string problem = group_problem(cluster, experts, ranks);
  if (problem.empty())
    return;
  if (recorded)
    throw bad("--routing", problem, other_file(cluster));
  if (const auto nearest = nearest_group(cluster, experts, ranks))
    throw bad("--ep-ranks", problem,
              fmt::format("use the nearest legal value: --ep-ranks {}", *nearest));
  const int node = cluster.node_pes;
  const int step = std::lcm(node, std::clamp(groups.groups, 1, experts > 0 ? experts : 1));
  const int choices = std::clamp(shape.top_k, 1, moe::max_top_k);
  const int least = (choices + step - 1) / step * step;
  throw bad("--num-experts", problem,
            fmt::format("use the nearest legal value: --num-experts {} with --ep-ranks {}",
                        std::clamp((experts + step / 2) / step * step, least,
                                   std::max(least, moe::max_experts / step * step)),
                        node));
}

std::vector<std::int32_t> experts_in_order(const moe::Shape& shape) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t expert = 0; expert < shape.n_experts; ++expert)
    ranks.push_back(shape.rank_of_expert(expert));
  return ranks;
}

moe::RoutingRequest routing_request(const Request& request) {
  moe::RoutingRequest routing;
  routing.kind = moe::parse_routing_kind(request.routing);
  routing.seed = request.seed;
  routing.tokens = request.tokens.value_or(128);
  routing.uneven = request.uneven;
  routing.masked_percent = request.masked_percent;
  if (routing.kind == moe::RoutingKind::grouped) {
    routing.groups = request.groups;
    routing.top_groups = request.top_groups;
  }
  return routing;
}

MoeTraffic moe_traffic(const Request& request, const Cluster& cluster,
                       const std::optional<moe::RecordedRouting>& recorded) {
  MoeTraffic traffic;
  moe::Shape& shape = traffic.shape;
  shape.n_experts = request.experts.value_or(256);
  shape.top_k = request.top_k.value_or(8);
  shape.max_tokens = request.tokens.value_or(128);
  shape.n_ranks = request.ep_ranks > 0 ? request.ep_ranks : cluster.ranks();
  if (recorded) {
    if (request.ep_ranks > 0 && request.ep_ranks != recorded->shape.n_ranks)
      throw bad(
          printable(request.routing),
          fmt::format("recorded with {} ranks, but --ep-ranks is {}", recorded->shape.n_ranks,
                      request.ep_ranks),
          group_problem(cluster, recorded->shape.n_experts, recorded->shape.n_ranks).empty()
              ? fmt::format("use the nearest legal value: --ep-ranks {}", recorded->shape.n_ranks)
              : other_file(cluster));
    shape = recorded->shape;
    traffic.replay = recorded->routing;
  }
  moe::GroupRule groups;
  if (!recorded) {
    traffic.routing = routing_request(request);
    if (traffic.routing.kind == moe::RoutingKind::grouped)
      groups = {traffic.routing.groups, traffic.routing.top_groups};
  }
  check_group(cluster, shape, groups, recorded.has_value());
  shape.hidden = request.hidden;
  traffic.format = request.dtype == "fp8" ? moe::Format::fp8 : moe::Format::bf16;
  moe::validate(shape, traffic.format, cluster.ranks(), groups);
  if (!recorded) {
    moe::RoutingRequest none = traffic.routing; // throws for groups that do not fit
    none.tokens = 0;
    moe::make_rank_routing(shape, none, 0);
  }
  traffic.node_ranks = cluster.node_pes;
  const bool low = request.mode == "ll";
  traffic.mode = low            ? MoeMode::low_latency
                 : request.flat ? MoeMode::high_throughput
                                : MoeMode::hybrid;
  traffic.partial = low && request.combine == "partial";
  traffic.per_choice = low && request.copies == "choice";
  traffic.rank_of_expert = experts_in_order(shape);
  return traffic;
}

} // namespace

WhatIf what_if_of(const Request& request) {
  WhatIf what_if;
  for (const std::string& text : request.kill_nics)
    what_if.nics.push_back(parse_dead_nic(text));
  for (const std::string& text : request.slow_nics)
    what_if.nics.push_back(parse_slow_nic(text));
  for (const std::string& text : request.move_experts)
    what_if.moves.push_back(parse_expert_move(text));
  return what_if;
}

ClusterRequest cluster_of(const Request& request, const MappingRequest& mapping) {
  ClusterRequest cluster;
  cluster.nodes = request.nodes;
  cluster.mapping = mapping;
  cluster.fabric = {request.fabric == "fat-tree" ? FabricKind::fat_tree : FabricKind::rail,
                    request.leaf_nodes, request.oversubscription};
  cluster.nic_Gbps = request.nic_Gbps;
  cluster.link_GBps = request.link_GBps;
  return cluster;
}

Traffic traffic_of(const Request& request, const Cluster& cluster,
                   const std::optional<moe::RecordedRouting>& recorded) {
  Traffic traffic;
  traffic.pattern = parse_pattern(request.pattern);
  refuse_idle_flags(request);
  if (traffic.pattern == Pattern::moe) {
    traffic.moe = moe_traffic(request, cluster, recorded);
    return traffic;
  }
  const auto size_bytes = parse_size_bytes(request.size);
  if (!size_bytes)
    throw bad("--bytes " + printable(request.size), "not a size",
              "pass a size, such as 4096, 64K or 1M");
  traffic.size_bytes = static_cast<double>(*size_bytes);
  return traffic;
}

Traffic moved(Traffic traffic, const std::vector<ExpertMove>& moves) {
  if (!traffic.moe)
    return traffic;
  const moe::Shape& shape = traffic.moe->shape;
  for (const ExpertMove& move : moves) {
    if (move.expert >= shape.n_experts)
      throw bad(
          "--move-expert",
          fmt::format("no expert {}: the experts are 0 to {}", move.expert, shape.n_experts - 1),
          fmt::format("use the nearest legal value: {}:{}", shape.n_experts - 1,
                      std::min(move.rank, shape.n_ranks - 1)));
    if (move.rank >= shape.n_ranks)
      throw bad("--move-expert",
                fmt::format("no rank {}: the ranks are 0 to {}", move.rank, shape.n_ranks - 1),
                fmt::format("use the nearest legal value: {}:{}", move.expert, shape.n_ranks - 1));
    traffic.moe->rank_of_expert[static_cast<std::size_t>(move.expert)] = move.rank;
  }
  return traffic;
}

Effort effort_of(const Request& request, const Traffic& traffic) {
  Effort effort;
  effort.steps = request.steps;
  effort.seed = request.seed;
  effort.sampling = request.sample == "tokens"   ? Sampling::tokens
                    : request.sample == "counts" ? Sampling::counts
                                                 : Sampling::automatic;
  if (traffic.fixed())
    return effort;
  if (effort.steps == 0 && !Expectation::known_for(*traffic.moe))
    throw bad("--steps 0", "this routing has no closed formula and must be sampled",
              "use the nearest legal value: --steps 1");
  if (effort.sampling == Sampling::counts && !NodeCounts::can_draw(*traffic.moe))
    throw bad("--sample counts",
              "requires --mode ht without --flat, uniform routing, and two or more nodes with "
              "the same number of experts",
              "use --sample tokens");
  return effort;
}

Variants simulate_variants(const Node& node, const Request& request, const MappingRequest& mapping,
                           const Traffic& traffic) {
  const WhatIf what_if = what_if_of(request);
  const Effort effort = effort_of(request, traffic);
  const Traffic changed = moved(traffic, what_if.moves);
  Variants variants;
  ClusterRequest given = cluster_of(request, mapping);
  variants.names.emplace_back("given");
  variants.clusters.push_back(build_cluster(node, given));
  if (mapping.policy != Policy::optimal) {
    ClusterRequest best = given;
    best.mapping.policy = Policy::optimal;
    variants.names.emplace_back("optimal");
    variants.clusters.push_back(build_cluster(node, best));
  }
  const std::size_t plain = variants.clusters.size();
  if (what_if.any()) {
    given.changes = what_if.nics;
    variants.names.emplace_back("what-if");
    variants.clusters.push_back(build_cluster(node, given));
  }
  const bool apart = !what_if.moves.empty(); // rows of a moved expert go to another rank
  const bool best_is_given = plain == 2 && variants.clusters[1].same_nics(variants.clusters[0]);
  std::vector<const Cluster*> together;
  for (std::size_t i = 0; i < (apart ? plain : variants.clusters.size()); ++i)
    if (i != 1 || !best_is_given)
      together.push_back(&variants.clusters[i]);
  variants.results = simulate(together, traffic, effort);
  if (best_is_given) { // a new simulation would give the same rows
    variants.results.insert(variants.results.begin() + 1, variants.results.front());
    variants.results[1].cluster = &variants.clusters[1];
  }
  if (apart) {
    Effort again = effort;
    if (!changed.fixed() && !NodeCounts::can_draw(*changed.moe))
      again.sampling = Sampling::tokens;
    variants.results.push_back(simulate({&variants.clusters.back()}, changed, again).front());
  }
  return variants;
}

} // namespace shmemctl::sim
