// A simulation summarised in a few lines, and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/model/sim/simulate.h"

namespace shmemctl::sim {

/// Bytes of one step: dispatch and combine together.
struct NicBytes {
  int node = 0, port = 0; ///< port: index in Cluster::ports
  double out = 0, in = 0;
  std::optional<double> out_margin,
      in_margin; ///< half the 95% interval; empty if the bytes are exact
  double most() const { return out > in ? out : in; }
  const char* direction() const { return out >= in ? "out" : "in"; }
};

/// Duration of an operation in the slowest class of groups (GroupClass).
struct OperationTime {
  std::string operation; ///< "dispatch", "combine", "step", or "transfer"
  Estimate time_us;
  std::vector<double> samples_us; ///< empty: the time for the expected bytes
  std::string limited_by;         ///< limit_name() of the resource that is busy longest
  Bottleneck bottleneck;
  std::optional<Resource> most_often; ///< the resource that limited most steps
  double most_often_share = 0;
  double crossing_bytes = 0; ///< bytes that a rank sends to other nodes, on average
  double link_bytes = 0;     ///< bytes that a rank sends to other ranks of its node, on average
};

struct Summary {
  std::string name; ///< "given", "optimal", "what-if"
  const Result* result = nullptr;
  std::vector<NicBytes> nics; ///< all ports of the cluster, by node, then port
  std::size_t busiest = 0;    ///< index in `nics`
  std::size_t alike = 0;      ///< how many NICs carry as much as the busiest, itself included
  double even_bytes = 0;      ///< what each port of the fabric would send if all sent equally
  std::vector<OperationTime> operations; ///< the last one is the whole step
  /// Estimate for the slowest of all groups, if there are several.
  std::optional<Estimate> slowest_group_us;

  const OperationTime& step() const { return operations.back(); }
  double over_even() const { return over_even(nics[busiest]); }
  double over_even(const NicBytes& nic) const {
    return even_bytes > 0 ? nic.most() / even_bytes : 1;
  }
  /// True if no NIC carries more than the even share, apart from differences that are too small to
  /// be shown or due to sampling.
  bool is_even() const;
  /// Whether the NIC is a hot spot: 1.2 times the even share or more.
  bool is_hot(const NicBytes& nic) const;
};

Summary summarize(const std::string& name, const Result& result, const Traffic& traffic);

struct ReportRequest {
  Traffic traffic;
  Effort effort;
  WhatIf what_if;
  std::size_t top = 8; ///< number of NICs and switches to list; 0: all
};
/// Independent variables, as in the rows' `params`.
nlohmann::json params_json(const Summary& summary, const Traffic& traffic);
/// The report's `simulation`. The clusters of the variants' results must still exist.
nlohmann::json simulation_json(const std::vector<Summary>& variants, const ReportRequest& request);
/// nic-hotspot-predicted, uplink-predicted, what-if-slower.
Findings simulation_findings(const std::vector<Summary>& variants);

} // namespace shmemctl::sim
