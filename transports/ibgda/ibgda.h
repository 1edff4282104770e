// ibgda: mlx5 QPs to which GPU threads post (kernels/device/ibgda_qp.h). This is the host's side,
// which creates and connects the QPs, and posts to some of them. It runs on a real device, or on
// the emulated HCA, which accesses memory of this node or uses another transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/options.h"
#include "transports/mlx5/mlx5_transport.h"
#include "transports/mlx5/qp_layout.h"
#include "transports/mlx5/settings.h"
#include "transports/transport.h"

namespace shmemctl {

/// Without an mlx5 device or an emulated HCA that the options select, the transport reaches no PE
/// and says what would help. Throws Error (usage) for invalid options.
std::unique_ptr<Transport> make_ibgda_transport(const TransportSetup& setup);

namespace ibgda {

/// Whether kernels post to QPs themselves: to reach all other PEs (DEVICE_PATH=ibgda), or only PEs
/// whose memory is not mapped (DEVICE_PATH=auto and IB_ENABLE_IBGDA).
bool kernels_post(const Options& options);

/// Throws Error (usage) for options that are not valid.
mlx5::Settings read_settings(const Options& options);

class IbgdaTransport final : public mlx5::Mlx5Transport {
public:
  using Mlx5Transport::Mlx5Transport;

  /// Whether kernels have QP sets of their own, to which the host never posts.
  bool has_kernel_qp_sets() const { return settings().kernel_qp_sets > 0; }
  /// The index of the kernels' first QP set; kernel_qp_sets() is the number of their sets.
  std::uint32_t first_kernel_qp_set() const {
    return static_cast<std::uint32_t>(settings().qp_sets);
  }
  std::uint32_t kernel_qp_sets() const {
    return static_cast<std::uint32_t>(settings().kernel_qp_sets);
  }
  /// Whether warps are mapped to kernel QPs; if not, blocks are.
  bool kernel_qp_per_warp() const { return settings().kernel_qp_per_warp; }
  /// Size of each QP's block of memory in bytes, whole pages; the block begins with the WQEs.
  std::size_t queue_bytes() const { return mlx5::qp_layout(settings().queue).size_bytes; }
  /// Size of those pages in bytes: that of the operating system unless set otherwise.
  std::size_t page_bytes() const { return mlx5::page_bytes_of(settings().queue); }
};

} // namespace ibgda

} // namespace shmemctl
