// The check of pairs by kernels of a build without CUDA.
#include "kernels/pair_check.h"

namespace shmemctl::kernel_check {

std::string launch(Step, const DeviceJob&, std::byte*, const Layout&, std::uint64_t, void*) {
  return "this shmemctl was built without CUDA";
}

} // namespace shmemctl::kernel_check
