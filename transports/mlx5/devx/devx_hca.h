// A real mlx5 device, through mlx5dv and DEVX. This code has never run on hardware: it was checked
// against the public headers and against a fake device in tests (tests/unit/transports/mlx5).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "transports/mlx5/hca.h"
#include "transports/verbs/gid.h"
#include "transports/write_order.h"

namespace shmemctl::mlx5 {

struct DevxSettings {
  std::string verbs_library = "libibverbs.so.1";
  std::string mlx5_library = "libmlx5.so.1";
  verbs::GidRequest gid; ///< for RoCE ports
  WriteOrder write_order = WriteOrder::automatic;
  Options options = Options({}); ///< GPUDIRECT, IB_DISABLE_DMABUF: how GPU memory is registered
};

/// Names of the devices that can be opened. If there are none, or a library is missing, the result
/// is empty and `why` receives the reason. Does not throw.
std::vector<std::string> devx_devices(const DevxSettings& settings, std::string& why);

/// Opens a device. If it cannot be used, HcaInfo::unfit contains the reason.
/// @throw Error (unavailable) that names device, port, and the system's text
std::unique_ptr<Hca> open_devx_hca(const std::string& device, int port,
                                   const DevxSettings& settings);

} // namespace shmemctl::mlx5
