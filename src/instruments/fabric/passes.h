// Combines repeated measurements of a pair into one figure.
#pragma once

#include <vector>

#include "src/instruments/fabric/diagnosis.h"

namespace shmemctl::fabric {

/// Returns for each ordered pair the median over the passes that measured it. The noise is the
/// standard error of the logarithm of that median, estimated by the MAD of three or more passes;
/// with one or two passes it is the largest noise that a pass had, if any. `resent` is the mean.
/// Ordered by source, then by target.
std::vector<PairFigure> medians_of(const std::vector<std::vector<PairFigure>>& passes);

} // namespace shmemctl::fabric
