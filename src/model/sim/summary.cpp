// A simulation summarised in a few lines, and as JSON.
#include "src/model/sim/summary.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/base/text.h"
#include "src/model/sim/expected.h"
#include "src/model/sim/limit.h"
#include "src/model/sim/takeover.h"

namespace shmemctl::sim {

namespace {

constexpr double hot = 1.2;   ///< a NIC at this multiple of the even share or above is a hot spot
constexpr double dear = 1.05; ///< a step is slow if it takes this many times as long as another

std::vector<NicBytes> nics_of(const Result& result) {
  const Cluster& cluster = *result.cluster;
  const std::size_t ports = cluster.ports.size();
  std::vector<NicBytes> nics(static_cast<std::size_t>(cluster.nodes) * ports);
  for (const ClassResult& one : result.classes)
    for (const int first : one.groups.first_nodes)
      for (std::size_t i = 0; i < one.bytes.dispatch.out.size(); ++i) {
        NicBytes& nic = nics[static_cast<std::size_t>(first) * ports + i];
        nic.node = first + static_cast<int>(i / ports);
        nic.port = static_cast<int>(i % ports);
        nic.out = one.bytes.dispatch.out[i] + one.bytes.combine.out[i];
        nic.in = one.bytes.dispatch.in[i] + one.bytes.combine.in[i];
        if (one.out_error.empty())
          continue;
        nic.out_margin = normal_95 * one.out_error[i];
        nic.in_margin = normal_95 * one.in_error[i];
      }
  return nics;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The class whose steps take longest on average.
const ClassResult& slowest_class(const Result& result, std::vector<double> ClassResult::*times,
                                 Loads MoeLoads::*loads) {
  const auto time = [&](const ClassResult& one) {
    if (!(one.*times).empty())
      return estimate_mean(one.*times).mean;
    const auto slowest = (one.bytes.*loads).slowest();
    return slowest ? slowest->time_us : 0;
  };
  const ClassResult* slowest = &result.classes.front();
  for (const ClassResult& one : result.classes)
    if (time(one) > time(*slowest))
      slowest = &one;
  return *slowest;
}

OperationTime operation_of(const Result& result, const char* name,
                           std::vector<double> ClassResult::*times, Loads MoeLoads::*loads,
                           std::map<Resource, int> ClassResult::*by) {
  const ClassResult& one = slowest_class(result, times, loads);
  const Loads& bytes = one.bytes.*loads;
  OperationTime time;
  time.operation = name;
  time.crossing_bytes = sum(bytes.out) / bytes.group().ranks();
  time.link_bytes = sum(bytes.link_out) / bytes.group().ranks();
  if (const auto slowest = bytes.slowest()) {
    time.bottleneck = *slowest;
    time.limited_by = limit_name(bytes, *slowest);
  }
  time.time_us = {time.bottleneck.time_us, std::nullopt};
  if (const std::vector<double>& samples = one.*times; !samples.empty()) {
    time.samples_us = samples;
    time.time_us = estimate_mean(samples);
  }
  for (const auto& [resource, steps] : one.*by) {
    const double share = steps / static_cast<double>(time.samples_us.size());
    if (share > time.most_often_share) {
      time.most_often = resource;
      time.most_often_share = share;
    }
  }
  return time;
}

/// The time of a step: dispatch, then combine. The longer one determines what limits the step.
OperationTime step_of(const Result& result, const OperationTime& dispatch,
                      const OperationTime& combine) {
  const ClassResult* slowest = &result.classes.front();
  for (const ClassResult& one : result.classes)
    if (estimate_mean(one.step_us).mean > estimate_mean(slowest->step_us).mean)
      slowest = &one;
  OperationTime step = combine.time_us.mean > dispatch.time_us.mean ? combine : dispatch;
  step.operation = "step";
  step.samples_us = slowest->step_us;
  step.time_us = slowest->step_us.empty()
                     ? Estimate{dispatch.time_us.mean + combine.time_us.mean, std::nullopt}
                     : estimate_mean(slowest->step_us);
  step.crossing_bytes = dispatch.crossing_bytes + combine.crossing_bytes;
  step.link_bytes = dispatch.link_bytes + combine.link_bytes;
  return step;
}

} // namespace

bool Summary::is_even() const {
  const NicBytes& nic = nics[busiest];
  // The largest of thousands of sampled means can be four standard errors (two margins) above their
  // common expectation.
  const double noise = 2 * (nic.out >= nic.in ? nic.out_margin : nic.in_margin).value_or(0);
  return nic.most() - noise <= (1 + same_within) * even_bytes;
}

bool Summary::is_hot(const NicBytes& nic) const {
  return even_bytes > 0 && over_even(nic) >= hot;
}

Summary summarize(const std::string& name, const Result& result, const Traffic& traffic) {
  Summary summary;
  summary.name = name;
  summary.result = &result;
  summary.nics = nics_of(result);
  const auto busiest =
      std::max_element(summary.nics.begin(), summary.nics.end(),
                       [](const NicBytes& a, const NicBytes& b) { return a.most() < b.most(); });
  summary.busiest = static_cast<std::size_t>(busiest - summary.nics.begin());
  double total = 0;
  for (const NicBytes& nic : summary.nics) {
    total += nic.out;
    summary.alike += nic.most() >= (1 - same_within) * busiest->most();
  }
  const int ports = result.cluster->fabric_ports();
  summary.even_bytes = ports > 0 ? total / ports / result.cluster->nodes : 0;
  summary.operations.push_back(operation_of(result, traffic.moe ? "dispatch" : "transfer",
                                            &ClassResult::dispatch_us, &MoeLoads::dispatch,
                                            &ClassResult::slowest_dispatch));
  if (traffic.moe) {
    summary.operations.push_back(operation_of(result, "combine", &ClassResult::combine_us,
                                              &MoeLoads::combine, &ClassResult::slowest_combine));
    summary.operations.push_back(step_of(result, summary.operations[0], summary.operations[1]));
  }
  std::size_t groups = 0;
  for (const ClassResult& one : result.classes)
    groups += one.groups.first_nodes.size();
  if (groups > 1 && result.steps > 0)
    summary.slowest_group_us = estimate_slowest(result.classes);
  return summary;
}

namespace {

std::string port_text(const Summary& summary, int port) {
  return to_string(summary.result->cluster->ports[static_cast<std::size_t>(port)]);
}

/// The hot spots of a variant, of which there is at least one.
struct HotNics {
  /// "node 0 mlx5_0/1"; "mlx5_0/1, mlx5_2/1" if the ports are the same on all nodes.
  std::string subject;
  std::string text; ///< traffic that the ports carry
};

HotNics hot_nics(const Summary& summary) {
  std::map<int, int> nodes_of_port;
  std::size_t number = 0;
  for (const NicBytes& nic : summary.nics)
    if (summary.is_hot(nic)) {
      ++nodes_of_port[nic.port];
      ++number;
    }
  const NicBytes& busiest = summary.nics[summary.busiest];
  const std::string share = fmt::format("{:.2f} times the even share", summary.over_even());
  const std::string name =
      fmt::format("node {} {}", busiest.node, port_text(summary, busiest.port));
  const bool everywhere =
      std::all_of(nodes_of_port.begin(), nodes_of_port.end(), [&summary](const auto& one) {
        return one.second == summary.result->cluster->nodes;
      });
  if (number == 1 || !everywhere)
    return {name, fmt::format("{} carries {:.2f} MB {} a step, {}{}", name, busiest.most() / 1e6,
                              busiest.direction(), share,
                              number == 1 ? std::string()
                                          : fmt::format("; {} more NICs carry at least {} times "
                                                        "the even share",
                                                        number - 1, hot))};
  std::vector<std::string> ports;
  for (const auto& [port, nodes] : nodes_of_port)
    ports.push_back(port_text(summary, port));
  const bool one_size = summary.alike == number;
  return {join(ports, ", "), fmt::format("{} of every node {} {}{:.2f} MB a step, {}",
                                         join(ports, ", "), ports.size() == 1 ? "carries" : "carry",
                                         one_size ? "" : "up to ", busiest.most() / 1e6, share)};
}

} // namespace

Findings simulation_findings(const std::vector<Summary>& variants) {
  Findings findings;
  const Summary& given = variants.front();
  const auto named = [&](const char* name) {
    return std::find_if(variants.begin(), variants.end(),
                        [name](const Summary& one) { return one.name == name; });
  };
  const auto optimal = named("optimal");
  const double price = optimal == variants.end() || !(optimal->step().time_us.mean > 0)
                           ? 1
                           : given.step().time_us.mean / optimal->step().time_us.mean;
  const std::string takes =
      fmt::format("a step takes {:.2f} times as long as with the best mapping", price);
  const char* const best =
      "shmemctl topo --policy optimal on a node prints the lines for the best mapping";
  if (given.is_hot(given.nics[given.busiest]) && !given.is_even()) {
    const HotNics nics = hot_nics(given);
    findings.push_back(
        {"nic-hotspot-predicted", Severity::warning, nics.subject,
         fmt::format("{}; {}", nics.text, takes),
         price >= dear ? best
                       : "the mapping is not at fault: spread the popular experts over nodes"});
  } else if (price >= dear) {
    findings.push_back({"nic-hotspot-predicted", Severity::warning, "mapping", takes, best});
  }
  const Resource resource = given.step().bottleneck.resource;
  if (given.step().bottleneck.size_bytes > 0 &&
      (resource == Resource::uplink || resource == Resource::downlink))
    findings.push_back({"uplink-predicted", Severity::info, given.step().limited_by,
                        "leaf switches' uplinks take longer than any NIC",
                        "less oversubscription, or groups that stay under their leaf switches"});
  const auto changed = named("what-if");
  if (changed != variants.end() && given.step().time_us.mean > 0 &&
      changed->step().time_us.mean >= dear * given.step().time_us.mean)
    findings.push_back(
        {"what-if-slower", Severity::info, changed->step().limited_by,
         fmt::format("with the changes a step takes {:.2f} times as long ({:.1f} us, not {:.1f})",
                     changed->step().time_us.mean / given.step().time_us.mean,
                     changed->step().time_us.mean, given.step().time_us.mean),
         "compare the NICs of the variants in the table"});
  return findings;
}

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
  json object{{"node", nic.node},          {"device", port.device},
              {"port", port.number},       {"out_bytes", nic.out},
              {"in_bytes", nic.in},        {"over_even", summary.over_even(nic)},
              {"hot", summary.is_hot(nic)}};
  if (nic.out_margin) {
    object["out_margin95_bytes"] = *nic.out_margin;
    object["in_margin95_bytes"] = *nic.in_margin;
  }
  return object;
}

/// Indices of the `top` largest, largest first; all indices in order if `top` is 0.
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
    bool is_hot = false;
    for (std::size_t i = port; i < summary.nics.size(); i += ports.size()) {
      out += summary.nics[i].out;
      in += summary.nics[i].in;
      most = std::max(most, summary.nics[i].most());
      is_hot = is_hot || summary.is_hot(summary.nics[i]);
    }
    rails.push_back({{"device", ports[port].device},
                     {"port", ports[port].number},
                     {"fabric", ports[port].on_fabric},
                     {"out_bytes", out},
                     {"in_bytes", in},
                     {"most_bytes", most},
                     {"hot", is_hot}});
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
      {"busiest_alike", summary.alike},
      {"even", summary.is_even()},
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

const char* sampling_text(const Result& result, const Traffic& traffic) {
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

namespace {

json takeovers_json(const Summary& given, const Summary& changed, const WhatIf& what_if) {
  json list = json::array();
  for (const Takeover& one :
       takeovers(*given.result->cluster, *changed.result->cluster, what_if.nics)) {
    json by = json::array();
    for (const Substitute& substitute : one.by)
      by.push_back({{"device", substitute.device},
                    {"port", substitute.port},
                    {"pes", substitute.pes},
                    {"shared_with_pes", substitute.shares}});
    list.push_back({{"first_node", one.nodes.front()},
                    {"nodes", one.nodes.size()},
                    {"device", one.device},
                    {"port", one.port},
                    {"pes", one.pes},
                    {"by", std::move(by)}});
  }
  return list;
}

} // namespace

json simulation_json(const std::vector<Summary>& variants, const ReportRequest& request) {
  const Summary& given = variants.front();
  const Result& result = *given.result;
  json changes = json::array();
  for (const NicChange& change : request.what_if.nics)
    changes.push_back(to_string(change));
  for (const ExpertMove& move : request.what_if.moves)
    changes.push_back(fmt::format("--move-expert {}:{}", move.expert, move.rank));
  json list = json::array();
  json taken_over = json::array();
  for (const Summary& variant : variants) {
    list.push_back(variant_json(variant, request.top));
    if (variant.name == "optimal" && result.cluster->same_nics(*variant.result->cluster))
      list.back()["same_nics_as"] = given.name;
    if (variant.name == "what-if")
      taken_over = takeovers_json(given, variant, request.what_if);
  }
  std::size_t groups = 0;
  for (const ClassResult& one : result.classes)
    groups += one.groups.first_nodes.size();
  json simulation{{"steps", result.steps},
                  {"seed", request.effort.seed},
                  {"bytes", result.exact_bytes ? "exact" : "sampled"},
                  {"times", result.exact_times ? "exact"
                            : result.steps > 0 ? "sampled"
                                               : "expected"},
                  {"sampling", sampling_text(result, request.traffic)},
                  {"ranks", result.cluster->ranks()},
                  {"groups", groups},
                  {"group_kinds", result.classes.size()},
                  {"nic_ports", given.nics.size()},
                  {"params", params_json(given, request.traffic)},
                  {"changes", changes},
                  {"taken_over", taken_over},
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
