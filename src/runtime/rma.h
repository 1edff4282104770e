// One-sided operations by symmetric address: the way every host operation takes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "src/bootstrap/job_health.h"
#include "src/runtime/state.h"
#include "transports/region_table.h"
#include "transports/transport.h"

namespace shmemctl {

enum class Compare : std::uint8_t { equal, not_equal, greater, greater_equal, less, less_equal };

/// Translates symmetric addresses and picks the way: loads and stores where the peer is mapped,
/// else the peer's transport. Errors: Error (usage) for an address that is not symmetric or a PE
/// out of range (checked only if `checked`), Error (unavailable) from the transport.
class Rma {
public:
  /// @param way_to by PE: the transport that serves it (not owned); must be set for all PEs
  Rma(int pe, int n_pes, std::vector<Transport*> way_to, JobHealth& health, double timeout_s,
      bool checked);

  int pe() const { return pe_; }
  int n_pes() const { return n_pes_; }
  /// A region is there or has changed; also handed to the transports.
  void set_region(const RegionView& region);
  const RegionView& region(int index) const { return regions_[static_cast<std::size_t>(index)]; }

  /// The region and offset of a local symmetric address; region -1 if it is not symmetric.
  RemoteAddress locate(const void* address, int pe) const;
  /// Where this address of that PE is mapped here; nullptr if it is not (shmem_ptr).
  void* direct(const void* address, int pe) const;

  void put(void* target, const void* source, std::size_t size_bytes, int pe, int context = 0,
           bool blocking = true);
  void get(void* target, const void* source, std::size_t size_bytes, int pe, int context = 0,
           bool blocking = true);
  std::uint64_t atomic(void* target, const AtomicRequest& request, int pe, int context = 0);
  void put_signal(void* target, const void* source, std::size_t size_bytes, std::uint64_t* signal,
                  std::uint64_t signal_value, SignalOp op, int pe, int context = 0,
                  bool blocking = true);
  void fence(int context = 0);
  void quiet(int context = 0);

  /// Waits until the local 64-bit word compares true; returns the value seen (acquire). Spins,
  /// then yields, then sleeps, so that more PEs than cores make progress; drives transports'
  /// progress. Throws through JobHealth: `peer` is who is expected to write (-1: unknown).
  std::uint64_t wait_until(const std::uint64_t* word, Compare compare, std::uint64_t value,
                           const char* step, int peer = -1);
  /// The same for any condition, which must read shared words atomically.
  void wait(const std::function<bool()>& condition, const char* step, int peer = -1);

  JobHealth& health() const { return health_; }
  double timeout_s() const { return timeout_s_; }
  /// For waits that begin from now on.
  void set_timeout_s(double timeout_s) { timeout_s_ = timeout_s; }
  /// Drives transports that need it, for callers that poll by themselves.
  void progress();
  /// Whether several threads may use this context at once: its operations then take turns.
  /// Different contexts, waits and set_region() need no such order.
  void serialize(int context, bool on);

private:
  Transport& way(int pe) const { return *way_to_[static_cast<std::size_t>(pe)]; }
  /// Held over an operation on that context; empty if the caller sees to the order.
  std::unique_lock<std::mutex> turn(int context);
  void require(const RemoteAddress& address, const void* local, std::size_t size_bytes) const;
  template <class Condition>
  void wait_for(Condition&& condition, const char* step, int peer);

  int pe_, n_pes_;
  std::vector<Transport*> way_to_;
  std::vector<Transport*> transports_; ///< each once
  JobHealth& health_;
  double timeout_s_;
  bool checked_;
  RegionTable regions_;
  /// By context.
  struct Lane {
    std::atomic<bool> serialized{false};
    std::mutex mutex;
  };
  std::array<Lane, limits::max_contexts> lanes_;
};

bool compares(Compare compare, std::uint64_t left, std::uint64_t right);

} // namespace shmemctl
