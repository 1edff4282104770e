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

/// ibdevx and ibgda add theirs (ibdevx::read_settings(), ibgda::read_settings()).
struct Settings {
  const char* name = "mlx5"; ///< name of the transport
  /// To which options all PEs need the same number of QPs, as in "set ... on all PEs".
  const char* qp_count_options = "";
  bool may_be_real = true, may_be_emulated = false;
  std::string over = "shm";        ///< transport that the emulated HCA uses
  int emulated_devices = 1;        ///< more than one in tests only
  EmulatedOrder emulated_order;    ///< order in which the emulated HCA executes operations
  int qp_sets = 2;                 ///< queues to each peer on each NIC
  int kernel_qp_sets = 0;          ///< additional QP sets that only kernels post to
  bool kernel_qp_per_warp = false; ///< whether kernels' QPs are per warp; otherwise per block
  bool all_ports = true;           ///< use every NIC that this PE is given
  /// The QPs' queues are in memory that the transport allocates, initialized like GPU memory would
  /// be; else in memory that Hca allocates.
  bool allocates_queues = false;
  QpOptions queue;

  // Real devices; tests have their own.
  /// Names; none, with the reason, if there are none.
  std::function<std::vector<std::string>(std::string& why)> list_devices;
  /// Throws Error (unavailable).
  std::function<std::unique_ptr<Hca>(const std::string& device, int port)> open_device;

  int all_qp_sets() const { return qp_sets + kernel_qp_sets; }
};

/// The options of both, which are valid.
Settings read_settings(const Options& options);

} // namespace shmemctl::mlx5
