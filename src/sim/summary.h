// What a simulation says in a few lines, and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/sim/simulate.h"

namespace shmemctl::sim {

/// Of one step: dispatch and combine together.
struct NicBytes {
  int node = 0, port = 0; ///< port: index in Cluster::ports
  double out = 0, in = 0;
  std::optional<double> out_margin, in_margin; ///< of 95%; nothing where the bytes are exact
  double most() const { return out > in ? out : in; }
  const char* direction() const { return out >= in ? "out" : "in"; }
};

/// How long an operation takes, on the group that takes longest of those that are told apart.
struct OperationTime {
  std::string operation; ///< "dispatch", "combine", "step", or "transfer"
  Estimate time_us;
  std::vector<double> samples_us; ///< empty: the time that the expected bytes take
  std::string limited_by;         ///< the resource that the bytes keep busy longest, by name
  Bottleneck bottleneck;
  std::optional<Resource> most_often; ///< of the steps
  double most_often_share = 0;
  double crossing_bytes = 0; ///< of a rank, to other nodes, on average
  double link_bytes = 0;     ///< of a rank, to others of its node, on average
};

struct Summary {
  std::string name; ///< "given", "optimal", "what-if"
  const Result* result = nullptr;
  std::vector<NicBytes> nics; ///< all of the cluster, by node, then port
  std::size_t busiest = 0;    ///< index in `nics`
  double even_bytes = 0;      ///< that each port of the fabric would send if all sent alike
  std::vector<OperationTime> operations;    ///< the last one: the step as a whole
  std::optional<Estimate> slowest_group_us; ///< of all groups, where there are several

  const OperationTime& step() const { return operations.back(); }
  double over_even() const;
};

Summary summarize(const std::string& name, const Result& result, const Traffic& traffic);

struct ReportRequest {
  Traffic traffic;
  Effort effort;
  WhatIf what_if;
  std::size_t top = 8; ///< NICs and switches that are listed; 0: all
};
/// Independent variables, as in the rows' `params`.
nlohmann::json params_json(const Summary& summary, const Traffic& traffic);
/// The report's `simulation`.
nlohmann::json simulation_json(const std::vector<Summary>& variants, const ReportRequest& request);
/// nic-hotspot-predicted, uplink-predicted, what-if-slower.
Findings simulation_findings(const std::vector<Summary>& variants);

} // namespace shmemctl::sim
