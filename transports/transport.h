// The one interface of all transports: one-sided operations on registered regions of a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/deadline.h"

namespace shmemctl {

/// What a transport can do to one peer.
enum Capability : unsigned {
  can_load_store = 1, ///< the peer's memory is mapped here: direct() gives addresses
  can_put = 2,
  can_get = 4,
  can_atomics = 8,
  can_put_signal = 16
};

struct Reach {
  unsigned capabilities = 0; ///< 0: not reachable
  std::string reason;        ///< why not, or by what way: one clause
};

/// The place of a PE, as far as transports need it.
struct PeerPlace {
  int pe = 0;
  std::uint64_t node_id = 0;    ///< virtual node: equal means "same node"
  std::uint64_t machine_id = 0; ///< real machine
  std::string transport_info;   ///< what this transport's local_info() gave on that PE
};

/// Memory that operations may name. Offsets are the same on all PEs.
struct RegionView {
  int region = 0; ///< 0 internal, 1 heap, 2 static data; later: user buffers
  std::byte* base = nullptr;
  std::size_t size_bytes = 0;
  /// By PE: where that PE's part is mapped here; nullptr if it is not.
  std::vector<std::byte*> mapped;
};

struct RemoteAddress {
  int pe = 0;
  int region = 0;
  std::uint64_t offset_bytes = 0;
};

enum class AtomicOp : std::uint8_t {
  fetch,
  set,
  swap,
  compare_swap,
  add,
  bit_and,
  bit_or,
  bit_xor
};

struct AtomicRequest {
  AtomicRequest() = default;
  /// Member by member, so that compilers see constants through it.
  constexpr AtomicRequest(AtomicOp what, std::uint8_t size, std::uint64_t value = 0,
                          std::uint64_t expected = 0)
      : op(what), size_bytes(size), operand(value), compare(expected) {}
  AtomicOp op = AtomicOp::fetch;
  std::uint8_t size_bytes = 8; ///< 4 or 8; the address is aligned to it
  std::uint64_t operand = 0, compare = 0;
};

enum class SignalOp : std::uint8_t { set, add };

/// Operations are issued on a context (a small number; 0 is the default one), are complete at the
/// target after quiet() on that context, and are ordered towards a PE by fence(). All throw Error
/// (unavailable) that names the device, the port, the peer and the completion's status.
/// Thread safety: different contexts may be used by different threads at once; set_region() and
/// progress() may be called while others are at work.
class Transport {
public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0; ///< "shm", "ibrc", ...

  /// What peers need to judge and make the connection; at most 1 KiB.
  virtual std::string local_info() = 0;
  virtual Reach reach(const PeerPlace& me, const PeerPlace& peer) const = 0;
  /// Collective in effect. `peers` are those whose reach() was not 0.
  virtual void connect(const std::vector<PeerPlace>& peers, const Deadline& deadline) = 0;
  /// A region is there, or has grown or moved its mappings.
  virtual void set_region(const RegionView& region) = 0;

  /// Non-blocking: `source` may be reused only after quiet() unless the operation is `blocking`.
  virtual void put(int context, const RemoteAddress& target, const void* source,
                   std::size_t size_bytes, bool blocking) = 0;
  virtual void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
                   bool blocking) = 0;
  /// Returns the old value (0 for set). Relaxed order, like OpenSHMEM's.
  virtual std::uint64_t atomic(int context, const RemoteAddress& target,
                               const AtomicRequest& request) = 0;
  /// The payload is visible at the target before the signal is.
  virtual void put_signal(int context, const RemoteAddress& target, const void* source,
                          std::size_t size_bytes, const RemoteAddress& signal,
                          std::uint64_t signal_value, SignalOp op, bool blocking) = 0;
  virtual void fence(int context) = 0;
  virtual void quiet(int context) = 0;
  virtual void progress() {}
  /// Operations are nothing but copy_to_shared() and execute_atomic() (transports/shm/words.h) on
  /// memory that is mapped here, fence() is order_fence() and quiet() is full_fence(), so that a
  /// caller may make them itself, on any thread.
  virtual bool is_load_store() const { return false; }
};

} // namespace shmemctl
