// Bytes on every resource of a group of nodes, and which of them takes longest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/sim/cluster.h"

namespace shmemctl::sim {

/// Nodes whose ranks exchange data only among themselves, next to each other in the cluster.
struct Group {
  const Cluster* cluster = nullptr;
  int first_node = 0;
  int nodes = 1;

  int ranks() const { return nodes * cluster->node_pes; }
};

enum class Resource { nic_out, nic_in, uplink, downlink, gpu_out, gpu_in };
const char* to_string(Resource resource); ///< "nic-out", ...

/// What takes longest to carry its bytes.
struct Bottleneck {
  Resource resource = Resource::nic_out;
  int index = 0; ///< as in Loads' vectors
  double size_bytes = 0;
  double rate_GBps = 0;
  double time_us = 0;
};

/// Of one operation. Ranks and nodes are counted from the group's first.
class Loads {
public:
  explicit Loads(const Group& group);

  /// `from` and `to` are ranks of the group. Between nodes, both NICs and, where their leaf
  /// switches differ, an uplink of each carry it; within a node, the links of both GPUs do.
  /// A rank with several NICs shares its bytes out evenly; the i-th of as many reaches the i-th.
  void add(int from, int to, double size_bytes);
  void add(const Loads& other, double times = 1);
  void clear();

  std::size_t nic(int node, int port) const {
    return static_cast<std::size_t>(node) * ports_ + static_cast<std::size_t>(port);
  }
  /// A leaf switch's number in the whole cluster.
  int leaf_number(std::size_t leaf) const;
  std::string leaf_name(std::size_t leaf) const;
  std::string name_of(Resource resource, std::size_t index) const;

  /// The resource that is busy longest. A group has the share of a leaf's uplinks that its nodes
  /// are of the leaf's. GPU links of unknown rate take no time. Nothing if nothing moves.
  std::optional<Bottleneck> slowest() const;

  const Group& group() const { return group_; }
  std::vector<double> out, in;           ///< bytes by nic()
  std::vector<double> up, down;          ///< by leaf switch of the group
  std::vector<double> link_out, link_in; ///< by rank

private:
  /// One of a rank's NICs, as the vectors above number it and its leaf switch.
  struct Way {
    std::uint32_t nic = 0, leaf = 0;
  };
  /// Where a rank's bytes go: looked up for each pair of ranks in each step.
  struct Place {
    std::uint32_t node = 0;
    std::uint32_t first = 0, count = 0; ///< of `ways`
  };
  struct Wiring {
    std::vector<Place> places; ///< by rank
    std::vector<Way> ways;
  };

  std::shared_ptr<const Wiring> wire() const;
  std::size_t leaf_of(int node, int port) const;
  void cross(const Way& from, const Way& to, double size_bytes);

  Group group_;
  std::size_t ports_ = 0;
  int pes_ = 1, first_block_ = 0;
  std::vector<double> uplinks_;          ///< GB/s that the group has of each leaf
  std::shared_ptr<const Wiring> wiring_; ///< the same for all copies
};

} // namespace shmemctl::sim
