// The part of collectives.h whose kernels are in a file of their own.
#pragma once

#include "kernels/bench/collectives.h"

namespace shmemctl::bench {

std::string launch_reduction(const KernelLaunch& how, const CollectiveArguments& arguments);
int most_reduction_blocks(CollectiveKernel kernel, bool floats, int device, int threads);

} // namespace shmemctl::bench
