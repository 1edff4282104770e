// The interface of all transports: one-sided operations on registered regions of a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/abi/op_types.h"
#include "src/base/deadline.h"
#include "src/base/job_health.h"
#include "src/base/options.h"

namespace shmemctl {

/// What a transport needs to know of the job when it is constructed.
struct TransportSetup {
  int pe = 0;
  int n_pes = 1;
  std::string host_name;
  const Options* options = nullptr;
  JobHealth* health = nullptr; ///< checked by every wait, at least every 100 ms
  double timeout_s = 60;       ///< limit of waits (progress may restart it), then health->give_up()
};

/// A port of a NIC, under the name that the node model uses.
struct HcaPort {
  std::string device; ///< "mlx5_0", "rxe0"; for libfabric and UCX over TCP the interface, "eth0"
  int port = 1;
  bool operator==(const HcaPort&) const = default;
};

/// The ports that connect two PEs: one of this PE and one of the peer. An empty device name means
/// that the transport does not tell which port it uses.
struct NicPair {
  HcaPort local, remote;
  bool operator==(const NicPair&) const = default;
};

/// The payload bytes that a transport has moved through a port by its own count, to be compared
/// with the port's counters.
struct NicTraffic {
  HcaPort nic;
  std::uint64_t put_bytes = 0, get_bytes = 0, operations = 0;
  /// The same for long transfers only, if the transport counts them: their bytes, and the time
  /// during which at least one of them was in flight.
  std::uint64_t long_bytes = 0, long_ns = 0;
};

/// Collective exchange of the data that connections need. Every PE of the job makes the same
/// calls, even if it has nothing to send. Throws Error when the job fails.
class Exchange {
public:
  virtual ~Exchange() = default;
  /// Returns the strings of all PEs, by PE.
  virtual std::vector<std::string> allgather(const std::string& own) = 0;
  /// Returns the received strings, by source PE.
  /// @param to_each strings to send, by destination PE
  virtual std::vector<std::string> alltoall(const std::vector<std::string>& to_each) = 0;
};

/// What a transport can do to one peer.
enum Capability : unsigned {
  can_load_store = 1, ///< the peer's memory is mapped here, for loads and stores
  can_put = 2,
  can_get = 4,
  can_atomics = 8,
  can_put_signal = 16
};

struct Reach {
  unsigned capabilities = 0; ///< 0: not reachable
  std::string reason;        ///< why the peer is not reachable, or by which path it is: one clause
};

/// The location of a PE.
struct PeerLocation {
  int pe = 0;
  std::uint64_t node_id = 0;    ///< virtual node; PEs of one node have the same value
  std::uint64_t machine_id = 0; ///< physical machine
  std::string transport_info;   ///< local_info() of this transport on that PE
};

/// Memory that operations may address. Offsets are the same on all PEs.
struct RegionView {
  int region = 0; ///< number: see namespace region (src/abi/device_state.h)
  std::byte* base = nullptr;
  std::size_t size_bytes = 0;
  /// By PE: the address at which that PE's part is mapped in this process; nullptr if it is not
  /// mapped.
  std::vector<std::byte*> mapped;
};

struct RemoteAddress {
  int pe = 0;
  int region = 0;
  std::uint64_t offset_bytes = 0;
};

struct AtomicRequest {
  AtomicRequest() = default;
  /// Initializes each member separately, so that compilers can propagate constants.
  constexpr AtomicRequest(AtomicOp what, std::uint8_t size, std::uint64_t value = 0,
                          std::uint64_t expected = 0)
      : op(what), size_bytes(size), operand(value), compare(expected) {}
  AtomicOp op = AtomicOp::fetch;
  std::uint8_t size_bytes = 8; ///< 4 or 8; the address is a multiple of it
  std::uint64_t operand = 0, compare = 0;
};

/// Operations are issued on a context (a small number; 0 is the default context). They are complete
/// at the target after quiet() on that context; fence() orders them towards each PE. Functions may
/// throw Error (unavailable) that names device, port, peer and completion status, as far as known.
///
/// Order of calls: constructor (opens the library and finds devices; does not throw if they are
/// missing) -> local_info() -> reach() -> use_nics() -> connect() -> set_region(), set_keys() for
/// each region -> operations -> destructor. Thread safety: different contexts may be used by
/// different threads at once, one context by one thread at a time. set_region(), set_keys(),
/// add_local(), remove_local() and progress() may be called while other threads communicate.
class Transport {
public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0; ///< "shm", "ibrc", ...

