// Which of the two builds of a measuring kernel is launched.
#include "kernels/bench/launchers.h"

namespace shmemctl::bench {

#define SHMEMCTL_CHOOSE(name, Arguments)                                                           \
  std::string name(const KernelLaunch& how, const Arguments& arguments) {                          \
    return all_mapped(how.job) ? mapped::name(how, arguments)                                      \
                               : with_network::name(how, arguments);                               \
  }
SHMEMCTL_BENCH_LAUNCHERS(SHMEMCTL_CHOOSE)
#undef SHMEMCTL_CHOOSE

// Of the build that needs more; asked before there is a job.
int max_atomic_blocks(int device, int threads) {
  return with_network::max_atomic_blocks(device, threads);
}
int max_collective_blocks(CollectiveKernel kernel, CollectiveNumber number, int device,
                          int threads) {
  return with_network::max_collective_blocks(kernel, number, device, threads);
}
int max_transfer_blocks(TransferKernel kernel, KernelScope scope, int device, int threads) {
  return with_network::max_transfer_blocks(kernel, scope, device, threads);
}

} // namespace shmemctl::bench
