// The ports and connections that processes have open, and what went over the node's NICs while it
// was watched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/base/sysroot.h"
#include "src/instruments/inspect/process.h"
#include "src/instruments/inspect/rdma_resources.h"
#include "src/instruments/libraries/versions.h"

namespace shmemctl::inspect {

/// One port of an RDMA device or one other interface, and its counters of bytes.
struct PortBytes {
  std::string device; ///< "mlx5_0", "eth0"
  int port = 1;
  bool rdma = false, active = false;
  std::optional<std::uint64_t> sent_bytes, received_bytes;
};

/// RDMA ports below /sys/class/infiniband, and interfaces in /proc/net/dev but lo.
/// @param pid whose network namespace is read; 0: our own
std::vector<PortBytes> read_port_bytes(const Sysroot& sysroot, int pid);

/// What went over a port between two readings.
struct PortLoad {
  std::string device;
  int port = 1;
  bool rdma = false, active = false;
  std::optional<std::uint64_t> sent_bytes, received_bytes; ///< empty if a counter was set back
  /// The counters when the window began.
  std::optional<std::uint64_t> sent_before = std::nullopt, received_before = std::nullopt;
};
std::vector<PortLoad> load_between(const std::vector<PortBytes>& before,
                                   const std::vector<PortBytes>& after);

/// RDMA devices that a process has open ("mlx5_0"), by /sys/class/infiniband_verbs.
std::vector<std::string> open_rdma_devices(const Sysroot& sysroot, const Process& process);

/// One process, for the judgement of its network.
struct NetworkUser {
  const Process* process = nullptr;
  const Libraries* libraries = nullptr;
  std::vector<std::string> rdma_devices; ///< open
  const RdmaUse* rdma = nullptr;         ///< null: the kernel's account is not known
};

/// Whether it communicates by RDMA: it has connected queue pairs or memory regions (queue pairs of
/// NVSHMEM's IBGDA are not in the kernel's account, their memory is) or, if the account is not
/// known, a device open.
bool uses_rdma(const NetworkUser& user);
/// Devices with connected queue pairs; if none is known, those that are open.
std::vector<std::string> devices_in_use(const NetworkUser& user);

/// `tcp-fallback`, `nic-one-of-many` and `receive-side-narrow`; subjects are set.
/// @param window_s 0: the node was not watched, and `loads` has no bytes
Findings network_findings(const std::vector<NetworkUser>& users, const std::vector<PortLoad>& loads,
                          double window_s);

} // namespace shmemctl::inspect
