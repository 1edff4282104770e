// The device side of the check of pairs (kernels/pair_check.h).
#pragma once

#include "kernels/pair_check.h"
#include "kernels/shmem_device.cuh"

namespace shmemctl::device {

/// One block's part: all operations with one peer. All threads of the block make each call.
class PairCheck {
public:
  __device__ PairCheck(const DeviceJob& job, std::byte* area, const kernel_check::Layout& layout,
                       std::uint64_t timeout_ns, int peer)
      : job_(job), area_(area), layout_(layout), timeout_ns_(timeout_ns), me_(job.pe), peer_(peer),
        flags_(static_cast<unsigned>(area[layout.flags(peer)])) {}

  __device__ void run(kernel_check::Step step) {
    switch (step) {
    case kernel_check::Step::prepare:
      prepare();
      break;
    case kernel_check::Step::act:
      if ((flags_ & kernel_check::reaches) != 0)
        act();
      break;
    case kernel_check::Step::await:
      if ((flags_ & kernel_check::is_reached) != 0)
        await();
      break;
    case kernel_check::Step::verify:
      if ((flags_ & kernel_check::is_reached) != 0)
        verify();
      break;
    }
  }

private:
  using Layout = kernel_check::Layout;
  using Result = kernel_check::Result;

  __device__ std::byte* data(Layout::Row row, int pe, int i) const {
    return area_ + layout_.data(row, pe, i);
  }
  __device__ std::uint64_t* word(std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t*>(area_ + offset);
  }
  __device__ Result& result(int op) const {
    return *reinterpret_cast<Result*>(area_ + layout_.result(peer_, op));
  }

  /// Called by one thread. Only the first error of each operation is kept.
  __device__ void note(int op, Result::State state, std::uint64_t size_bytes, std::uint64_t offset,
                       std::uint64_t expected, std::uint64_t found) const {
    Result& seen = result(op);
    if (seen.state == Result::well)
      seen = {state, static_cast<std::uint32_t>(size_bytes), offset, expected, found};
  }
  __device__ void expect(int op, std::uint64_t expected, std::uint64_t found,
                         Result::State otherwise = Result::wrong) const {
    if (expected != found)
      note(op, otherwise, 8, 0, expected, found);
  }

  __device__ void fill(Layout::Row row, int i, int op, int caller, int target) const {
    const std::uint64_t size = Layout::size_of(i);
    std::byte* const at = data(row, peer_, i);
    for (auto k = static_cast<std::uint64_t>(Block::rank()); k < size;
         k += static_cast<std::uint64_t>(Block::size()))
      at[k] = static_cast<std::byte>(kernel_check::pattern_byte(op, caller, target, size, k));
  }
  /// The block's threads look for wrong bytes; if there is one, thread 0 notes the first.
  __device__ void compare(Layout::Row row, int i, int op, int caller, int target) const {
    const std::uint64_t size = Layout::size_of(i);
    const std::byte* const at = data(row, peer_, i);
    bool well = true;
    for (auto k = static_cast<std::uint64_t>(Block::rank()); k < size;
         k += static_cast<std::uint64_t>(Block::size()))
      well = well && look_at(at + k) == kernel_check::pattern_byte(op, caller, target, size, k);
    if (Block::all(well) || Block::rank() != 0)
      return;
    for (std::uint64_t k = 0; k < size; ++k) {
      const std::uint8_t wanted = kernel_check::pattern_byte(op, caller, target, size, k);
      if (look_at(at + k) != wanted) {
        note(op, Result::wrong, size, k, wanted, look_at(at + k));
        return;
      }
    }
  }
  /// Volatile, so that it does not read a stale copy in the L1 cache.
  static __device__ std::uint8_t look_at(const std::byte* at) {
    return static_cast<std::uint8_t>(*const_cast<const volatile std::byte*>(at));
  }

