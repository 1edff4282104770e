// Fixes that were tried: each is applied to the model, together with all others that are printed,
// before it is printed.
#pragma once

#include "src/topo/advice/diagnosis.h"

namespace shmemctl {

/// The findings with their fixes. A change of the environment is a fix only if, with all of them
/// applied, the simulation no longer has the finding, and none of severity warning or error that it
/// did not have before. Errors and warnings share one set of lines; a finding that no change heals
/// keeps what its diagnosis says to do.
/// @param diagnoses of this mapping, in the order of the findings
Findings with_tried_fixes(const Node& node, const Mapping& mapping, const Mapping& optimal,
                          const Diagnoses& diagnoses);

} // namespace shmemctl
