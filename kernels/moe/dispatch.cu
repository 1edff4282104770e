#include "kernels/moe/high_throughput_dispatch.cuh"
#include "kernels/moe/launch.cuh"

namespace shmemctl::moe {

std::string launch_dispatch(const DeviceJob& job, const DispatchArguments& arguments,
                            void* stream) {
  const Tuning& tuning = arguments.tuning;
  const std::size_t shared = dispatch_shared_bytes(arguments);
  switch (tuning.kept) {
  case 1:
    return launch(dispatch<1>, job, arguments, tuning, shared, stream);
  case 2:
    return launch(dispatch<2>, job, arguments, tuning, shared, stream);
  default:
    return launch(dispatch<0>, job, arguments, tuning, shared, stream);
  }
}

} // namespace shmemctl::moe
