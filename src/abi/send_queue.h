// A send queue with any number of producers, and its completions. The same code runs on host
// threads (HostMemory), in kernels (GpuMemory), and in the model checker
// (tests/unit/transports/mlx5): `Shape` gives the sizes and encodings (DeviceShape), `Memory` the
// loads and stores.
//
// A producer calls reserve() (one fetch-add for one or several WQEs), then poll_for_room() until
// has_room(), writes the words with set(), calls written(), then try_publish() as long as that
// returns not_my_turn; if it returns `ring`, then try_ring() until that returns true. It passes
// `known`, an earlier value of completed(). WQEs are published in order of reservation: the thread
// that reserved the next WQEBB advances `ready`. After publishing, it rings the doorbell for
// everything that is ready, under a lock, unless another thread has reserved after it and will ring
// for both: one doorbell for many WQEs. Nothing here waits; callers loop.
//
// Order required by the HCA: the words of the WQEs, then the doorbell record, then the doorbell
// register.
//
// `Memory` distinguishes two kinds of words. Those shared by producers are in local memory: load,
// store, load_acquire, store_release, fetch_add, exchange_acquire, fetch_max_release. Those of the
// HCA may be a PCIe round trip away: load_completion, store_plain, store_record, store_doorbell.
// WQEs are published in turn with load_turn and pass_turn, after wqes_written, which written()
// calls.
#pragma once

#include "src/abi/cqe.h"
#include "src/abi/mlx5_format.h"
#include "src/abi/qp_view.h"

namespace shmemctl::mlx5 {

/// Sizes and encodings of the real HCA.
struct DeviceShape {
  using View = QpView;
  static constexpr unsigned index_bits = 16; ///< bits of a WQEBB index as the HCA sees it
  static constexpr unsigned words_of_wqebb = wqebb_words;
  static constexpr unsigned words_of_cqe = cqe_words;

  SHMEMCTL_HOST_DEVICE static constexpr std::uint32_t send_record(std::uint64_t index) {
    return send_dbrec_value(index);
  }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t doorbell(const View& view,
                                                               std::uint64_t index) {
    return doorbell_value(index, view.qpn);
  }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint32_t completions_record(std::uint64_t taken) {
    return cq_dbrec_value(taken);
  }
  static constexpr unsigned tail_word = cqe_last_word;
  static constexpr unsigned syndrome_word = cqe_syndrome_word;
  SHMEMCTL_HOST_DEVICE static constexpr CqeTail tail(std::uint64_t word) {
    return decode_tail(word);
  }
};

enum class DoorbellMode : std::uint8_t {
  now,  ///< this producer rings, or one that publishes right after it
  later ///< deferred to the next doorbell or flush
};

/// The last WQE of a reservation that requests a CQE; `start_plus_1` is 0 if none does.
struct Signalled {
  std::uint64_t start_plus_1, end;
};

/// Result of try_publish().
enum class PublishResult : std::uint8_t {
  not_my_turn, ///< an earlier reservation has not been published yet
  done,
  ring ///< published; the caller must now call try_ring()
};

/// Stateless: all state is in the QpView's memory, so one object may serve all threads, and so may
/// copies. Trivially copyable.
template <class Shape, class Memory>
class SendQueue {
public:
  using View = typename Shape::View;

  SHMEMCTL_HOST_DEVICE explicit SendQueue(const View& view) : view_(view) {}

  // Posting.

  /// Reserves WQEBBs; returns the index of the first. Reserved WQEBBs must be published, or the
  /// queue is blocked forever. At most max_reserved() at once.
  SHMEMCTL_HOST_DEVICE std::uint64_t reserve(std::uint32_t wqebbs) const {
    // Relaxed: publishes no data; a single read-modify-write makes the range unique.
    return Memory::fetch_add(&view_.words->reserved, wqebbs);
  }
  /// The number of WQEBBs that may be reserved at once such that the WQEs before them always
  /// include one with a completion that makes room. WQEs take up to `longest` WQEBBs.
  SHMEMCTL_HOST_DEVICE std::uint32_t max_reserved(std::uint32_t longest = 2) const {
    return (1u << view_.wqebbs_log2) - (1u << view_.signal_log2) - longest + 1;
  }

  /// Whether the WQEBBs before `end` are free.
  SHMEMCTL_HOST_DEVICE bool has_room(std::uint64_t end, std::uint64_t known) const {
    return end - known <= std::uint64_t{1} << view_.wqebbs_log2;
  }
  /// Polls once for room: takes completions, and rings the doorbell for published WQEs that the HCA
  /// does not know of yet.
  SHMEMCTL_HOST_DEVICE bool poll_for_room(std::uint64_t end, std::uint64_t& known) const {
    known = completed();
    if (has_room(end, known))
      return true;
    poll();
    try_flush();
    return false;
  }

