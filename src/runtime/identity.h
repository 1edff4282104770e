// Identity and placement: which machine each PE runs on, and its rank within the node.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/runtime/bootstrap/bootstrap.h"

namespace shmemctl {

/// Identifies a machine by its machine id and boot id, not by its host name: containers of
/// different machines may have the same name, and pods of one machine different names.
struct HostIdentity {
  std::string host_name;
  std::uint64_t machine_id = 0; ///< hash of machine id and boot id
  std::uint64_t node_id = 0; ///< machine_id, or a hash of the virtual node (NODE_ID, run --nodes)
  std::uint64_t network_namespace = 0, pid_namespace = 0; ///< inode numbers; 0 if unknown
  std::string what_is_missing; ///< e.g. "/etc/machine-id"; "" if both were read
};
/// Reads the whole identity. PEs with the same text in NODE_ID form one node, on whatever machines
/// they are; without NODE_ID, SHMEMCTL_LOCAL_NODE (from `shmemctl run --nodes`) splits this
/// machine. If machine id (many containers have none) or boot id is missing, the machine is
/// identified by the other one and its host name, and `what_is_missing` says so. Throws Error
/// (usage) for a SHMEMCTL_LOCAL_NODE that is not a number.
HostIdentity read_identity(const Sysroot& sysroot, const Options& options,
                           const Environment& environment);
/// The same without virtual nodes: node_id is machine_id. Does not throw if something is missing.
HostIdentity read_machine_identity(const Sysroot& sysroot);

enum class Distribution { block, round_robin, irregular };
const char* to_string(Distribution distribution);

struct PeHost {
  std::string host_name;
  std::uint64_t machine_id = 0, node_id = 0;
  std::uint64_t network_namespace = 0, pid_namespace = 0;
  std::int64_t pid = 0;
};

/// The host and node of every PE of the job; computed by place().
struct Placement {
  int pe = 0, n_pes = 1;
  std::vector<PeHost> hosts; ///< by PE
  std::vector<int> node;     ///< by PE: index of its node, nodes in order of first appearance
  std::vector<int> local_pe; ///< by PE: its rank among the PEs of its node, ascending
  std::vector<std::vector<int>> node_pes; ///< by node: its PEs, ascending
  Distribution distribution = Distribution::block;
  bool equal_pes_per_node = true;
  int n_nodes() const { return static_cast<int>(node_pes.size()); }
  int my_node() const { return node[static_cast<std::size_t>(pe)]; }
  int my_local_pe() const { return local_pe[static_cast<std::size_t>(pe)]; }
};
/// Computes the placement. Block: the PEs of each node are consecutive (also for one node, or one
/// PE on each node). Round robin: PE i is on node i mod n_nodes. Both allow unequal numbers of PEs
/// per node. Throws Error (unavailable) if `pe` is not an index of `hosts`.
Placement place(int pe, std::vector<PeHost> hosts);
/// True if these PEs can connect through abstract Unix sockets: they are on one machine, in one
/// network namespace.
bool one_network(const Placement& placement, const std::vector<int>& pes);
bool one_network(const Placement& placement);

/// Which PEs form a separate world (NVSHMEM under DeepEP).
enum class WorldMode { whole, per_local_rank, low_latency };
/// "whole", "per-local-rank" (DeepEP high throughput: one world per local rank), "low-latency".
/// Throws Error (usage) for anything else.
WorldMode parse_world_mode(const std::string& text);

// Whether all PEs run the same program, as symmetric global variables require.

/// The first PE that does not run the job's program. The job's program is the one that most PEs
/// run; among equals, the one that the lowest PE runs.
struct OtherProgram {
  int pe = -1;
  int reference_pe = -1; ///< the first PE that runs the job's program
};
/// @param programs by PE: the program's fingerprint (StaticDataRegion::fingerprint())
std::optional<OtherProgram> find_other_program(const std::vector<std::string>& programs);

// A separate world for some of the PEs of a job.

/// Collective over `parent`: the PEs with the same local rank get a separate bootstrap, in which
/// rank i is the PE on the i-th node that has such a PE (as in DeepEP's high-throughput mode). They
/// connect by a unique id that the first of them creates and the parent's allgather distributes.
std::unique_ptr<Bootstrap> join_rail(Bootstrap& parent, const Placement& placement,
                                     const Options& options, const Deadline& deadline);

} // namespace shmemctl
