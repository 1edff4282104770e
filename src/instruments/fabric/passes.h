// Repeated measurements of the same pairs become one figure each.
#pragma once

#include <vector>

#include "src/instruments/fabric/diagnosis.h"

namespace shmemctl::fabric {

/// By ordered pair, the median over the passes that measured it, and with three or more of them the
/// standard error of that median's logarithm, by their MAD; with one or two the larger noise that a
/// pass had, if any. Of `resent`, the mean. Ordered by source, then target.
std::vector<PairFigure> medians_of(const std::vector<std::vector<PairFigure>>& passes);

} // namespace shmemctl::fabric