  /// Whether the WQE at [start, start + wqebbs) requests a CQE by the queue's own rule.
  SHMEMCTL_HOST_DEVICE bool completes(std::uint64_t start, std::uint32_t wqebbs) const {
    return crosses(start, start + wqebbs, view_.signal_log2);
  }

  /// Stores word `word` of the WQE that starts at WQEBB `start`; WQEBBs wrap around.
  SHMEMCTL_HOST_DEVICE void set(std::uint64_t start, unsigned word, std::uint64_t value) const {
    const std::uint64_t mask = (std::uint64_t{Shape::words_of_wqebb} << view_.wqebbs_log2) - 1;
    // Plain: try_publish() follows it.
    Memory::store_plain(view_.wqes + ((start * Shape::words_of_wqebb + word) & mask), value);
  }

  /// Declares that all words of the WQEs that this thread has reserved and not yet published have
  /// been set.
  SHMEMCTL_HOST_DEVICE void written() const { Memory::wqes_written(); }

  /// Publishes the WQEBBs [first, first + wqebbs) if it is their turn.
  SHMEMCTL_HOST_DEVICE PublishResult try_publish(std::uint64_t first, std::uint32_t wqebbs,
                                                 const Signalled& signalled,
                                                 DoorbellMode doorbell) const {
    const std::uint64_t word = Memory::load_turn(&view_.words->ready);
    // A thread that has reserved after us publishes after us, and rings for both. If this load
    // misses its reservation, the cost is one more doorbell.
    const std::uint64_t reserved = Memory::load(&view_.words->reserved);
    if (word >> 1 != first)
      return PublishResult::not_my_turn;
    const std::uint64_t end = first + wqebbs;
    if (signalled.start_plus_1 != 0)
      Memory::store(&view_.words->signalled,
                    signalled.end << 8 | (signalled.end - signalled.start_plus_1));
    const bool wanted = doorbell == DoorbellMode::now || (word & 1) != 0;
    const bool rings = wanted && (reserved == end || crosses(first, end, view_.ring_log2));
    Memory::pass_turn(&view_.words->ready, word, 2 * end + (wanted && !rings ? 1 : 0));
    return rings ? PublishResult::ring : PublishResult::done;
  }

  /// Rings the doorbell for the WQEBBs before `end`, which are published, and for everything else
  /// that is, unless a doorbell has announced them already; false if another thread is ringing.
  SHMEMCTL_HOST_DEVICE bool try_ring(std::uint64_t end) const {
    const std::uint64_t ready = Memory::load_turn(&view_.words->ready) >> 1;
    const std::uint64_t word = Memory::load(&view_.words->rung);
    if (word >> 1 >= end)
      return true;
    // Acquire: orders the earlier doorbell before ours. `ready` may be stale then, but it is at
    // least `end`, for which no doorbell has been rung.
    if ((word & 1) != 0 ||
        !Memory::compare_exchange_acquire(&view_.words->rung, word, 2 * ready + 1))
      return false;
    // Both are releases towards the HCA: WQEs (ours and those known from `ready`), then the
    // doorbell record, then the register.
    Memory::store_record(view_.send_record, Shape::send_record(ready));
    Memory::store_doorbell(view_.doorbell, Shape::doorbell(view_, ready), view_.write_combining);
    // Release: the HCA sees doorbells in order.
    Memory::store_release(&view_.words->rung, 2 * ready);
    return true;
  }

  // Completions.

  /// Processes available CQEs. Callable by any thread at any time; does nothing while another
  /// thread holds the poll lock (see QpState::poll_lock).
  SHMEMCTL_HOST_DEVICE void poll() const {
    if (view_.mode == CqMode::collapsed)
      poll_collapsed();
    else
      poll_ring();
  }
  /// All WQEs whose first WQEBB is below the result are complete.
  SHMEMCTL_HOST_DEVICE std::uint64_t completed() const {
    // Acquire: data that the HCA has delivered for them is visible, and it has read their WQEBBs
    // before those are overwritten.
    return Memory::load_acquire(&view_.words->completed);
  }
  /// Nonzero after an error CQE: see Failure. No memory order.
  SHMEMCTL_HOST_DEVICE std::uint64_t failure() const { return Memory::load(&view_.words->failure); }

  /// Rings the doorbell for everything published; false if another thread is ringing.
  SHMEMCTL_HOST_DEVICE bool try_flush() const {
    return try_ring(Memory::load_turn(&view_.words->ready) >> 1);
  }

  struct Target {
    bool needs_nop;         ///< the last WQEs request no CQE: post a NOP that does
    std::uint64_t complete; ///< everything published is complete when completed() reaches it
  };
  /// What to wait for until everything published is complete. Without a NOP the caller must still
  /// flush.
  SHMEMCTL_HOST_DEVICE Target target() const {
    // A WQE that is being published may already show in `signalled` and not in `ready`, or, for
    // another thread, the other way around: then the two differ, and posting a NOP is right.
    const std::uint64_t ready = Memory::load_turn(&view_.words->ready) >> 1;
    const std::uint64_t signalled = Memory::load(&view_.words->signalled);
    return {signalled >> 8 != ready, (signalled >> 8) - (signalled & 0xff)};
  }

