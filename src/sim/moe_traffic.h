// What a dispatch and a combine move between the ranks of a group: the same rules as `moe`'s.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/moe/routing.h"
#include "src/moe/shape.h"
#include "src/sim/loads.h"

namespace shmemctl::sim {

/// Which row goes from where to where.
enum class MoeMode {
  hybrid,          ///< ht over nodes: one row per token and node, handed on there
  high_throughput, ///< one row per token and rank, straight
  low_latency      ///< the same there; back a row per choice, or per rank (partial)
};
const char* to_string(MoeMode mode); ///< "hybrid", "ht", "ll"

struct MoeTraffic {
  moe::Shape shape; ///< n_ranks: of a group
  moe::RoutingRequest routing;
  std::optional<moe::Routing> replay; ///< instead of what `routing` makes
  MoeMode mode = MoeMode::hybrid;
  moe::Format format = moe::Format::bf16;
  bool partial = false;    ///< low latency: a row per rank comes back, not one per choice
  bool per_choice = false; ///< low latency: a row per choice goes there too, as DeepEP's do
  int node_ranks = 1;
  std::vector<std::int32_t> rank_of_expert;

  int nodes() const { return shape.n_ranks / node_ranks; }
  /// Its choices in a call.
  moe::RankRouting choices_of(int rank, std::uint64_t step) const;
  int tokens_of(int rank) const;
};

/// Rows of one source in one call. Numbers of rows, or what is expected of them.
struct SourceCounts {
  explicit SourceCounts(const MoeTraffic& traffic);
  void clear();

  std::vector<double> to_node; ///< tokens that have a choice on that node, its own among them
  std::vector<double> to_rank; ///< the same by rank
  std::vector<double> choices; ///< choices of experts of that rank
};

/// Loads of a dispatch and of a combine.
struct MoeLoads {
  explicit MoeLoads(const Group& group) : dispatch(group), combine(group) {}
  void clear();
  void add(const MoeLoads& other, double times = 1);
  Loads dispatch, combine;
};

/// Adds what `routing` says of a source.
void count(const MoeTraffic& traffic, const moe::RankRouting& routing, SourceCounts& counts);
/// Adds the bytes of the source's rows, there and back.
void add_rows(const MoeTraffic& traffic, int source, const SourceCounts& counts, MoeLoads& loads);
/// Only those between nodes, of MoeMode::hybrid.
void add_crossing_rows(const MoeTraffic& traffic, int source, const std::vector<double>& to_node,
                       MoeLoads& loads);

} // namespace shmemctl::sim
