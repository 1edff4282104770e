// The bodies of the kernels that put and get.
#pragma once

#include "kernels/bench/pattern.h"
#include "kernels/bench/timed_region.cuh"
#include "kernels/bench/transfer.h"
#include "kernels/bench/work_split.h"

namespace shmemctl::bench {

/// The place of a message: its slot, and how many messages used that slot before (`turn`).
struct Cursor {
  std::uint64_t slot, turn, slots;

  __device__ Cursor(std::uint64_t message, std::uint64_t slot_count)
      : slot(message % slot_count), turn(message / slot_count), slots(slot_count) {}
  __device__ void next() {
    if (++slot == slots) {
      slot = 0;
      ++turn;
    }
  }
  __device__ std::uint64_t source_offset_bytes() const {
    return (slot + turn) % variants * variant_step_bytes;
  }
};

struct Put {
  static constexpr bool needs_quiet = true;
  template <class Scope>
  static __device__ void run(const DeviceJob& job, std::byte* slot, std::byte* source,
                             std::size_t size_bytes, int pe) {
    put_nbi<Scope>(job, slot, source, size_bytes, pe);
  }
};
struct Get {
  static constexpr bool needs_quiet = true;
  template <class Scope>
  static __device__ void run(const DeviceJob& job, std::byte* slot, std::byte* source,
                             std::size_t size_bytes, int pe) {
    get_nbi<Scope>(job, slot, source, size_bytes, pe);
  }
};
/// Stores 16 bytes at a time, because all addresses are multiples of 16, and the last few bytes one
/// by one.
struct Store {
  static constexpr bool needs_quiet = true;
  template <class Scope>
  static __device__ void run(const DeviceJob& job, std::byte* slot, std::byte* source,
                             std::size_t size_bytes, int pe) {
    std::byte* const target = pointer_to(job, slot, pe);
    const std::size_t words = size_bytes / sizeof(int4);
    for (auto i = static_cast<std::size_t>(Scope::rank()); i < words; i += Scope::size())
      reinterpret_cast<int4*>(target)[i] = reinterpret_cast<const int4*>(source)[i];
    for (std::size_t i = words * sizeof(int4) + Scope::rank(); i < size_bytes; i += Scope::size())
      target[i] = source[i];
  }
};

template <class Use>
__device__ inline void with_word(std::size_t size_bytes, Use&& use) {
  if (size_bytes == 8)
    use(std::uint64_t{});
  else if (size_bytes == 4)
    use(std::uint32_t{});
  else if (size_bytes == 2)
    use(std::uint16_t{});
  else
    use(std::uint8_t{});
}
struct PutValue {
  static constexpr bool needs_quiet = true;
  template <class Scope>
  static __device__ void run(const DeviceJob& job, std::byte* slot, std::byte* source,
                             std::size_t size_bytes, int pe) {
    with_word(size_bytes, [&](auto zero) {
      using Word = decltype(zero);
      put_value(job, reinterpret_cast<Word*>(slot), *reinterpret_cast<Word*>(source), pe);
    });
  }
};
struct GetValue {
  static constexpr bool needs_quiet = false; // each value is used before the next get begins
  template <class Scope>
  static __device__ void run(const DeviceJob& job, std::byte* slot, std::byte* source,
                             std::size_t size_bytes, int pe) {
    with_word(size_bytes, [&](auto zero) {
      using Word = decltype(zero);
      *reinterpret_cast<Word*>(slot) = get_value(job, reinterpret_cast<const Word*>(source), pe);
    });
  }
};

template <class Operation, class Scope>
__device__ bool run_messages(TimedRegion& region, const DeviceJob& job,
                             const TransferArguments& a) {
  const Assignment own_part = assignment_of(Scope::caller(), Scope::callers(), a.peers);
  const Piece piece = a.own_messages ? Piece{own_part.index * a.size_bytes, a.size_bytes}
                                     : piece_of(a.size_bytes, own_part.index, own_part.count);
  Cursor cursor(a.first, a.slots);
  for (std::uint64_t i = 0; i < a.count; ++i, cursor.next()) {
    std::byte* const source = a.memory + cursor.source_offset_bytes() + piece.begin_bytes;
    for (std::uint64_t k = own_part.first; k < a.peers; k += own_part.step) {
      const int pe = peer_of(job.pe, job.n_pes, k, a.peers, a.only_peer);
      std::byte* const slot = a.memory + a.slots_offset_bytes +
                              (k * a.slots + cursor.slot) * a.slot_bytes + piece.begin_bytes;
      if (piece.size_bytes > 0)
        Operation::template run<typename Scope::Api>(job, slot, source, piece.size_bytes, pe);
    }
    if (a.completion == Completion::each_message) {
      if (!region.complete())
        return false;
    } else if (a.quiet_every != 0 && (i + 1) % a.quiet_every == 0) {
      if (!quiet<typename Scope::Api>(job))
        return false;
    }
  }
  return true;
}

template <class Operation, class Scope>
__device__ bool run_one_by_one(const DeviceJob& job, const TransferArguments& a) {
  Cursor cursor(a.first, a.slots);
  for (std::uint64_t i = 0; i < a.count; ++i, cursor.next()) {
    Operation::template run<typename Scope::Api>(
        job, a.memory + a.slots_offset_bytes + cursor.slot * a.slot_bytes,
        a.memory + cursor.source_offset_bytes(), a.size_bytes, a.only_peer);
    if (Operation::needs_quiet && !quiet<typename Scope::Api>(job))
      return false;
  }
  return true;
}

template <class Scope>
__device__ bool put_signals(const DeviceJob& job, const TransferArguments& a) {
  auto* const signal = reinterpret_cast<std::uint64_t*>(a.memory + a.signal_offset_bytes);
  Cursor cursor(a.first, a.slots);
  for (std::uint64_t number = a.first; number < a.first + a.count; ++number, cursor.next()) {
    put_signal_nbi<typename Scope::Api>(
        job, a.memory + a.slots_offset_bytes + cursor.slot * a.slot_bytes,
        a.memory + cursor.source_offset_bytes(), a.size_bytes, signal, number + 1, a.only_peer);
    if (!quiet<typename Scope::Api>(job))
      return false;
  }
  return true;
}

template <class Operation, class Scope>
struct TransferBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const TransferArguments& a) {
    TimedRegion region(job, control);
    if (region.begin())
      region.end(a.peers == 0 || run_messages<Operation, Scope>(region, job, a));
  }
};
template <class Operation, class Scope>
struct LatencyBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const TransferArguments& a) {
    TimedRegion region(job, control);
    if (region.begin())
      region.end(a.peers == 0 || run_one_by_one<Operation, Scope>(job, a));
  }
};
template <class Scope>
struct PutSignalLatencyBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const TransferArguments& a) {
    TimedRegion region(job, control);
    if (region.begin())
      region.end(a.peers == 0 || put_signals<Scope>(job, a));
  }
};
} // namespace shmemctl::bench
