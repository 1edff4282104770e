// The options of `shmemctl moe`, and the points that they ask for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/moe/backend.h"
#include "src/model/moe/routing_file.h"

namespace shmemctl::moe {

/// The options as given on the command line; lists of numbers are separated by commas.
struct Request {
  std::string tokens = "128", hidden = "7168", top_k = "8", experts = "256";
  std::string routing = "uniform"; ///< a kind, or a file name, which contains a / or .
  std::int32_t groups = 8, top_groups = 4;
  std::int32_t masked_percent = 0;
  bool uneven = false, fewer_by_rank = false;
  std::string mode = "ht", dtype = "bf16", scales = "float", combine = "weighted";
  std::string layout = "source"; ///< ll: order of received rows: "source" or "expert"
  double rank_timeout_us = 0;    ///< ll: time until a rank is masked; 0: never
  bool combined_weights = false; ///< ht: combine also returns top-k weights
  bool bias = false;
  bool flat = false; ///< ht: rows go directly to ranks of other nodes
  std::int32_t expert_alignment = 1;
  std::string num_sms = "0"; ///< 0: the kernels' own choice
  std::uint32_t seed = 1;

  bool from_file() const { return routing.find_first_of("/.") != std::string::npos; }
};

struct PointRequest {
  Setup setup; ///< everything except its routing
  RoutingRequest routing;
  std::string routing_name;
};

/// Returns every point of the sweep. All are checked, so that a bad one ends the run before
/// anything is measured. Throws Error (usage).
/// @param recorded content of the file if `from_file()`; it defines ranks, experts, top-k, tokens
/// @param node_ranks ranks per node, if all nodes have the same number
/// @param ranks_known false before there is a job. Then what depends on the number of ranks is not
/// checked, since a value that is wrong for one rank may be right for the job
std::vector<PointRequest> points_of(const Request& request,
                                    const std::optional<RecordedRouting>& recorded, int n_ranks,
                                    int node_ranks, bool ranks_known = true);
/// The point's routing: generated, or that of the file.
Routing routing_of(const PointRequest& point, const std::optional<RecordedRouting>& recorded);

} // namespace shmemctl::moe
