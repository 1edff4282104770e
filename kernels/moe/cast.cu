#include "kernels/moe/cast.h"

#include "kernels/moe/launch.cuh"
#include "kernels/moe/vector_cast.cuh"

namespace shmemctl::moe {

namespace {

constexpr int cast_threads = 512;

__global__ void __launch_bounds__(cast_threads) cast(const __grid_constant__ CastArguments all) {
  const std::int64_t groups = all.tokens * (all.hidden / channels_per_scale);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * (cast_threads / lanes_per_scale);
  const int lane = static_cast<int>(threadIdx.x) % lanes_per_scale;
  const std::uint32_t lanes = 0xffffu << (threadIdx.x % 32 / lanes_per_scale * lanes_per_scale);
  for (std::int64_t group =
           (static_cast<std::int64_t>(blockIdx.x) * cast_threads + threadIdx.x) / lanes_per_scale;
       group < groups; group += step) {
    EightFloats numbers;
    numbers.take(
        __ldg(reinterpret_cast<const uint4*>(all.values) + group * lanes_per_scale + lane));
    const Fp8Scale scale = scale_of(largest_of_group(numbers.largest(), lanes), all.power_scales);
    reinterpret_cast<uint2*>(all.casts)[group * lanes_per_scale + lane] =
        numbers.as_e4m3(scale.factor);
    if (lane == 0)
      all.scales[group] = scale.scale;
  }
}

} // namespace

std::string launch_cast(const CastArguments& arguments, void* stream) {
  cast<<<static_cast<unsigned>(arguments.sms), cast_threads, 0,
         static_cast<cudaStream_t>(stream)>>>(arguments);
  return error_text(cudaGetLastError());
}

} // namespace shmemctl::moe
