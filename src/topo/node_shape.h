// Whether a model that somebody else wrote may be walked without looking at each index.
#pragma once

#include <string>

#include "src/topo/node.h"

namespace shmemctl {

/// What is wrong with the node's indices, counts or sizes, in words; "" if nothing is: parents come
/// first and are bridges, every index exists, counts lie in the range of the thing they count, the
/// recorded matrix has a row and a column per device, nothing exceeds topo_limits.
std::string shape_problem(const Node& node);

} // namespace shmemctl
