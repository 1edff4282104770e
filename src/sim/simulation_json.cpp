// The report's `simulation`.
#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/sim/node_counts.h"
#include "src/sim/summary.h"

namespace shmemctl::sim {

namespace {

using nlohmann::json;

json estimate_json(const Estimate& estimate, const char* reason) {
  json object{{"mean", estimate.mean}, {"margin95", nullptr}};
  if (estimate.margin)
    object["margin95"] = *estimate.margin;
  else
    object["margin95_reason"] = reason;
  return object;
}

const char* no_margin(const Result& result) {
  return result.exact_times ? "every step is the same" : "too few steps";
}

json nic_json(const Summary& summary, const NicBytes& nic) {
  const Port& port = summary.result->cluster->ports[static_cast<std::size_t>(nic.port)];
  json object{{"node", nic.node},
              {"device", port.device},
              {"port", port.number},
              {"out_bytes", nic.out},
              {"in_bytes", nic.in},
              {"over_even", summary.even_bytes > 0 ? nic.most() / summary.even_bytes : 1}};
  if (nic.out_margin) {
    object["out_margin95_bytes"] = *nic.out_margin;
    object["in_margin95_bytes"] = *nic.in_margin;
  }
  return object;
}

/// The indices of the `top` largest, largest first; all in their order where `top` is 0.
template <class Value>
std::vector<std::size_t> largest(std::size_t count, std::size_t top, Value&& value) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (top == 0)
    return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return value(a) > value(b); });
  order.resize(std::min(top, count));
  return order;
}

json rails_json(const Summary& summary) {
  json rails = json::array();
  const std::vector<Port>& ports = summary.result->cluster->ports;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    double out = 0, in = 0, most = 0;
    for (std::size_t i = port; i < summary.nics.size(); i += ports.size()) {
      out += summary.nics[i].out;
      in += summary.nics[i].in;
      most = std::max(most, summary.nics[i].most());
    }
    rails.push_back({{"device", ports[port].device},
                     {"port", ports[port].number},
                     {"out_bytes", out},
                     {"in_bytes", in},
                     {"most_bytes", most}});
  }
  return rails;
}

json nodes_json(const Summary& summary, std::size_t top) {
  const Cluster& cluster = *summary.result->cluster;
  const std::size_t ports = cluster.ports.size(), nodes = static_cast<std::size_t>(cluster.nodes);
  std::vector<double> out(nodes), in(nodes);
  for (std::size_t i = 0; i < summary.nics.size(); ++i) {
    out[i / ports] += summary.nics[i].out;
    in[i / ports] += summary.nics[i].in;
  }
  json list = json::array();
  for (const std::size_t node :
       largest(nodes, top, [&](std::size_t i) { return std::max(out[i], in[i]); }))
    list.push_back({{"node", node}, {"out_bytes", out[node]}, {"in_bytes", in[node]}});
  return list;
}

json switches_json(const Summary& summary, std::size_t top) {
  struct Leaf {
    double up = 0, down = 0;
    std::string name;
  };
  std::map<int, Leaf> leaves;
  for (const ClassResult& one : summary.result->classes)
    for (const int first : one.groups.first_nodes) {
      const Loads here(Group{summary.result->cluster, first, one.groups.group.nodes});
      for (std::size_t i = 0; i < here.up.size(); ++i) {
        Leaf& leaf = leaves[here.leaf_number(i)];
        leaf.up += one.bytes.dispatch.up[i] + one.bytes.combine.up[i];
        leaf.down += one.bytes.dispatch.down[i] + one.bytes.combine.down[i];
        leaf.name = here.leaf_name(i);
      }
    }
  std::vector<std::pair<int, Leaf>> all(leaves.begin(), leaves.end());
  json list = json::array();
  for (const std::size_t i : largest(all.size(), top, [&](std::size_t at) {
         return std::max(all[at].second.up, all[at].second.down);
       }))
    list.push_back({{"number", all[i].first},
                    {"name", all[i].second.name},
                    {"up_bytes", all[i].second.up},
                    {"down_bytes", all[i].second.down}});
  return json{{"count", all.size()}, {"list", list}};
}

json operation_json(const Summary& summary, const OperationTime& time) {
  json object{{"operation", time.operation},
              {"time_us", estimate_json(time.time_us, no_margin(*summary.result))},
              {"of", time.samples_us.empty()       ? "expected bytes"
                     : summary.result->exact_times ? "exact bytes"
                                                   : "sampled steps"},
              {"crossing_bytes_per_rank", time.crossing_bytes},
              {"link_bytes_per_rank", time.link_bytes},
              {"limited_by", nullptr}};
  if (time.limited_by.empty()) {
    object["limited_by_reason"] = "nothing moves, or only over links of unknown rate";
    return object;
  }
  object["limited_by"] = time.limited_by;
  if (time.operation != "step")
    object["bottleneck"] = {{"resource", to_string(time.bottleneck.resource)},
                            {"size_bytes", time.bottleneck.size_bytes},
                            {"rate_GBps", time.bottleneck.rate_GBps},
                            {"time_us", time.bottleneck.time_us}};
  if (time.most_often && time.operation != "step")
    object["most_often"] = {{"resource", to_string(*time.most_often)},
                            {"share_of_steps", time.most_often_share}};
  return object;
}

