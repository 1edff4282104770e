// Collectives that move data.
#include "kernels/bench/collectives_frame.cuh"
#include "kernels/bench/collectives_reducing.h"

namespace shmemctl::bench {

namespace {

struct Broadcast {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return device::broadcast_grid(job, device::team_world, dest, source, a.size_bytes, 0);
  }
};
struct Fcollect {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return device::fcollect_grid(job, device::team_world, dest, source, a.size_bytes);
  }
};
struct Alltoall {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return device::alltoall_grid(job, device::team_world, dest, source, a.size_bytes);
  }
};
struct Alltoallv {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    const auto* const sizes =
        reinterpret_cast<const std::uint64_t*>(a.memory + a.lists_offset_bytes);
    return device::alltoallv_grid(job, device::team_world, dest, source, sizes, sizes + job.n_pes,
                                  sizes + 2 * job.n_pes);
  }
};

} // namespace

std::string launch_collective(const KernelLaunch& how, const CollectiveArguments& arguments) {
  switch (arguments.kernel) {
  case CollectiveKernel::broadcast:
    return launch_together(collective<Broadcast>, how, arguments);
  case CollectiveKernel::fcollect:
    return launch_together(collective<Fcollect>, how, arguments);
  case CollectiveKernel::alltoall:
    return launch_together(collective<Alltoall>, how, arguments);
  case CollectiveKernel::alltoallv:
    return launch_together(collective<Alltoallv>, how, arguments);
  default:
    return launch_reduction(how, arguments);
  }
}

int most_collective_blocks(CollectiveKernel kernel, bool floats, int device, int threads) {
  switch (kernel) {
  case CollectiveKernel::broadcast:
    return most_blocks_of(collective<Broadcast>, device, threads);
  case CollectiveKernel::fcollect:
    return most_blocks_of(collective<Fcollect>, device, threads);
  case CollectiveKernel::alltoall:
    return most_blocks_of(collective<Alltoall>, device, threads);
  case CollectiveKernel::alltoallv:
    return most_blocks_of(collective<Alltoallv>, device, threads);
  default:
    return most_reduction_blocks(kernel, floats, device, threads);
  }
}

} // namespace shmemctl::bench