  SHMEMCTL_HOST_DEVICE const View& view() const { return view_; }

private:
  static constexpr std::uint64_t index_mask = (std::uint64_t{1} << Shape::index_bits) - 1;

  SHMEMCTL_HOST_DEVICE static constexpr bool crosses(std::uint64_t start, std::uint64_t end,
                                                     std::uint32_t log2) {
    return start >> log2 != end >> log2;
  }

  // At most 2^wqebbs_log2 WQEBBs are owned by the HCA at a time, at most half of the range of a
  // WQEBB index.

  SHMEMCTL_HOST_DEVICE static std::uint64_t advance(std::uint64_t known, std::uint64_t index) {
    return known + ((index + 1 - known) & index_mask);
  }

  SHMEMCTL_HOST_DEVICE bool try_lock_poll() const {
    return Memory::load(&view_.words->poll_lock) == 0 &&
           Memory::exchange_acquire(&view_.words->poll_lock, 1) == 0;
  }

  SHMEMCTL_HOST_DEVICE void poll_collapsed() const {
    if (!Memory::one_polls)
      return update_from_collapsed();
    if (!try_lock_poll())
      return;
    update_from_collapsed();
    Memory::store_release(&view_.words->poll_lock, 0);
  }
  SHMEMCTL_HOST_DEVICE void update_from_collapsed() const {
    // Acquire, and before the CQE is read, so that it is the older of the two. Then the sum below
    // never exceeds the CQE's index, however long this thread is descheduled in between; in the
    // other order, an index of an earlier lap would count as a future one.
    const std::uint64_t before = Memory::load_acquire(&view_.words->completed);
    // Acquire: everything the HCA wrote before the CQE.
    const CqeTail tail = Shape::tail(Memory::load_completion(view_.completions + Shape::tail_word));
    if (is_unwritten(tail))
      return;
    if (is_error(tail)) {
      fail(tail, view_.completions);
      return;
    }
    const std::uint64_t completed = advance(before, tail.index);
    if (completed != before)
      Memory::fetch_max_release(&view_.words->completed, completed);
  }

  SHMEMCTL_HOST_DEVICE void poll_ring() const {
    if (!try_lock_poll())
      return;
    std::uint64_t taken = Memory::load(&view_.words->taken);
    const std::uint64_t taken_before = taken;
    std::uint64_t completed = Memory::load(&view_.words->completed);
    for (unsigned i = 0; i < max_cqes_per_poll; ++i) {
      const std::uint64_t* cqe =
          view_.completions +
          (taken & ((std::uint64_t{1} << view_.wqebbs_log2) - 1)) * Shape::words_of_cqe;
      // Acquire: everything the HCA wrote before the CQE.
      const CqeTail tail = Shape::tail(Memory::load_completion(cqe + Shape::tail_word));
      if (!is_new_cqe(tail, taken, view_.wqebbs_log2))
        break;
      ++taken;
      if (is_error(tail))
        fail(tail, cqe);
      else
        completed = advance(completed, tail.index);
    }
    if (taken != taken_before) {
      Memory::store(&view_.words->taken, taken);
      // Before other producers learn that there is room: otherwise CQEs of their WQEs could overrun
      // the CQ.
      Memory::store_record(view_.completions_record, Shape::completions_record(taken));
      Memory::store_release(&view_.words->completed, completed);
    }
    Memory::store_release(&view_.words->poll_lock, 0);
  }

  SHMEMCTL_HOST_DEVICE void fail(const CqeTail& tail, const std::uint64_t* cqe) const {
    if (Memory::load(&view_.words->failure) != 0)
      return;
    const std::uint64_t syndrome = Memory::load_completion(cqe + Shape::syndrome_word);
    // Concurrent writers store equivalent values.
    Memory::store(&view_.words->failure, decode_failure(tail, syndrome).to_word());
  }

  static constexpr unsigned max_cqes_per_poll = 64; ///< in one poll, at most

  View view_;
};

/// The words of one WQE, for the builders of wqe.h.
template <class Shape, class Memory>
class WqeSlot {
public:
  SHMEMCTL_HOST_DEVICE WqeSlot(const SendQueue<Shape, Memory>& queue, std::uint64_t start)
      : queue_(queue), start_(start) {}
  SHMEMCTL_HOST_DEVICE void set(unsigned word, std::uint64_t value) const {
    queue_.set(start_, word, value);
  }

private:
  const SendQueue<Shape, Memory>& queue_;
  std::uint64_t start_;
};

} // namespace shmemctl::mlx5
