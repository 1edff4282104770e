// The arithmetic of reductions: one kernel for each element type and operation.
#pragma once

#include <cstddef>

#include "src/runtime/collectives.h"

namespace shmemctl {

/// into[i] = into[i] op from[i]. The arrays do not overlap and are aligned to the element type.
using ReduceKernel = void (*)(void* into, const void* from, std::size_t elements);

/// nullptr if the operation is not defined for the type: minimum and maximum are not defined for
/// complex numbers, and bit operations only for integers. Sums and products of integers wrap
/// around.
ReduceKernel reduce_kernel(ElementType type, ReduceOp op);

} // namespace shmemctl
