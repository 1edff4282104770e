#include "kernels/pair_check.h"

#include "kernels/cuda_error.h"
#include "kernels/device/pair_check.cuh"

namespace shmemctl::kernel_check {

namespace {

constexpr int threads = 256;

__global__ void __launch_bounds__(threads)
    check_pairs(Step step, const __grid_constant__ DeviceJob job, std::byte* area,
                const __grid_constant__ Layout layout, std::uint64_t timeout_ns) {
  device::PairCheck(job, area, layout, timeout_ns, static_cast<int>(blockIdx.x)).run(step);
}

} // namespace

std::string launch(Step step, const DeviceJob& job, std::byte* area, const Layout& layout,
                   std::uint64_t timeout_ns, void* stream) {
  check_pairs<<<layout.n_pes, threads, 0, static_cast<cudaStream_t>(stream)>>>(step, job, area,
                                                                               layout, timeout_ns);
  return cuda_error_text(cudaGetLastError());
}

} // namespace shmemctl::kernel_check
