// Records the transfers of `_nbi` calls, in jobs whose calls are checked, so that a later call of
// the same thread is reported if it needs a transfer to be complete that no call has completed.
// None of this is inlined.
//
// A reported call is wrong by NVSHMEM's rules: the thread has begun a transfer; since then no
// thread of the PE has made a call that could complete it, or by which the PE could learn that it
// is complete; and now the thread reads what a get writes, or writes what a put reads. Much is not
// detected: accesses of the program to its memory other than by these calls, transfers of other
// threads, all but the last few transfers of a thread, and those of threads whose entry another
// thread has taken over.
#pragma once

#include "kernels/device/call_check.cuh"

namespace shmemctl::device {

namespace detail {

/// The calling thread's entry, locked for it until unlock_pending(). nullptr if another thread has
/// locked it: no thread waits for the lock.
__device__ inline PendingTransfers::OfThread* lock_pending(const DeviceJob& job) {
  const std::uint64_t thread =
      static_cast<std::uint64_t>(Grid::rank()) * static_cast<std::uint64_t>(Block::size()) +
      static_cast<std::uint64_t>(Block::rank());
  constexpr std::uint64_t spread = 0x9e37'79b9'7f4a'7c15;
  PendingTransfers::OfThread& entry =
      job.pending->threads[thread * spread >> (64 - PendingTransfers::threads_bits)];
  if (atomic_word_add_ordered(&entry.users, std::uint64_t{1}) != 0) {
    atomic_word_add_ordered(&entry.users, ~std::uint64_t{0});
    return nullptr;
  }
  const std::uint64_t launch = Grid::launch();
  if (load_relaxed(&entry.thread) != thread || load_relaxed(&entry.launch) != launch) {
    store_relaxed(&entry.thread, thread);
    store_relaxed(&entry.launch, launch);
    for (PendingTransfers::Transfer& transfer : entry.last)
      store_relaxed(&transfer.size_bytes, std::uint64_t{0});
  }
  return &entry;
}
__device__ inline void unlock_pending(PendingTransfers::OfThread* entry) {
  atomic_word_add_ordered(&entry->users, ~std::uint64_t{0});
}

/// Records a transfer. Called before the transfer begins, so that a call that completes it is
/// counted later.
__device__ inline void keep_pending(const DeviceJob& job, DeviceCall call, const void* local,
                                    std::size_t size_bytes) {
  PendingTransfers::OfThread* const entry = lock_pending(job);
  if (entry == nullptr)
    return;
  const std::uint64_t turn = load_relaxed(&entry->turn);
  store_relaxed(&entry->turn, turn + 1);
  PendingTransfers::Transfer& transfer = entry->last[turn % PendingTransfers::of_thread];
  store_relaxed(&transfer.begin, address_of(local));
  store_relaxed(&transfer.size_bytes, static_cast<std::uint64_t>(size_bytes));
  store_relaxed(&transfer.call, static_cast<std::uint64_t>(call));
  store_relaxed(&transfer.completions, load_relaxed(&job.pending->completions));
  unlock_pending(entry);
}

} // namespace detail

/// Called by one thread of a call's scope, before the call reads or writes memory of this PE.
/// Reports if the call needs a recorded transfer to be complete. The call goes on all the same: its
/// other threads do not know of the error.
inline __device__ __noinline__ void check_pending(const DeviceJob& job, DeviceCall call,
                                                  DeviceArgument argument, const void* local,
                                                  std::size_t size_bytes, bool writes) {
  if (job.pending == nullptr || size_bytes == 0)
    return;
  PendingTransfers::OfThread* const entry = detail::lock_pending(job);
  if (entry == nullptr)
    return;
  const std::uint64_t completions = load_relaxed(&job.pending->completions);
  const std::uint64_t begin = detail::address_of(local);
  for (const PendingTransfers::Transfer& transfer : entry->last) {
    const std::uint64_t its_begin = load_relaxed(&transfer.begin);
    const std::uint64_t its_size = load_relaxed(&transfer.size_bytes);
    const std::uint64_t its_call = load_relaxed(&transfer.call);
    const bool overlap = begin < its_begin + its_size && its_begin < begin + size_bytes;
    const bool is_get = its_call == static_cast<std::uint64_t>(DeviceCall::get_nbi);
    if (overlap && is_get != writes && load_relaxed(&transfer.completions) == completions)
      detail::report_call(job, WaitKind::not_complete, call, argument, -1, its_call,
                          begin > its_begin ? begin : its_begin);
  }
  detail::unlock_pending(entry);
}

/// Checks a put before it begins, and records it if it is of an `_nbi` call. Called by one thread
/// of the scope.
inline __device__ __noinline__ void check_put(const DeviceJob& job, DeviceCall call,
                                              const void* dest, const void* source,
                                              std::size_t size_bytes, int pe) {
  check_pending(job, call, DeviceArgument::source, source, size_bytes, false);
  if (pe == job.pe)
    check_pending(job, call, DeviceArgument::dest, dest, size_bytes, true);
  const bool nbi = call == DeviceCall::put_nbi || call == DeviceCall::put_signal_nbi;
  if (nbi && job.pending != nullptr && size_bytes != 0)
    detail::keep_pending(job, call, source, size_bytes);
}
inline __device__ __noinline__ void check_get(const DeviceJob& job, DeviceCall call,
                                              const void* dest, const void* source,
                                              std::size_t size_bytes, int pe) {
  check_pending(job, call, DeviceArgument::dest, dest, size_bytes, true);
  if (pe == job.pe)
    check_pending(job, call, DeviceArgument::source, source, size_bytes, false);
  if (call == DeviceCall::get_nbi && job.pending != nullptr && size_bytes != 0)
    detail::keep_pending(job, call, dest, size_bytes);
}

/// Called after a call that completes transfers, or by which this PE may have learned that they are
/// complete: from then on all recorded transfers count as complete.
inline __device__ __noinline__ void count_completion(const DeviceJob& job) {
  if (job.pending != nullptr)
    add_relaxed(&job.pending->completions, std::uint64_t{1});
}

} // namespace shmemctl::device
