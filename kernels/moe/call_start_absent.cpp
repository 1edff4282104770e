// The launchers of call_start.h in a build without CUDA.
#include "kernels/moe/call_start.h"

namespace shmemctl::moe {

namespace {
constexpr const char* without_cuda = "this binary was built without CUDA";
}

std::string launch_flush(void*, std::size_t, void*) {
  return without_cuda;
}
std::string launch_delay(std::uint64_t, void*) {
  return without_cuda;
}

} // namespace shmemctl::moe
