// Opens a device with libraries that are already open: those of the system, or fakes of a test.
#pragma once

#include "transports/mlx5/devx/devx_hca.h"
#include "transports/mlx5/devx/functions.h"

namespace shmemctl::mlx5 {

struct DirectLibraries {
  std::shared_ptr<const verbs::Functions> verbs;
  std::shared_ptr<const DirectFunctions> direct;
};

std::vector<std::string> devx_devices(const DirectLibraries& libraries);
std::unique_ptr<Hca> open_devx_hca(const DirectLibraries& libraries, const std::string& name,
                                   int port, const DevxSettings& settings);

} // namespace shmemctl::mlx5
