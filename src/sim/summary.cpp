#include "src/sim/summary.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace shmemctl::sim {

namespace {

constexpr double normal_95 = 1.959964;
constexpr double hot = 1.2;   ///< times the even share, from which on a NIC is a hot spot
constexpr double dear = 1.05; ///< times the best mapping's step

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
    time.limited_by = bytes.name_of(slowest->resource, static_cast<std::size_t>(slowest->index));
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

/// Dispatch and combine, one after the other. What limits the longer of them limits it.
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

double Summary::over_even() const {
  return even_bytes > 0 ? nics[busiest].most() / even_bytes : 1;
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
  for (const NicBytes& nic : summary.nics)
    total += nic.out;
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

Findings simulation_findings(const std::vector<Summary>& variants) {
  Findings findings;
  const Summary& given = variants.front();
  const Cluster& cluster = *given.result->cluster;
  const auto named = [&](const char* name) {
    return std::find_if(variants.begin(), variants.end(),
                        [name](const Summary& one) { return one.name == name; });
  };
  const NicBytes& busiest = given.nics[given.busiest];
  const std::string nic = fmt::format(
      "node {} {}", busiest.node, to_string(cluster.ports[static_cast<std::size_t>(busiest.port)]));
  const auto optimal = named("optimal");
  const double price = optimal == variants.end() || !(optimal->step().time_us.mean > 0)
                           ? 1
                           : given.step().time_us.mean / optimal->step().time_us.mean;
  if (given.over_even() >= hot)
    findings.push_back(
        {"nic-hotspot-predicted", Severity::warning, nic,
         fmt::format("{} carries {:.2f} MB {} a step, {:.2f} times the even share; a step takes "
                     "{:.2f} times as long as with the best mapping",
                     nic, busiest.most() / 1e6, busiest.direction(), given.over_even(), price),
         price >= dear ? "shmemctl topo on a node prints the lines for the best mapping"
                       : "the mapping is not at fault: spread the popular experts over nodes"});
  else if (price >= dear)
    findings.push_back(
        {"nic-hotspot-predicted", Severity::warning, nic,
         fmt::format("a step takes {:.2f} times as long as with the best mapping", price),
         "shmemctl topo on a node prints the lines for the best mapping"});
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

} // namespace shmemctl::sim