json variant_json(const Summary& summary, std::size_t top) {
  const Mapping& mapping = summary.result->cluster->mapping;
  json operations = json::array();
  for (const OperationTime& time : summary.operations)
    operations.push_back(operation_json(summary, time));
  json nics = json::array();
  for (const std::size_t i :
       largest(summary.nics.size(), top, [&](std::size_t at) { return summary.nics[at].most(); }))
    nics.push_back(nic_json(summary, summary.nics[i]));
  const json switches = switches_json(summary, top);
  json object{
      {"name", summary.name},
      {"policy", to_string(mapping.request.policy)},
      {"world", to_string(mapping.request.world)},
      {"busiest", nic_json(summary, summary.nics[summary.busiest])},
      {"even_bytes", summary.even_bytes},
      {"operations", operations},
      {"nics", nics},
      {"nics_left_out", summary.nics.size() - nics.size()},
      {"rails", rails_json(summary)},
      {"nodes", nodes_json(summary, top)},
      {"switches", switches.at("list")},
      {"switches_left_out", switches.at("count").get<std::size_t>() - switches.at("list").size()}};
  if (summary.slowest_group_us)
    object["slowest_group_us"] = estimate_json(
        *summary.slowest_group_us,
        summary.result->exact_times ? "every step is the same"
                                    : "about as many groups as steps: the mean is at least this");
  return object;
}

const char* sampling_words(const Result& result, const Traffic& traffic) {
  if (traffic.fixed())
    return "nothing is drawn: every step moves the same";
  if (result.steps == 0)
    return "nothing is drawn: times are those that the expected bytes take";
  return result.sampling == Sampling::counts
             ? "each step: one group of each kind; of each rank, tokens per node"
             : "each step: one group of each kind; every token's choices";
}

} // namespace

json params_json(const Summary& summary, const Traffic& traffic) {
  const Cluster& cluster = *summary.result->cluster;
  json params{{"variant", summary.name},
              {"nodes", cluster.nodes},
              {"pes_per_node", cluster.node_pes},
              {"fabric", to_string(cluster.fabric.kind)},
              {"leaf_nodes", cluster.fabric.leaf_nodes},
              {"oversubscription", cluster.fabric.oversubscription},
              {"policy", to_string(cluster.mapping.request.policy)},
              {"world", to_string(cluster.mapping.request.world)},
              {"pattern", to_string(traffic.pattern)}};
  if (!traffic.moe) {
    params["size_bytes"] = static_cast<std::uint64_t>(traffic.size_bytes);
    return params;
  }
  const MoeTraffic& moe = *traffic.moe;
  params.update({{"ep_ranks", moe.shape.n_ranks},
                 {"tokens", moe.replay ? moe.shape.max_tokens : moe.routing.tokens},
                 {"hidden", moe.shape.hidden},
                 {"topk", moe.shape.top_k},
                 {"experts", moe.shape.n_experts},
                 {"routing", moe.replay ? "file" : to_string(moe.routing.kind)},
                 {"mode", to_string(moe.mode)},
                 {"dtype", moe.format == moe::Format::fp8 ? "fp8" : "bf16"}});
  if (moe.mode == MoeMode::low_latency)
    params["combine"] = moe.partial ? "partial" : "weighted";
  if (moe.per_choice)
    params["copies"] = "choice";
  return params;
}

json simulation_json(const std::vector<Summary>& variants, const ReportRequest& request) {
  const Summary& given = variants.front();
  const Result& result = *given.result;
  json changes = json::array();
  for (const NicChange& change : request.what_if.nics)
    changes.push_back(to_string(change));
  for (const ExpertMove& move : request.what_if.moves)
    changes.push_back(fmt::format("--move-expert {}:{}", move.expert, move.rank));
  json list = json::array();
  for (const Summary& variant : variants)
    list.push_back(variant_json(variant, request.top));
  std::size_t groups = 0;
  for (const ClassResult& one : result.classes)
    groups += one.groups.first_nodes.size();
  json simulation{{"steps", result.steps},
                  {"seed", request.effort.seed},
                  {"bytes", result.exact_bytes ? "exact" : "sampled"},
                  {"times", result.exact_times ? "exact"
                            : result.steps > 0 ? "sampled"
                                               : "expected"},
                  {"sampling", sampling_words(result, request.traffic)},
                  {"ranks", result.cluster->ranks()},
                  {"groups", groups},
                  {"group_kinds", result.classes.size()},
                  {"nic_ports", given.nics.size()},
                  {"params", params_json(given, request.traffic)},
                  {"changes", changes},
                  {"variants", list}};
  simulation["params"].erase("variant");
  for (const Summary& variant : variants)
    if (variant.name != "given" && variant.step().time_us.mean > 0) {
      const double ratio = given.step().time_us.mean / variant.step().time_us.mean;
      if (variant.name == "optimal")
        simulation["price_of_mapping"] = ratio;
      else if (ratio > 0)
        simulation["what_if_factor"] = 1 / ratio;
    }
  return simulation;
}

} // namespace shmemctl::sim
