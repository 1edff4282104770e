// An HCA of the mlx5 family, as far as posting needs it: memory keys, and QPs whose WQEs the caller
// writes and whose CQEs it polls itself. Two implementations: the emulated one
// (emulated/emulated_hca.h), and the real one through mlx5dv and DEVX (devx/devx_hca.h).
//
// Use: open an Hca, register memory, create an HcaQp for each peer, exchange PeerInfo and keys,
// connect, and post. Posting is not part of the interface: it is the same code for both, for host
// threads (HostQp, host_qp.h) and for GPU threads (send_queue.h), on the addresses in
// HcaQp::view().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/abi/qp_view.h"
#include "src/base/archive.h"
#include "transports/device_memory_user.h"
#include "transports/rc/qp_path.h"

namespace shmemctl::mlx5 {

/// What a memory key allows; the values are those of ibv_access_flags. Reading by this side's own
/// queues is always allowed.
enum Access : unsigned {
  access_local_write = 1, ///< results of READ and of atomics may be written here
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
  std::uint32_t atomic_bytes = 0; ///< 4 + 8: plain and masked atomics of these sizes
  /// Its QPs place WRITEs in posting order, if those of the peer do too.
  bool orders_writes = false;
  /// Why this device cannot serve, in one clause; empty if it can.
  std::string unfit;
};

/// What one end of a connection sends to the other.
struct PeerInfo {
  /// What this end's device does for the other one.
  enum Capabilities : std::uint8_t {
    orders_writes = 1,
    atomics_8 = 2,
    atomics_4 = 4,
    all_capabilities = 7
  };

  std::uint32_t qpn = 0;         ///< 24 bits
  std::uint32_t first_psn = 0;   ///< 24 bits
  std::uint16_t lid = 0;         ///< InfiniBand; 0 on Ethernet
  std::uint8_t mtu = 0;          ///< the verbs' number: 1 is 256 bytes, 5 is 4096
  std::uint8_t ethernet = 0;     ///< 0 or 1
  std::uint8_t capabilities = 0; ///< Capabilities
  /// Number of the HCA in the job: an emulated one finds its peer by it.
  std::uint64_t device_id = 0;
  std::array<std::uint8_t, 16> gid{};

  bool operator==(const PeerInfo&) const = default;
};
void serialize(Archive& archive, PeerInfo& info);

/// Capabilities of a device towards its peers.
std::uint8_t capabilities_of(const HcaInfo& info);
/// Capabilities of a connection: signals use atomics if the order of WRITEs is not kept.
QpCapabilities abilities_of(std::uint8_t local, std::uint8_t remote);

/// Registered memory. The keys are valid, and the memory must stay, until the object is destroyed;
/// no operation of this HCA accesses it afterwards.
class HcaMemory {
public:
  virtual ~HcaMemory() = default;
  virtual std::uint32_t lkey() const = 0; ///< for this side's WQEs
  virtual std::uint32_t rkey() const = 0; ///< for the peers' WQEs
  /// How the HCA accesses GPU memory: "dma-buf", "peer memory"; "" for host memory.
  virtual std::string method() const { return {}; }
};

struct MemoryRequest {
  void* base = nullptr;
  std::size_t size_bytes = 0;
  unsigned access = access_all;
  std::shared_ptr<const DeviceMemory> gpu =
      nullptr; ///< the device that owns the memory; nullptr: host memory
};

struct QpOptions {
  std::uint32_t wqebbs = 1024; ///< a power of two; a WQE takes one or two
  CqMode completions = CqMode::ring;
  std::uint32_t signal_every = 64;     ///< WQEBBs; a power of two, at most a quarter of `wqebbs`
  std::uint32_t ring_every = 1u << 15; ///< WQEBBs: a doorbell at least this often under contention
  /// Page size: parts of different QPs never share a page. 0: ask the system.
  std::size_t page_bytes = 0;
  rc::PathOptions path; ///< ignored by the emulated HCA
  /// Memory of the QP for GPU threads: accessible to them and to the HCA, page-aligned, of
  /// qp_layout(...).size_bytes (qp_layout.h). The caller fills it with zeros, and the CQEs
  /// with 0xff. nullptr: Hca allocates host memory itself.
  void* memory = nullptr;
  std::size_t memory_bytes = 0;
  int memory_dmabuf_descriptor = -1; ///< -1: host memory
};

/// A connection's queue: send work only, reliable, to one peer.
class HcaQp {
public:
  virtual ~HcaQp() = default;
  /// For the other end.
  virtual PeerInfo local() const = 0;
  /// Once, before anything is posted, on both ends; not collective.
  /// @throw Error (unavailable) that names device, port and what was refused
  virtual void connect(const PeerInfo& peer) = 0;
  /// Addresses of the queue and its completions; valid as long as the object.
  virtual const QpView& view() const = 0;
  /// After connect(): what both ends support.
  virtual QpCapabilities abilities() const = 0;
  /// Called by threads that wait for a completion. A real device does nothing here.
  virtual void progress() {}
  /// An asynchronous event that ended the QP (CQ overrun, fatal QP error), in one clause; nothing
  /// if there was none. For waits that take long: not for every poll.
  virtual std::optional<std::string> fatal_event() = 0;
  /// Details of the failure of WQE `wqe_counter`, or of the QP's first one, if known: from the
  /// emulated HCA. May be empty.
  virtual std::string detail(std::uint16_t wqe_counter) const = 0;
};

/// Thread safe.
class Hca {
public:
  virtual ~Hca() = default;
  virtual const HcaInfo& info() const = 0;
  /// @throw Error (unavailable) with the system's text, e.g. that memlock is too small
  virtual std::unique_ptr<HcaMemory> register_memory(const MemoryRequest& request) = 0;
  /// @throw Error (unavailable); (usage) for sizes that are no powers of two or too large
  virtual std::unique_ptr<HcaQp> create_queue(const QpOptions& options) = 0;
};

} // namespace shmemctl::mlx5
