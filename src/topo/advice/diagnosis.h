// A finding about a mapping with the changes of the environment that could heal it, none of which
// has been tried yet.
#pragma once

#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/topo/advice/env_change.h"

namespace shmemctl {

struct Diagnosis {
  /// Its `fix` is what to do where no change of the environment heals it: no line of variables,
  /// since none was confirmed.
  Finding finding;
  /// Changes of this finding's own, the least first.
  std::vector<EnvChange> remedies;
  /// Settings that give the best mapping may heal it too: mapping_plans().
  bool by_mapping = false;

  bool fixable() const { return by_mapping || !remedies.empty(); }
};
using Diagnoses = std::vector<Diagnosis>;

/// Everything about one mapping: lists, loads, NICs that no GPU is near.
/// @param optimal of the same node and request
Diagnoses diagnose_mapping(const Node& node, const Mapping& mapping, const Mapping& optimal);

} // namespace shmemctl
