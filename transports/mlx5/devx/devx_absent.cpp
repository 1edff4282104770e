// Replaces the other files of this folder if infiniband/mlx5dv.h is missing at build time.
#if !__has_include(<infiniband/mlx5dv.h>)

#include "src/base/error.h"
#include "transports/mlx5/devx/devx_hca.h"

namespace shmemctl::mlx5 {

namespace {

constexpr const char* reason = "this build has no mlx5: the headers of rdma-core were missing";

} // namespace

std::vector<std::string> devx_devices(const DevxSettings&, std::string& why) {
  why = reason;
  return {};
}

std::unique_ptr<Hca> open_devx_hca(const std::string& device, int port, const DevxSettings&) {
  throw Error(ExitCode::unavailable, "mlx5 device", "open", reason,
              "install libibverbs-dev and rebuild, or set SHMEMCTL_MLX5_DEVICE=emulated",
              {{}, {}, device, port});
}

} // namespace shmemctl::mlx5

#endif
