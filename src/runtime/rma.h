// One-sided operations by symmetric address, started by the host (but not through a proxy).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <type_traits>
#include <vector>

#include "src/abi/device_state.h"
#include "src/abi/op_types.h"
#include "src/base/job_health.h"
#include "src/runtime/load_store_table.h"
#include "transports/region_table.h"
#include "transports/shm/atomics.h"
#include "transports/transport.h"

namespace shmemctl {

/// Translates symmetric addresses and chooses the path: loads and stores if the peer's memory is
/// mapped here, else the peer's transport. Throws Error (usage) for an address that is not
/// symmetric, a PE out of range, local GPU memory with remote host memory and, if `checked`, for a
/// transfer that ends beyond its region or an atomic that is not aligned; Error (unavailable) if no
/// transport reaches the PE; and the errors of the transport.
class Rma {
public:
  /// @param transports_by_pe by PE: its transport (not owned); nullptr: the PE is not reachable
  Rma(int pe, int n_pes, std::vector<Transport*> transports_by_pe, JobHealth& health,
      double timeout_s, bool checked);

  /// Sets the transports for the regions gpu_heap and gpu_team_flags; call it before these regions
  /// are set and before any operation. Without this call no PE is reachable in these regions.
  /// @param transports_by_pe by PE, as in the constructor; nullptr: the PE is not reachable
  void set_gpu_transports(std::vector<Transport*> transports_by_pe);

  int pe() const { return pe_; }
  int n_pes() const { return n_pes_; }
  /// Adds a region, or updates one that has changed. It must have been registered with the
  /// transports before, by register_region().
  void set_region(const RegionView& region);
  const RegionView& region(int index) const { return regions_[static_cast<std::size_t>(index)]; }

  /// The region and offset of a local symmetric address; region -1 if it is not symmetric.
  RemoteAddress locate(const void* address, int pe) const;
  /// The address at which `address` of `pe` is mapped here; nullptr if it is not (shmem_ptr).
  void* direct(const void* address, int pe) const;

  /// The address at which this thread can load and store the range of `pe`; nullptr if loads and
  /// stores are not allowed, the range is not entirely in one symmetric region, or there is no such
  /// PE.
  [[gnu::always_inline]] std::byte* mapped_address(const void* address, std::size_t size_bytes,
                                                   int pe) const {
    return load_store_.find(address, size_bytes, pe);
  }
  /// As mapped_address(), for a word whose size is a power of two; also nullptr if the word is not
  /// aligned to its size.
  [[gnu::always_inline]] std::byte* mapped_word(const void* address, std::size_t size_bytes,
                                                int pe) const {
    std::byte* const found = mapped_address(address, size_bytes, pe);
    const bool aligned = (reinterpret_cast<std::uintptr_t>(found) & (size_bytes - 1)) == 0;
    return __builtin_expect(aligned, 1) ? found : nullptr;
  }
  /// As mapped_word(), if this thread may execute atomics there with the CPU; always nullptr in a
  /// job whose NICs execute atomics that are not atomic with the CPU's.
  [[gnu::always_inline]] std::byte* mapped_atomic(const void* address, std::size_t size_bytes,
                                                  int pe) const {
    std::byte* const found = mapped_word(address, size_bytes, pe);
    return __builtin_expect(direct_atomics_, 1) ? found : nullptr;
  }