  /// The data that peers need to decide whether to connect, and to connect; at most 1 KiB. If the
  /// transport cannot be used here, the string contains the reason, in a form that its own reach()
  /// understands.
  virtual std::string local_info() = 0;
  virtual Reach reach(const PeerLocation& me, const PeerLocation& peer) const = 0;
  /// Sets the ports that this PE uses, best first, as the mapping chose them; not called if it
  /// chose none. Throws Error (unavailable) for a port that cannot be used.
  virtual void use_nics(const std::vector<HcaPort>& nics) { static_cast<void>(nics); }
  /// Collective.
  /// @param peers the PEs for which reach() returned capabilities, including this PE
  virtual void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
                       const Deadline& deadline) = 0;
  /// Whether peers need keys for regions: if so, the caller exchanges them after each set_region().
  virtual bool has_keys() const { return false; }
  /// Called when a region has been created, has grown, or has changed its mappings. The previous
  /// extent stays usable. Returns the key that peers need to access this PE's part; at most 4 KiB.
  virtual std::string set_region(const RegionView& region) = 0;
  /// @param keys result of set_region() on each PE
  virtual void set_keys(int region, const std::vector<std::string>& keys) {
    static_cast<void>(region);
    static_cast<void>(keys);
  }
  /// Registers memory of this PE outside of the regions, so that operations read and write it
  /// without a copy. Other local memory works too, but may be copied. Throws Error if the memory
  /// cannot be registered.
  virtual void add_local(void* base, std::size_t size_bytes) {
    static_cast<void>(base);
    static_cast<void>(size_bytes);
  }
  /// Undoes add_local(). No operation on the memory may be in flight.
  virtual void remove_local(void* base) { static_cast<void>(base); }

  /// `source` may be reused on return if `blocking`, else after quiet(). Puts are unordered: of two
  /// puts to the same address, the first may arrive last unless a fence() separates them. This does
  /// happen with EFA and UCX, and across NICs or contexts.
  virtual void put(int context, const RemoteAddress& target, const void* source,
                   std::size_t size_bytes, bool blocking) = 0;
  virtual void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
                   bool blocking) = 0;
  /// Returns the old value (0 for set). The memory order is relaxed, as in OpenSHMEM.
  virtual std::uint64_t atomic(int context, const RemoteAddress& target,
                               const AtomicRequest& request) = 0;
  /// A non-fetching atomic, complete at the target after quiet().
  virtual void post_atomic(int context, const RemoteAddress& target, const AtomicRequest& request) {
    atomic(context, target, request);
  }
  /// The payload is visible at the target before the signal is.
  virtual void put_signal(int context, const RemoteAddress& target, const void* source,
                          std::size_t size_bytes, const RemoteAddress& signal,
                          std::uint64_t signal_value, SignalOp op, bool blocking) = 0;
  virtual void fence(int context) = 0;
  virtual void quiet(int context) = 0;
  virtual void progress() {}
  /// Whether callers, on any thread, may bypass the transport for memory that is mapped here. Then
  /// put() is copy_to_shared() and get() is copy_from_shared() (transports/shm/atomics.h), fence()
  /// is order_fence() and quiet() is full_fence().
  virtual bool is_load_store() const { return false; }
  /// The same for atomics, which then are execute_atomic(); false if atomics must go through the
  /// transport although loads and stores may bypass it.
  virtual bool has_direct_atomics() const { return is_load_store(); }
  /// Whether the transport's atomics are atomic with CPU atomics on the same word. If not (those of
  /// an HCA are atomic only with each other), all atomics on a PE that the transport serves must go
  /// through the transport.
  virtual bool atomics_coherent_with_cpu() const { return true; }

  /// Traffic so far, by port; empty for a transport without NICs.
  virtual std::vector<NicTraffic> traffic() const { return {}; }
  /// How that PE is connected, such as "rxe0:1 -> rxe0:1, 2 QPs"; "" if not known.
  virtual std::string connection(int pe) const {
    static_cast<void>(pe);
    return {};
  }
  /// The pairs of ports through which that PE is reached, best first; empty for this PE, for a PE
  /// that is not connected, and for a transport without NICs.
  virtual std::vector<NicPair> nics_to(int pe) const {
    static_cast<void>(pe);
    return {};
  }

  /// The transport to use for operations whose local memory is known to be host memory.
  virtual Transport& for_host_memory() { return *this; }
};

} // namespace shmemctl