  __device__ void prepare() const {
    for (int i = 0; i < Layout::n_sizes; ++i) {
      fill(Layout::put_leaves, i, kernel_check::put, me_, peer_);
      fill(Layout::signal_leaves, i, kernel_check::put_signal, me_, peer_);
      fill(Layout::get_leaves, i, kernel_check::get, peer_, me_);
    }
    if (Block::rank() == 0) {
      for (int i = 0; i < Layout::n_sizes; ++i)
        *word(layout_.signal(peer_, i)) = 0;
      *word(layout_.added(peer_)) = kernel_check::first_word(peer_, me_);
      *word(layout_.swapped(peer_)) = kernel_check::first_word(peer_, me_);
      for (int op = 0; op < kernel_check::n_ops; ++op)
        result(op) = {Result::well, 0, 0, 0, 0};
    }
    quiet<Block>(job_);
  }

  __device__ void act() const {
    for (int i = 0; i < Layout::n_sizes; ++i)
      put<Block>(job_, data(Layout::put_arrives, me_, i), data(Layout::put_leaves, peer_, i),
                 Layout::size_of(i), peer_);
    for (int i = 0; i < Layout::n_sizes; ++i) {
      get<Block>(job_, data(Layout::get_arrives, peer_, i), data(Layout::get_leaves, me_, i),
                 Layout::size_of(i), peer_);
      compare(Layout::get_arrives, i, kernel_check::get, me_, peer_);
    }
    if (Block::rank() == 0 && (flags_ & kernel_check::has_atomics) != 0)
      do_atomics();
    quiet<Block>(job_);
    for (int i = 0; i < Layout::n_sizes; ++i)
      device::put_signal<Block>(job_, data(Layout::signal_arrives, me_, i),
                                data(Layout::signal_leaves, peer_, i), Layout::size_of(i),
                                word(layout_.signal(me_, i)), kernel_check::signal_value, peer_);
    quiet<Block>(job_);
  }

  __device__ void do_atomics() const {
    std::uint64_t expected = kernel_check::first_word(me_, peer_);
    std::uint64_t* const added = word(layout_.added(me_));
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t value = kernel_check::addend(i);
      expect(kernel_check::fetch_add, expected, atomic_fetch_add(job_, added, value, peer_));
      expected += value;
    }
    const std::uint64_t before = kernel_check::first_word(me_, peer_);
    std::uint64_t* const swapped = word(layout_.swapped(me_));
    const std::uint64_t value = kernel_check::swap_value;
    expect(kernel_check::compare_swap, before,
           atomic_compare_swap(job_, swapped, before, value, peer_));
    // The word now has another value: this compare-and-swap must change nothing.
    expect(kernel_check::compare_swap, value,
           atomic_compare_swap(job_, swapped, before, std::uint64_t{1}, peer_));
  }

  __device__ void await() const {
    for (int i = 0; i < Layout::n_sizes; ++i) {
      bool arrived = true;
      if (Block::rank() == 0) {
        const std::uint64_t* const signal = word(layout_.signal(peer_, i));
        std::uint64_t seen = 0;
        const auto poll = [&] {
          seen = load_acquire(signal);
          return seen == kernel_check::signal_value;
        };
        const auto expired = [&](std::uint64_t waited_ns) {
          return waited_ns > timeout_ns_ || load_relaxed(&job_.report->state) != WaitReport::none;
        };
        arrived = poll_or_expire(poll, expired);
        if (!arrived)
          note(kernel_check::put_signal, Result::nothing_arrived, Layout::size_of(i), 0,
               kernel_check::signal_value, seen);
      }
      if (Block::all(arrived))
        compare(Layout::signal_arrives, i, kernel_check::put_signal, peer_, me_);
    }
  }

  __device__ void verify() const {
    for (int i = 0; i < Layout::n_sizes; ++i)
      compare(Layout::put_arrives, i, kernel_check::put, peer_, me_);
    if (Block::rank() != 0 || (flags_ & kernel_check::has_atomics) == 0)
      return;
    expect(kernel_check::fetch_add,
           kernel_check::first_word(peer_, me_) + kernel_check::addend(0) + kernel_check::addend(1),
           load_acquire(word(layout_.added(peer_))), Result::wrong_at_target);
    expect(kernel_check::compare_swap, kernel_check::swap_value,
           load_acquire(word(layout_.swapped(peer_))), Result::wrong_at_target);
  }

  const DeviceJob& job_;
  std::byte* area_;
  const kernel_check::Layout& layout_;
  std::uint64_t timeout_ns_;
  int me_, peer_;
  unsigned flags_;
};

} // namespace shmemctl::device
