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

/// Identifies a machine by its boot, not by its host name: containers may share a name, and pods of
/// one machine may not.
struct HostIdentity {
  std::string host_name;
  std::uint64_t machine_id = 0; ///< hash of machine id and boot id
  std::uint64_t node_id = 0; ///< machine_id, or of the virtual node (NODE_ID option, run --nodes)
  std::uint64_t network_namespace = 0, pid_namespace = 0; ///< inode numbers; 0 if unknown
  std::string what_is_missing; ///< e.g. "/etc/machine-id"; "" if both were read
};
/// Reads all of it. NODE_ID makes PEs with the same text one node, on whatever machine; without it
/// SHMEMCTL_LOCAL_NODE (from `shmemctl run --nodes`) splits this machine. Without a machine id
/// (many containers have none) the machine is known by its boot id and host name, and
/// `what_is_missing` says so. Throws Error (usage) for a SHMEMCTL_LOCAL_NODE that is no number.
HostIdentity read_identity(const Sysroot& sysroot, const Options& options,
                           const Environment& environment);
/// The same without virtual nodes: node_id is machine_id. Never throws for what is missing.
HostIdentity read_machine_identity(const Sysroot& sysroot);

enum class Distribution { block, round_robin, irregular };
const char* to_string(Distribution distribution);

struct PeHost {
  std::string host_name;
  std::uint64_t machine_id = 0, node_id = 0;
  std::uint64_t network_namespace = 0, pid_namespace = 0;
  std::int64_t pid = 0;
};

/// Where every PE of the job is. A pure function of what was gathered.
struct Placement {
  int pe = 0, n_pes = 1;
  std::vector<PeHost> hosts; ///< by PE
  std::vector<int> node;     ///< by PE: index of its node, nodes in order of first appearance
  std::vector<int> local_pe; ///< by PE: its rank within its node, by PE
  std::vector<std::vector<int>> node_pes; ///< by node: its PEs, ascending
  Distribution distribution = Distribution::block;
  bool equal_pes_per_node = true;
  int n_nodes() const { return static_cast<int>(node_pes.size()); }
  int my_node() const { return node[static_cast<std::size_t>(pe)]; }
  int my_local_pe() const { return local_pe[static_cast<std::size_t>(pe)]; }
};
/// Block: the PEs of each node follow each other (one node, and one PE on each node, are block
/// too). Round robin: PE i is on node i mod n_nodes. Unequal numbers are legal in both. Throws
/// Error (unavailable) if `pe` is not one of `hosts`.
Placement place(int pe, std::vector<PeHost> hosts);
/// True if these PEs can connect through abstract Unix sockets: one machine, one network namespace.
bool one_network(const Placement& placement, const std::vector<int>& pes);
bool one_network(const Placement& placement);

/// Which PEs form a world of their own (NVSHMEM under DeepEP).
enum class WorldMode { whole, per_local_rank, low_latency };
/// "whole", "per-local-rank" (DeepEP high throughput: one world per local rank), "low-latency".
/// Throws Error (usage) for anything else.
WorldMode parse_world_mode(const std::string& text);

// Whether all PEs run the same program, as symmetric global variables require.

/// The first PE whose program is not the job's, and what the job's is. The job's program is the one
/// that most PEs run; of several, the one with the lowest PE.
struct OtherProgram {
  int pe = -1;
  int reference_pe = -1; ///< the first PE that runs the job's program
};
/// @param programs by PE: the program's fingerprint (StaticDataRegion::fingerprint())
std::optional<OtherProgram> find_other_program(const std::vector<std::string>& programs);

// A separate job for some of the PEs of a job.

/// Collective over `parent`: the PEs with the same local rank get a bootstrap of their own, in
/// which PE i is the one on node i (DeepEP's high-throughput mode: world = rank / local size). They
/// connect by a unique id that the first of them creates and the parent's allgather distributes.
std::unique_ptr<Bootstrap> join_rail(Bootstrap& parent, const Placement& placement,
                                     const Options& options, const Deadline& deadline);

} // namespace shmemctl