  [[gnu::always_inline]] void put(void* target, const void* source, std::size_t size_bytes, int pe,
                                  int context = 0, bool blocking = true) {
    if (std::byte* found = mapped_address(target, size_bytes, pe);
        found && !maybe_gpu_memory(source))
      return copy_to_shared(found, source, size_bytes);
    put_by_transport(target, source, size_bytes, pe, context, blocking);
  }
  void get(void* target, const void* source, std::size_t size_bytes, int pe, int context = 0,
           bool blocking = true) {
    if (std::byte* found = mapped_address(source, size_bytes, pe);
        found && !maybe_gpu_memory(target))
      return copy_from_shared(target, found, size_bytes);
    get_by_transport(target, source, size_bytes, pe, context, blocking);
  }
  [[gnu::always_inline]] std::uint64_t atomic(void* target, const AtomicRequest& request, int pe,
                                              int context = 0) {
    // A local copy, so that the compiler can propagate operation and size if they are constants.
    const AtomicRequest known = request;
    if (std::byte* word = mapped_atomic(target, known.size_bytes, pe); __builtin_expect(!!word, 1))
      return execute_atomic(word, known);
    // By value: if its address escaped, the request would be stored to memory before every
    // operation, and the locked instruction would wait for that store.
    return atomic_by_transport(target, known.op, known.size_bytes, known.operand, known.compare, pe,
                               context);
  }
  /// atomic() without a result: complete at the target after quiet().
  [[gnu::always_inline]] void post_atomic(void* target, const AtomicRequest& request, int pe,
                                          int context = 0) {
    const AtomicRequest known = request;
    if (std::byte* word = mapped_atomic(target, known.size_bytes, pe); __builtin_expect(!!word, 1))
      execute_atomic(word, known);
    else
      post_atomic_by_transport(target, known.op, known.size_bytes, known.operand, known.compare, pe,
                               context);
  }
  /// put() of one value of 1, 2, 4 or 8 bytes that is in a register.
  template <class Word>
  [[gnu::always_inline]] void put_value(void* target, Word value, int pe, int context = 0) {
    static_assert(std::is_unsigned_v<Word>);
    if (std::byte* word = mapped_word(target, sizeof value, pe); __builtin_expect(!!word, 1))
      return std::atomic_ref(*reinterpret_cast<Word*>(word))
          .store(value, std::memory_order_release);
    put_value_by_transport(target, value, sizeof value, pe, context);
  }
  template <class Word>
  [[gnu::always_inline]] Word get_value(const void* source, int pe, int context = 0) {
    static_assert(std::is_unsigned_v<Word>);
    if (std::byte* word = mapped_word(source, sizeof(Word), pe); __builtin_expect(!!word, 1))
      return std::atomic_ref(*reinterpret_cast<Word*>(word)).load(std::memory_order_acquire);
    return static_cast<Word>(get_value_by_transport(source, sizeof(Word), pe, context));
  }
  void put_signal(void* target, const void* source, std::size_t size_bytes, std::uint64_t* signal,
                  std::uint64_t signal_value, SignalOp op, int pe, int context = 0,
                  bool blocking = true);
  void fence(int context = 0) {
    if (only_loads_and_stores_)
      return order_fence();
    fence_transports(context);
  }
  void quiet(int context = 0) {
    if (only_loads_and_stores_)
      return full_fence();
    quiet_transports(context);
  }

  /// Waits until the comparison of the local 64-bit word with `value` is true; returns the value
  /// that was read (acquire). Spins, then yields, then sleeps, so that jobs with more PEs than
  /// cores make progress; drives the transports' progress. Throws the job's failure or the timeout
  /// error.
  /// @param peer the PE that is expected to write (-1: unknown)
  [[gnu::always_inline]] std::uint64_t wait_until(const std::uint64_t* word, Compare compare,
                                                  std::uint64_t value, const char* step,
                                                  int peer = -1) {
    // atomic_ref requires a mutable object, although this only loads.
    std::atomic_ref<std::uint64_t> cell(*const_cast<std::uint64_t*>(word));
    for (int spin = 0; spin < first_spins; ++spin) {
      const std::uint64_t seen = cell.load(std::memory_order_acquire);
      if (compares(compare, seen, value))
        return seen;
    }
    return wait_longer(word, compare, value, step, peer);
  }
  /// As wait_until(), for any condition; the condition must read shared words atomically.
  void wait(const std::function<bool()>& condition, const char* step, int peer = -1);

