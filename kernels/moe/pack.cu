#include "kernels/moe/launch.cuh"
#include "kernels/moe/pack.cuh"

namespace shmemctl::moe {

std::string launch_pack(const DeviceJob& job, const PackArguments& arguments, void* stream) {
  const std::int32_t experts = arguments.shape.local_experts();
  if (experts > max_packed_experts)
    return "rows are packed for at most " + std::to_string(max_packed_experts) +
           " experts per rank";
  if (std::string refused = refuse_numbers(arguments.shape, max_ranks); !refused.empty())
    return refused;
  const auto kernel = arguments.shape.n_ranks <= max_ranks_of_kernels ? pack<max_ranks_of_kernels>
                                                                      : pack<max_ranks>;
  int device = 0, sms_of_gpu = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&sms_of_gpu, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess)
    return error_text(error);
  return launch_blocks(kernel, job, arguments, pack_blocks(arguments.sms, sms_of_gpu), pack_threads,
                       pack_shared_bytes(experts), stream);
}

} // namespace shmemctl::moe
