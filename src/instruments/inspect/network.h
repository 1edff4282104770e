// The RDMA devices and connections that processes have open, and the traffic of the node's NICs
// while it was watched.
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

/// One port of an RDMA device, or one network interface, and its byte counters.
struct PortBytes {
  std::string device; ///< "mlx5_0", "eth0"
  int port = 1;
  bool rdma = false, active = false;
  std::optional<std::uint64_t> sent_bytes, received_bytes;
};

/// Reads the RDMA ports in /sys/class/infiniband and the interfaces in /proc/net/dev, except lo.
/// @param pid process of whose network namespace the interfaces are read; 0 means our own
std::vector<PortBytes> read_port_bytes(const Sysroot& sysroot, int pid);

/// The bytes that a port carried between two readings.
struct PortLoad {
  std::string device;
  int port = 1;
  bool rdma = false, active = false;
  std::optional<std::uint64_t> sent_bytes, received_bytes; ///< empty: counter missing, or reset
  /// The counters when the window began.
  std::optional<std::uint64_t> sent_before = std::nullopt, received_before = std::nullopt;
};
std::vector<PortLoad> load_between(const std::vector<PortBytes>& before,
                                   const std::vector<PortBytes>& after);

/// The RDMA devices that a process has open ("mlx5_0"), from /sys/class/infiniband_verbs.
std::vector<std::string> open_rdma_devices(const Sysroot& sysroot, const Process& process);

/// The facts about one process from which its use of the network is judged.
struct NetworkUser {
  const Process* process = nullptr;
  const Libraries* libraries = nullptr;
  std::vector<std::string> rdma_devices; ///< open, or with queue pairs
  const RdmaUse* rdma = nullptr;         ///< nullptr if the kernel's list of resources is unknown
};

/// Whether the process communicates by RDMA: it has connected queue pairs or memory regions or, if
/// the kernel's list is unknown, a device open. Memory regions count because the kernel does not
/// list the queue pairs of NVSHMEM's IBGDA, but does list their memory.
bool uses_rdma(const NetworkUser& user);
/// Devices with connected queue pairs; if no such pair is known, the devices that are open.
std::vector<std::string> devices_in_use(const NetworkUser& user);

/// The findings `tcp-fallback`, `nic-one-of-many` and `receive-side-narrow`, with their subjects.
/// @param window_s 0 if the node was not watched, so that `loads` has no bytes
Findings network_findings(const std::vector<NetworkUser>& users, const std::vector<PortLoad>& loads,
                          double window_s);

} // namespace shmemctl::inspect
