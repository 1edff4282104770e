// Bytes by NIC and switch for traffic patterns and MoE.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/model/moe/routing.h"
#include "src/model/moe/shape.h"
#include "src/model/sim/cluster.h"

namespace shmemctl::sim {

/// Consecutive nodes of the cluster whose ranks exchange data only among themselves.
struct Group {
  const Cluster* cluster = nullptr;
  int first_node = 0;
  int nodes = 1;

  int ranks() const { return nodes * cluster->node_pes; }
};

enum class Resource { nic_out, nic_in, uplink, downlink, gpu_out, gpu_in };
const char* to_string(Resource resource); ///< "nic-out", ...

/// The resource that takes longest to carry its bytes.
struct Bottleneck {
  Resource resource = Resource::nic_out;
  int index = 0; ///< index in Loads' vectors
  double size_bytes = 0;
  double rate_GBps = 0;
  double time_us = 0;
};

/// The loads of one operation. Ranks and nodes are numbered within the group.
class Loads {
public:
  explicit Loads(const Group& group);

  /// `from` and `to` are ranks of the group. Between nodes, both NICs and, if their leaf switches
  /// differ, an uplink of each carry the bytes; within a node, the links of both GPUs do. A rank
  /// with several NICs spreads its bytes evenly over them; its i-th NIC sends to the peer's i-th
  /// or, if their numbers of NICs differ, to all of the peer's.
  void add(int from, int to, double size_bytes);
  void add(const Loads& other, double times = 1);
  void clear();

  std::size_t nic(int node, int port) const {
    return static_cast<std::size_t>(node) * ports_ + static_cast<std::size_t>(port);
  }
  /// A leaf switch's index in the whole cluster.
  int leaf_number(std::size_t leaf) const;
  std::string leaf_name(std::size_t leaf) const;
  std::string name_of(Resource resource, std::size_t index) const;

  /// The resource that is busy longest. A group has a share of a leaf's uplinks in proportion to
  /// its nodes on that leaf. GPU links of unknown rate take no time. Empty if nothing moves.
  std::optional<Bottleneck> slowest() const;
  /// All resources that are busy for at least this long.
  std::vector<Bottleneck> as_slow_as(double time_us) const;

  const Group& group() const { return group_; }
  std::vector<double> out, in;           ///< bytes by nic()
  std::vector<double> up, down;          ///< by leaf switch of the group
  std::vector<double> link_out, link_in; ///< by rank

private:
  /// One of a rank's NICs: its index and that of its leaf switch in the vectors above.
  struct RankNic {
    std::uint32_t nic = 0, leaf = 0;
  };
  /// The NICs of a rank; looked up for each pair of ranks in each step.
  struct NicRange {
    std::uint32_t node = 0;
    std::uint32_t first = 0, count = 0; ///< range of `rank_nics`
  };
  struct Wiring {
    std::vector<NicRange> ranges; ///< by rank
    std::vector<RankNic> rank_nics;
  };

  /// Calls `visit` for every resource that carries bytes at a known rate.
  template <class Visit>
  void visit_busy(Visit&& visit) const;
  std::shared_ptr<const Wiring> wire() const;
  std::size_t leaf_of(int node, int port) const;
  void cross(const RankNic& from, const RankNic& to, double size_bytes);

  Group group_;
  std::size_t ports_ = 0;
  int pes_ = 1, first_block_ = 0;
  std::vector<double> uplinks_;          ///< the group's share of each leaf's uplinks, GB/s
  std::shared_ptr<const Wiring> wiring_; ///< shared by all copies of this object
};

enum class Pattern {
  moe,        ///< MoE dispatch and combine
  all_to_all, ///< every rank sends to every other one
  put_ring,   ///< every rank to the rank with the same local index on the next node
  put_pairs,  ///< each rank of one half of the nodes exchanges data with one of the other half
  put_incast  ///< every rank to rank 0
};
const char* to_string(Pattern pattern);
std::vector<std::string> pattern_names();
/// Throws Error (usage) with the nearest name.
Pattern parse_pattern(const std::string& name);

/// Adds `size_bytes` for each transfer of the pattern from one rank to another. Throws Error
/// (usage) for put_pairs with an odd number of nodes.
void add_pattern(Pattern pattern, double size_bytes, Loads& loads);

/// How rows travel.
enum class MoeMode {
  hybrid, ///< high throughput: one row per token and node, which a rank of that node forwards
  high_throughput, ///< one row per token and rank, sent directly
  low_latency      ///< sent directly, a row per rank or per choice: MoeTraffic::per_choice, partial
};
const char* to_string(MoeMode mode); ///< "hybrid", "ht", "ll"

struct MoeTraffic {
  moe::Shape shape; ///< n_ranks: of a group
  moe::RoutingRequest routing;
  std::optional<moe::Routing> replay; ///< replaces the routing that `routing` generates
  MoeMode mode = MoeMode::hybrid;
  moe::Format format = moe::Format::bf16;
  bool partial = false;    ///< low latency: one row per rank comes back instead of one per choice
  bool per_choice = false; ///< low latency: dispatch sends one row per choice, as DeepEP does
  int node_ranks = 1;
  std::vector<std::int32_t> rank_of_expert;

  int nodes() const { return shape.n_ranks / node_ranks; }
  /// The rank's expert choices in call `step`.
  moe::RankRouting choices_of(int rank, std::uint64_t step) const;
  int tokens_of(int rank) const;
};

/// Row counts of one source in one call, or their expected values.
struct SourceCounts {
  explicit SourceCounts(const MoeTraffic& traffic);
  void clear();

  std::vector<double>
      to_node; ///< tokens with a choice on that node, the source's own node included
  std::vector<double> to_rank; ///< tokens with a choice on that rank, by rank
  std::vector<double> choices; ///< number of choices of that rank's experts
};

/// Loads of a dispatch and of a combine.
struct MoeLoads {
  explicit MoeLoads(const Group& group) : dispatch(group), combine(group) {}
  void clear();
  void add(const MoeLoads& other, double times = 1);
  Loads dispatch, combine;
};

/// Adds the row counts of one source's routing to `counts`.
void count(const MoeTraffic& traffic, const moe::RankRouting& routing, SourceCounts& counts);
/// Adds the bytes of the source's rows, for dispatch and combine.
void add_rows(const MoeTraffic& traffic, int source, const SourceCounts& counts, MoeLoads& loads);
/// As add_rows(), but adds only bytes between nodes, for MoeMode::hybrid.
void add_crossing_rows(const MoeTraffic& traffic, int source, const std::vector<double>& to_node,
                       MoeLoads& loads);

} // namespace shmemctl::sim
