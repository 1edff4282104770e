// The options that ibdevx and ibgda share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "transports/mlx5/emulated/emulated_order.h"
#include "transports/mlx5/hca.h"

namespace shmemctl::mlx5 {

/// ibdevx and ibgda add their own settings (ibdevx::read_settings(), ibgda::read_settings()).
struct Settings {
  const char* name = "mlx5"; ///< name of the transport
  /// The options that decide the number of QPs, as the text after "set" in the fix "set ... on all
  /// PEs".
  const char* qp_count_options = "";
  bool may_be_real = true, may_be_emulated = false;
  std::string over = "shm";        ///< transport that the emulated HCA uses
  int emulated_devices = 1;        ///< number of emulated HCAs; more than 1 in tests only
  EmulatedOrder emulated_order;    ///< order in which the emulated HCA executes operations
  int qp_sets = 2;                 ///< number of QPs to each peer on each path
  int kernel_qp_sets = 0;          ///< additional QP sets that only kernels post to
  bool kernel_qp_per_warp = false; ///< kernels' QPs are mapped to warps if true, else to blocks
  bool all_ports = true;           ///< use all NICs that the mapping gives this PE, else the first
  /// Whether the transport allocates the memory of the QPs' queues, initialized as GPU memory would
  /// be. Otherwise, Hca allocates it.
  bool allocates_queues = false;
  QpOptions queue;

  // Access to real devices; tests set their own functions.
  /// Names of the devices; empty if there are none, with the reason in `why`.
  std::function<std::vector<std::string>(std::string& why)> list_devices;
  /// Throws Error (unavailable).
  std::function<std::unique_ptr<Hca>(const std::string& device, int port)> open_device;

  int all_qp_sets() const { return qp_sets + kernel_qp_sets; }
};

/// Reads the options that both transports share. They must be valid.
Settings read_settings(const Options& options);

} // namespace shmemctl::mlx5
