// Interface of an mlx5 HCA: memory keys, and QPs whose WQEs the caller writes and whose CQEs the
// caller polls. There are two implementations: the emulated HCA (emulated/emulated_hca.h), and a
// real HCA through mlx5dv and DEVX (devx/devx_hca.h).
//
// Use: open an Hca, register memory, create an HcaQp for each peer, exchange PeerInfo and keys,
// connect, and post. Posting is not part of the interface: the same code posts for both
// implementations, through the addresses in HcaQp::view(): HostQp (host_qp.h) for host threads,
// send_queue.h for GPU threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/abi/qp_view.h"
#include "src/base/archive.h"
#include "transports/device_memory_user.h"
#include "transports/rc/qp_path.h"
#include "transports/verbs/gid.h"

namespace shmemctl::mlx5 {

/// The access that a memory key allows; the values are those of ibv_access_flags. Local reads are
/// always allowed.
enum Access : unsigned {
  access_local_write = 1, ///< results of READs and atomics may be written to it
  access_remote_write = 2,
  access_remote_read = 4,
  access_remote_atomic = 8,
  access_all = 15
};

struct HcaInfo {
  std::string device; ///< "mlx5_0", "emulated-mlx5"
  int port = 1;
  bool emulated = false;
  bool ethernet = false;        ///< RoCE; else InfiniBand
  std::uint32_t max_wqebbs = 0; ///< largest queue, in WQEBBs of 64 bytes
  std::uint64_t max_rdma_bytes = 0;
  std::uint32_t atomic_bytes = 0; ///< sum of the sizes in bytes of its atomics: 0, 4, 8 or 12
  /// Whether its QPs place WRITEs in posting order, if those of the peer do too.
  bool orders_writes = false;
  /// Why this device cannot be used, in one clause; empty if it can.
  std::string unfit;
};

/// The data that one end of a connection sends to the other.
struct PeerInfo {
  /// Capabilities of this end's device.
  enum Capabilities : std::uint8_t {
    orders_writes = 1,
    atomics_8 = 2,
    atomics_4 = 4,
    all_capabilities = 7
  };

  std::uint32_t qpn = 0;         ///< 24 bits
  std::uint32_t first_psn = 0;   ///< 24 bits
  std::uint16_t lid = 0;         ///< InfiniBand; 0 on Ethernet
  std::uint8_t mtu = 0;          ///< code of enum ibv_mtu: 1 is 256 bytes, 5 is 4096
  std::uint8_t ethernet = 0;     ///< 0 or 1
  std::uint8_t capabilities = 0; ///< bits of Capabilities
  /// Number of the HCA in the job, by which an emulated HCA finds its peer.
  std::uint64_t device_id = 0;
  /// The GIDs that the port can use, best first. On RoCE both ends use the best kind that both
  /// have.
  std::vector<verbs::Address> gids;

  bool operator==(const PeerInfo&) const = default;
};
void serialize(Archive& archive, PeerInfo& info);

/// The bits of PeerInfo::Capabilities of a device.
std::uint8_t capabilities_of(const HcaInfo& info);
/// Capabilities of a connection, from those of both ends. If the order of WRITEs is not kept,
/// signals use atomics; without atomics of 8 bytes, they wait for completions.
QpCapabilities abilities_of(std::uint8_t local, std::uint8_t remote);

/// Registered memory. The keys are valid, and the memory must stay mapped, until the object is
/// destroyed; no operation of this HCA accesses the memory afterwards.
class HcaMemory {
public:
  virtual ~HcaMemory() = default;
  virtual std::uint32_t lkey() const = 0; ///< for this PE's WQEs
  virtual std::uint32_t rkey() const = 0; ///< for the peers' WQEs
  /// How the HCA accesses GPU memory: "dma-buf", "peer memory"; "" for host memory.
  virtual std::string method() const { return {}; }
};

struct MemoryRequest {
  void* base = nullptr;
  std::size_t size_bytes = 0;
  unsigned access = access_all;
  std::shared_ptr<const DeviceMemory> gpu =
      nullptr; ///< the GPU that owns the memory; nullptr: host memory
};

struct QpOptions {
  std::uint32_t wqebbs = 1024; ///< queue length, a power of two; a WQE takes one or two WQEBBs
  CqMode completions = CqMode::ring;
  /// A CQE is requested once per `signal_every` WQEBBs; a power of two, at most a quarter of
  /// `wqebbs`.
  std::uint32_t signal_every = 64;
  std::uint32_t ring_every = 1u << 15; ///< under contention, a doorbell per this many WQEBBs
  /// Page size; different QPs never share a page. 0: that of the operating system.
  std::size_t page_bytes = 0;
  rc::PathOptions path; ///< ignored by the emulated HCA
  /// Memory for the QP, if GPU threads post to it: accessible to them and to the HCA, page-aligned,
  /// of qp_layout(...).size_bytes (qp_layout.h). The caller fills it with zeros, and the CQEs with
  /// 0xff. nullptr: Hca allocates host memory.
  void* memory = nullptr;
  std::size_t memory_bytes = 0;
  int memory_dmabuf_descriptor = -1; ///< -1: host memory
};

/// An RC QP to one peer, with a send queue only.
class HcaQp {
public:
  virtual ~HcaQp() = default;
  /// The data that the other end needs to connect.
  virtual PeerInfo local() const = 0;
  /// Called once on both ends, before anything is posted; not collective.
  /// @throw Error (unavailable) that names device, port and the step that was refused
  virtual void connect(const PeerInfo& peer) = 0;
  /// Addresses of the queue and its completions; valid as long as the object exists.
  virtual const QpView& view() const = 0;
  /// The capabilities that both ends support; valid after connect().
  virtual QpCapabilities abilities() const = 0;
  /// Called by threads that wait for a completion. Does nothing for a real device.
  virtual void progress() {}
  /// An asynchronous event that ended the QP (CQ overrun, fatal QP error), in one clause; nothing
  /// if there was none. Too slow for every poll: called in long waits only.
  virtual std::optional<std::string> fatal_event() = 0;
  /// Why WQE `wqe_counter` failed or, if another WQE of the QP failed first, why that one did, with
  /// its number. Empty if unknown: only the emulated HCA knows it.
  virtual std::string detail(std::uint16_t wqe_counter) const = 0;
};

/// Thread safe.
class Hca {
public:
  virtual ~Hca() = default;
  virtual const HcaInfo& info() const = 0;
  /// @throw Error (unavailable) with the system's text
  virtual std::unique_ptr<HcaMemory> register_memory(const MemoryRequest& request) = 0;
  /// @throw Error (unavailable) or (usage), also for sizes that are not powers of two or too large
  virtual std::unique_ptr<HcaQp> create_queue(const QpOptions& options) = 0;
};

} // namespace shmemctl::mlx5
