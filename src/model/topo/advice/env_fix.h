// Environment settings that fix a finding: candidate changes, the export lines, and the search for
// the smallest that helps.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/finding.h"
#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

// A change of the environment that can be printed as lines and applied to a mapping request, so
// that the printed lines are what was simulated.

/// Variables to set, for all local ranks or for each, and variables to unset.
class EnvChange {
public:
  EnvChange& set(const std::string& variable, const std::string& value);
  /// One value for each local rank; the same as set() if all are equal.
  EnvChange& set_per_rank(const std::string& variable, const std::vector<std::string>& values);
  EnvChange& unset(const std::string& variable);
  /// Adds the variables of `other`, which take precedence.
  EnvChange& add(const EnvChange& other);

  bool empty() const { return variables_.empty(); }
  /// Whether both change the same variable in different ways.
  bool contradicts(const EnvChange& other) const;

  /// The request of a job whose ranks have this environment. Variables that do not affect the
  /// mapping change nothing.
  MappingRequest applied_to(MappingRequest request) const;

  /// `unset ...`, `export ...`, and for values per rank the lines of lines_per_rank().
  std::vector<std::string> lines() const;
  /// The lines joined by "; ", with a comment if they must run in each rank.
  std::string text() const;

private:
  /// Empty: unset. One value: for all ranks.
  using Values = std::optional<std::vector<std::string>>;
  const Values* find(const std::string& variable) const;
  EnvChange& put(const std::string& variable, Values values);

  std::vector<std::pair<std::string, Values>> variables_; ///< in the order of first use
};

/// The word, quoted for bash if it is empty or contains anything but letters, digits and _ . , : ^
/// = -. Device names may come from untrusted files.
std::string shell_word(const std::string& text);

/// Per PE "mlx5_0:1", or "mlx5_0:1,mlx5_1:1"; "" for a PE without NICs.
std::vector<std::string> devices_per_rank(const Node& node, const Mapping& mapping);
/// All the ports of the mapping, each once, in node order: "mlx5_0:1,mlx5_1:1".
std::string devices_of_all(const Node& node, const Mapping& mapping);

/// The value of NVSHMEM_HCA_PE_MAPPING that gives every PE its NIC if NVSHMEM_ENABLE_NIC_PE_MAPPING
/// is set: PE i takes row i modulo the number of rows, and rows are in enumeration order. Empty if
/// a PE has no NIC or several, or if the assignment does not ascend with the PEs, or is too long.
std::optional<std::string> hca_pe_mapping_value(const Node& node, const Mapping& mapping);

/// `export VARIABLE=value` if all ranks have one value; else a bash array and an export that picks
/// by the launcher's local rank, and fails if no variable of a launcher gives that rank.
std::vector<std::string> lines_per_rank(const std::string& variable,
                                        const std::vector<std::string>& values);

/// The longest common prefix of the mapping's device names, without trailing digits: the value for
/// NVSHMEM_HCA_PREFIX; "" if there is none.
std::string common_prefix(const Node& node, const Mapping& mapping);

/// Changes that decide which transport NVSHMEM uses and which devices it accepts: REMOTE_TRANSPORT
/// if its value names no known transport, HCA_PREFIX, and unset IBGDA or REMOTE_TRANSPORT if
/// nothing else helps. The first change is empty if the value of REMOTE_TRANSPORT is valid.
std::vector<EnvChange> transport_changes(const Node& node, const MappingRequest& request,
                                         const Mapping& optimal);

/// Complete sets of settings, the smallest change first. Each of transport_changes() is combined
/// with: no lists, a list that excludes storage and management NICs, pinned PEs, NETDEVS_POLICY
/// over all GPUs of the node, a list per local rank. For NCCL one list per local rank. None is
/// confirmed: simulate one before printing it.
std::vector<EnvChange> mapping_plans(const Node& node, const MappingRequest& request,
                                     const Mapping& optimal);

/// NICs that are not for GPUs' traffic: for storage, or of another network.
std::vector<int> other_nics(const Node& node);

/// NVSHMEM_HCA_LIST=^... that excludes these NICs in addition to those that the user excludes.
/// Empty if the user's list names devices to use, or a PE mapping is set.
std::optional<EnvChange> leaving_out(const Node& node, const MappingRequest& request,
                                     const std::vector<int>& nics);

// A finding about a mapping with the changes of the environment that might fix it, none of which
// has been tried yet.

struct Diagnosis {
  /// Its `fix` is for the case that no change of the environment helps: nothing in it was tried on
  /// the model.
  Finding finding;
  /// Changes specific to this finding, the smallest first.
  std::vector<EnvChange> remedies;
  /// Settings that give the best mapping may fix it, too: mapping_plans().
  bool by_mapping = false;

  bool fixable() const { return by_mapping || !remedies.empty(); }
};
using Diagnoses = std::vector<Diagnosis>;

/// All checks of one mapping: lists, loads, NICs without a GPU nearby.
/// @param optimal of the same node and request
Diagnoses diagnose_mapping(const Node& node, const Mapping& mapping, const Mapping& optimal);

// Fixes that were tried: each is applied to the model, together with all others, before it is
// printed.

/// The findings with their fixes. A change of the environment is a fix only if, with all changes
/// applied, the simulation no longer has the finding, or has it as information only, and has no new
/// finding of severity warning or error. Errors and warnings share one set of lines; a finding that
/// no change fixes keeps the fix of its diagnosis.
/// @param diagnoses of this mapping, in the order of the findings
Findings with_tried_fixes(const Node& node, const Mapping& mapping, const Mapping& optimal,
                          const Diagnoses& diagnoses);

} // namespace shmemctl
