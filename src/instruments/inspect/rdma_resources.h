// RDMA queue pairs, completion queues, memory regions and connections by process, as the kernel
// lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"
#include "src/instruments/inspect/process.h"

namespace shmemctl::inspect {

struct QueuePair {
  std::string device;                         ///< "mlx5_0"
  int port = 0;                               ///< 0 if none yet, or unknown
  std::string type;                           ///< "RC", "UD", "DRIVER" (EFA's SRD, DC of mlx5)
  std::string state;                          ///< "RTS"
  std::uint32_t number = 0;                   ///< QPN of the queue pair
  std::optional<std::uint32_t> remote_number; ///< QPN of the peer, for RC and UC
  /// Whether it can send or receive: its state is RTR, RTS, SQD or SQE.
  bool connected() const;
};

/// An rdma_cm_id.
struct RdmaConnection {
  std::string device; ///< "" before an address is bound
  int port = 0;
  std::string state;         ///< "CONNECT", "LISTEN"
  std::string local, remote; ///< "10.0.0.1:4711"; "" if unknown
};

/// The resources that one process has on all RDMA devices.
struct RdmaUse {
  std::vector<QueuePair> queue_pairs;
  std::vector<RdmaConnection> connections;
  /// Whether the kind was listed; if not, the numbers below are unknown, not 0.
  bool completion_queues_known = true, memory_regions_known = true;
  std::size_t completion_queues = 0, memory_regions = 0;
  std::uint64_t memory_bytes = 0; ///< bytes of the memory regions shorter than 2^48 bytes
};

/// Kinds of resources; the kernel lists each kind separately.
enum class RdmaResource { queue_pair, completion_queue, memory_region, connection };
/// "qp", "cq", "mr", "cm_id": as `rdma resource show` calls them.
const char* to_string(RdmaResource kind);

struct RdmaResources {
  std::map<int, RdmaUse> by_pid;
  /// Queue pairs were listed: a process that is not in `by_pid` has none that the kernel lists.
  bool known = false;
  std::vector<RdmaResource> not_listed; ///< kinds that were not listed, of a device at least
  std::vector<Skipped> skipped;         ///< "rdma resource qp of mlx5_0", and why

  /// The resources of a process, with what is unknown about them.
  RdmaUse of(int pid) const;
};

/// Adds the resources that one message of the kernel lists (RDMA_NLDEV_CMD_RES_QP_GET and similar,
/// without header). Entries without a PID belong to the kernel itself and are left out.
void add_rdma_message(RdmaResource kind, std::string_view body, RdmaResources& to);

/// Index and name of a device, from a message of RDMA_NLDEV_CMD_GET.
struct RdmaDeviceIndex {
  std::uint32_t index = 0;
  std::string name;
};
std::optional<RdmaDeviceIndex> parse_rdma_device(std::string_view body);

/// Adds the resources that a text lists, one per line, in the form of `rdma resource show KIND`:
///   link mlx5_0/1 lqpn 280 rqpn 281 type RC state RTS pid 4711
///   dev mlx5_0 cqn 12 cqe 1023 pid 4711
///   dev mlx5_0 mrn 7 mrlen 65536 pid 4711
///   link mlx5_0/1 cm-idn 3 state CONNECT pid 4711 src-addr 10.0.0.1:4711 dst-addr 10.0.0.2:80
/// Unknown words are ignored; lines without a PID are left out.
void add_rdma_text(RdmaResource kind, std::string_view text, RdmaResources& to);
/// The reverse of add_rdma_text(), for a recording: the resources as such a text.
std::string rdma_text(RdmaResource kind, const RdmaResources& resources);

/// The path of rdma_text() in a recorded tree: "/shmemctl/rdma/qp".
std::string rdma_record_path(RdmaResource kind);

/// Reads the resources of the live machine by netlink (RDMA_NL_NLDEV), if it has RDMA devices; of a
/// recorded tree from rdma_record_path(). The kernel does not list queue pairs made by DEVX (such
/// as those of NVSHMEM's IBGDA). Does not throw: `skipped` lists what could not be read.
RdmaResources read_rdma_resources(const Sysroot& sysroot);

} // namespace shmemctl::inspect