  JobHealth& health() const { return health_; }
  double timeout_s() const { return timeout_s_; }
  /// Takes effect for waits that begin after the call.
  void set_timeout_s(double timeout_s) { timeout_s_ = timeout_s; }
  /// Drives transports that need it, for callers that poll by themselves.
  void progress();
  /// Sets whether several threads may use this context at once; its operations are then serialised
  /// by a lock. Operations of different contexts, waits and set_region() need no lock.
  void serialize(int context, bool on);

private:
  /// Number of loads without a pause instruction, which take less than a microsecond: a store from
  /// a neighbouring core arrives within that time, and a pause would add its latency.
  static constexpr int first_spins = 400;

  static bool is_gpu_region(int number) {
    return number == region::gpu_heap || number == region::gpu_team_flags;
  }
  /// The transports for a region, by PE.
  const std::vector<Transport*>& transports_of_region(int region) const {
    return is_gpu_region(region) ? gpu_transports_by_pe_ : transports_by_pe_;
  }
  Transport& transport_of(const RemoteAddress& address) const {
    return *transports_of_region(address.region)[static_cast<std::size_t>(address.pe)];
  }
  void list_transports();
  /// True if the address is between the first and the last byte of the GPU memory that is mapped
  /// here, so that the CPU may be unable to access it.
  [[gnu::always_inline]] bool maybe_gpu_memory(const void* address) const {
    const std::uintptr_t begin = gpu_begin_.load(std::memory_order_relaxed);
    return __builtin_expect(reinterpret_cast<std::uintptr_t>(address) - begin <
                                gpu_span_.load(std::memory_order_relaxed),
                            0);
  }
  bool is_gpu_memory(const void* address) const;
  void set_gpu_span(const RegionView& region);
  /// Throws Error (usage) if `local` is GPU memory and `address` is in host memory: no transport
  /// supports that.
  void require_local(const RemoteAddress& address, const void* local) const;
  /// The lock to hold during an operation on the context; empty if the context is not serialised.
  std::unique_lock<std::mutex> lock_context(int context);
  void require(const RemoteAddress& address, const void* local, std::size_t size_bytes) const;
  void put_by_transport(void* target, const void* source, std::size_t size_bytes, int pe,
                        int context, bool blocking);
  void get_by_transport(void* target, const void* source, std::size_t size_bytes, int pe,
                        int context, bool blocking);
  std::uint64_t atomic_by_transport(void* target, AtomicOp op, std::uint8_t size_bytes,
                                    std::uint64_t operand, std::uint64_t compare, int pe,
                                    int context);
  void post_atomic_by_transport(void* target, AtomicOp op, std::uint8_t size_bytes,
                                std::uint64_t operand, std::uint64_t compare, int pe, int context);
  void put_value_by_transport(void* target, std::uint64_t value, std::size_t size_bytes, int pe,
                              int context);
  std::uint64_t get_value_by_transport(const void* source, std::size_t size_bytes, int pe,
                                       int context);
  void fence_transports(int context);
  void quiet_transports(int context);
  std::uint64_t wait_longer(const std::uint64_t* word, Compare compare, std::uint64_t value,
                            const char* step, int peer);
  template <class Condition>
  void wait_for(Condition&& condition, const char* step, int peer);

  int pe_, n_pes_;
  std::vector<Transport*> transports_by_pe_;
  std::vector<Transport*> gpu_transports_by_pe_; ///< empty in a job without GPUs
  std::vector<Transport*> transports_;           ///< each once
  JobHealth& health_;
  bool only_loads_and_stores_; ///< none of `transports_` uses anything else
  bool direct_atomics_;        ///< no load/store transport sends its atomics through a NIC
  double timeout_s_;
  bool checked_;
  RegionTable regions_;
  LoadStoreTable load_store_;
  std::atomic<std::uintptr_t> gpu_begin_{0}, gpu_span_{0};
  /// A lock for each context.
  struct ContextLock {
    std::atomic<bool> serialized{false};
    std::mutex mutex;
  };
  std::array<ContextLock, limits::max_contexts> context_locks_;
};

} // namespace shmemctl
