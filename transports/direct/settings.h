// The options of the direct transports.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "transports/mlx5/emulated/emulated_order.h"
#include "transports/mlx5/hca.h"

namespace shmemctl::direct {

/// Who posts to the QPs.
enum class Flavour {
  devx, ///< host threads: a ring of CQEs
  gda   ///< GPU threads: one collapsed CQE, queues in memory of the caller
};

struct Settings {
  Flavour flavour = Flavour::devx;
  bool may_be_real = true, may_be_emulated = false;
  std::string over = "shm";           ///< transport that the emulated HCA uses
  int emulated_devices = 1;           ///< more than one in tests only
  mlx5::EmulatedOrder emulated_order; ///< of the emulated HCA
  int qp_sets = 2;                    ///< queues to each peer on each NIC
  int kernel_qp_sets = 0;             ///< additional QP sets that only kernels post to
  bool kernel_qp_per_warp = false;    ///< else by block
  bool all_ports = true;              ///< use every NIC that this PE is given
  mlx5::QpOptions queue;

  // Real devices; tests have their own.
  /// Names; none, with the reason, if there are none.
  std::function<std::vector<std::string>(std::string& why)> list_devices;
  /// Throws Error (unavailable).
  std::function<std::unique_ptr<mlx5::Hca>(const std::string& device, int port)> open_device;

  int all_qp_sets() const { return qp_sets + kernel_qp_sets; }
  const char* name() const { return flavour == Flavour::devx ? "ibdevx" : "ibgda"; }
};

/// Whether kernels shall post to QPs themselves: for all PEs (DEVICE_PATH=ibgda), or for those
/// whose memory is not mapped (DEVICE_PATH=auto and IB_ENABLE_IBGDA).
bool kernels_post(const Options& options);

/// Throws Error (usage) for options that are not valid.
Settings read_settings(Flavour flavour, const Options& options);

} // namespace shmemctl::direct
