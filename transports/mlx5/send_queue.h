// Many producers on one send queue, and how far its device is. The same code runs on host threads
// (HostMemory), in kernels, and in the model checker (tests/unit/mlx5): `Shape` gives the sizes and
// the encodings (DeviceShape), `Memory` the loads and stores.
//
// A producer: reserve() (one fetch-add for one entry or many), then until has_room()
// look_for_room(), set() the words, then try_publish() until it is true. It keeps `known`, a value
// that completed() has had. Publishing is in order of reservation, by a turn that is handed on; who
// has the turn also rings the doorbell, unless somebody has reserved behind it and so will publish
// after it: one ring for many. Nothing here waits; callers loop.
//
// The order that the device needs: words of entries, doorbell record, doorbell register.
#pragma once

#include "transports/mlx5/completion.h"
#include "transports/mlx5/queue_view.h"
#include "transports/mlx5/wire.h"

namespace shmemctl::mlx5 {

/// The device as it is.
struct DeviceShape {
  using View = QueueView;
  static constexpr unsigned index_bits = 16; ///< of an index that the device sees
  static constexpr unsigned entry_words = block_words;
  static constexpr unsigned words_of_completion = completion_words;

  SHMEMCTL_HOST_DEVICE static constexpr std::uint32_t send_record(std::uint64_t index) {
    return send_record_value(index);
  }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t doorbell(const View& view,
                                                               std::uint64_t index) {
    return doorbell_value(index, view.qpn);
  }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint32_t completions_record(std::uint64_t taken) {
    return completions_record_value(taken);
  }
  static constexpr unsigned tail_word = completion_last_word;
  static constexpr unsigned syndrome_word = completion_syndrome_word;
  SHMEMCTL_HOST_DEVICE static constexpr CompletionTail tail(std::uint64_t word) {
    return decode_tail(word);
  }
};

enum class Bell : std::uint8_t {
  now,  ///< the device is told, by this producer or by one that publishes right behind it
  later ///< with the next ring or flush
};

/// The last entry of a reservation that writes a completion; `start_plus_1` is 0 if none does.
struct Signalled {
  std::uint64_t start_plus_1, end;
};

/// Has no state of its own: one object serves all threads, and copies are as good. Trivially
/// copyable.
template <class Shape, class Memory>
class SendQueue {
public:
  using View = typename Shape::View;

  SHMEMCTL_HOST_DEVICE explicit SendQueue(const View& view) : view_(view) {}

  // Posting.

  /// Reserves blocks; returns the first. What is reserved must be published, or the queue stands
  /// still. At most most_reserved() at once.
  SHMEMCTL_HOST_DEVICE std::uint64_t reserve(std::uint32_t blocks) const {
    // Relaxed: hands nothing over; being one read-modify-write makes the blocks its own.
    return Memory::fetch_add(&view_.words->reserved, blocks);
  }
  /// With so many blocks reserved at once, the entries before them always include a completion
  /// that makes room. Entries take up to `longest` blocks.
  SHMEMCTL_HOST_DEVICE std::uint32_t most_reserved(std::uint32_t longest = 2) const {
    return (1u << view_.blocks_log2) - (1u << view_.signal_log2) - longest + 1;
  }

  /// Whether the blocks before `end` are free.
  SHMEMCTL_HOST_DEVICE bool has_room(std::uint64_t end, std::uint64_t known) const {
    return end - known <= std::uint64_t{1} << view_.blocks_log2;
  }
  /// One look, and one push to those that are in the way: completions are taken, and entries that
  /// the device has not been told of are.
  SHMEMCTL_HOST_DEVICE bool look_for_room(std::uint64_t end, std::uint64_t& known) const {
    known = completed();
    if (has_room(end, known))
      return true;
    poll();
    try_flush();
    return false;
  }

  /// Whether the entry [start, start + blocks) completes by the queue's rule.
  SHMEMCTL_HOST_DEVICE bool completes(std::uint64_t start, std::uint32_t blocks) const {
    return crosses(start, start + blocks, view_.signal_log2);
  }

  /// Stores word `word` of the entry that starts at block `start`; blocks wrap around.
  SHMEMCTL_HOST_DEVICE void set(std::uint64_t start, unsigned word, std::uint64_t value) const {
    const std::uint64_t mask = (std::uint64_t{Shape::entry_words} << view_.blocks_log2) - 1;
    // Plain: try_publish() is behind it.
    Memory::store_plain(view_.entries + ((start * Shape::entry_words + word) & mask), value);
  }

  /// Hands the blocks [first, first + blocks) on; false if it is not their turn yet.
  SHMEMCTL_HOST_DEVICE bool try_publish(std::uint64_t first, std::uint32_t blocks,
                                        const Signalled& signalled, Bell bell) const {
    // Acquire: the entries of those before us are seen by who sees that we ring.
    if (!Memory::compare_exchange_acquire(&view_.words->ready, 2 * first, 2 * first + 1))
      return false;
    const std::uint64_t end = first + blocks;
    if (signalled.start_plus_1 != 0) {
      Memory::store(&view_.words->signalled, signalled.start_plus_1);
      Memory::store(&view_.words->signalled_end, signalled.end);
    }
    ring_if_due(first, end, bell);
    // Release: our entries come before the turn.
    Memory::store_release(&view_.words->ready, 2 * end);
    return true;
  }

  // Following.

  /// Takes completions that are there. Any thread, at any time; finds nothing where another thread
  /// is at it.
  SHMEMCTL_HOST_DEVICE void poll() const {
    if (view_.mode == CompletionMode::collapsed)
      poll_collapsed();
    else
      poll_ring();
  }
  /// Every entry whose first block is before the result is complete.
  SHMEMCTL_HOST_DEVICE std::uint64_t completed() const {
    // Acquire: what the device brought for them is visible, and it has read what stood in their
    // blocks before that is overwritten.
    return Memory::load_acquire(&view_.words->completed);
  }
  /// Not 0 after an error completion: see Failure.
  SHMEMCTL_HOST_DEVICE std::uint64_t failure() const {
    return Memory::load_acquire(&view_.words->failure);
  }

  /// Tells the device of everything that is published; false if another has the turn (who may be
  /// about to do just that).
  SHMEMCTL_HOST_DEVICE bool try_flush() const {
    std::uint64_t ready = 0;
    if (!take_turn(ready))
      return false;
    if (Memory::load(&view_.words->rung) != ready)
      ring(ready);
    Memory::store_release(&view_.words->ready, 2 * ready);
    return true;
  }

  struct Target {
    bool known;             ///< false if another has the turn
    bool needs_nop;         ///< there are entries behind the last completion: post one that has one
    std::uint64_t complete; ///< all that is published is complete when completed() reaches it
  };
  /// What to wait for so that everything published before is complete; rings what is not rung.
  SHMEMCTL_HOST_DEVICE Target try_target() const {
    std::uint64_t ready = 0;
    if (!take_turn(ready))
      return {false, false, 0};
    const bool needs_nop = Memory::load(&view_.words->signalled_end) != ready;
    const std::uint64_t complete = Memory::load(&view_.words->signalled);
    // The ring of the NOP is one for both.
    if (!needs_nop && Memory::load(&view_.words->rung) != ready)
      ring(ready);
    Memory::store_release(&view_.words->ready, 2 * ready);
    return {true, needs_nop, complete};
  }

  SHMEMCTL_HOST_DEVICE const View& view() const { return view_; }

private:
  static constexpr std::uint64_t index_mask = (std::uint64_t{1} << Shape::index_bits) - 1;

  SHMEMCTL_HOST_DEVICE static constexpr bool crosses(std::uint64_t start, std::uint64_t end,
                                                     std::uint32_t log2) {
    return start >> log2 != end >> log2;
  }

  SHMEMCTL_HOST_DEVICE bool take_turn(std::uint64_t& ready) const {
    const std::uint64_t word = Memory::load(&view_.words->ready);
    ready = word >> 1;
    // Acquire: as in try_publish().
    return (word & 1) == 0 && Memory::compare_exchange_acquire(&view_.words->ready, word, word | 1);
  }

  // With the turn.

  SHMEMCTL_HOST_DEVICE void ring_if_due(std::uint64_t first, std::uint64_t end, Bell bell) const {
    const bool due = Memory::load(&view_.words->bell_due) != 0;
    if (bell == Bell::later && !due)
      return;
    // Who has reserved behind us publishes behind us, and rings for both. A reservation that this
    // load misses costs a ring, no more.
    const bool last = Memory::load(&view_.words->reserved) == end;
    if (last || crosses(first, end, view_.ring_log2)) {
      ring(end);
      if (due)
        Memory::store(&view_.words->bell_due, 0);
    } else if (!due) {
      Memory::store(&view_.words->bell_due, 1);
    }
  }

  SHMEMCTL_HOST_DEVICE void ring(std::uint64_t end) const {
    Memory::store(&view_.words->rung, end);
    // Both with a release towards the device: entries, then record, then register.
    Memory::store_record(view_.send_record, Shape::send_record(end));
    Memory::store_doorbell(view_.doorbell, Shape::doorbell(view_, end), view_.write_combining);
  }

  // Completions. At most 2^blocks_log2 blocks are in the device's hands, and that is at most half
  // of what an index counts.

  SHMEMCTL_HOST_DEVICE static std::uint64_t advance(std::uint64_t known, std::uint64_t index) {
    return known + ((index + 1 - known) & index_mask);
  }

  SHMEMCTL_HOST_DEVICE void poll_collapsed() const {
    // Before the completion is read, by acquire, so that it is not the older one of both. Then the
    // sum below is never beyond the completion, however long this thread sleeps in between; the
    // other way around, an index of an earlier lap would count as one to come.
    const std::uint64_t before = Memory::load_acquire(&view_.words->completed);
    // Acquire: what the device wrote before it.
    const CompletionTail tail =
        Shape::tail(Memory::load_acquire(view_.completions + Shape::tail_word));
    if (is_fresh(tail))
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
    if (Memory::load(&view_.words->poll_lock) != 0 ||
        Memory::exchange_acquire(&view_.words->poll_lock, 1) != 0)
      return;
    std::uint64_t taken = Memory::load(&view_.words->taken);
    const std::uint64_t taken_before = taken;
    std::uint64_t completed = Memory::load(&view_.words->completed);
    for (unsigned i = 0; i < most_taken; ++i) {
      const std::uint64_t* entry =
          view_.completions +
          (taken & ((std::uint64_t{1} << view_.blocks_log2) - 1)) * Shape::words_of_completion;
      // Acquire: what the device wrote before it.
      const CompletionTail tail = Shape::tail(Memory::load_acquire(entry + Shape::tail_word));
      if (!is_due(tail, taken, view_.blocks_log2))
        break;
      ++taken;
      if (is_error(tail))
        fail(tail, entry);
      else
        completed = advance(completed, tail.index);
    }
    if (taken != taken_before) {
      Memory::store(&view_.words->taken, taken);
      // Towards the device, and before others learn that there is room: else their entries'
      // completions could find the queue full.
      Memory::store_record(view_.completions_record, Shape::completions_record(taken));
      Memory::store_release(&view_.words->completed, completed);
    }
    Memory::store_release(&view_.words->poll_lock, 0);
  }

  SHMEMCTL_HOST_DEVICE void fail(const CompletionTail& tail, const std::uint64_t* entry) const {
    if (Memory::load(&view_.words->failure) != 0)
      return;
    const std::uint64_t syndrome = Memory::load(entry + Shape::syndrome_word);
    // Two that see it at once say much the same.
    Memory::store_release(&view_.words->failure, decode_failure(tail, syndrome).to_word());
  }

  static constexpr unsigned most_taken = 64; ///< in one poll

  View view_;
};

/// The words of one entry, for entry.h's builders.
template <class Shape, class Memory>
class EntrySlot {
public:
  SHMEMCTL_HOST_DEVICE EntrySlot(const SendQueue<Shape, Memory>& queue, std::uint64_t start)
      : queue_(queue), start_(start) {}
  SHMEMCTL_HOST_DEVICE void set(unsigned word, std::uint64_t value) const {
    queue_.set(start_, word, value);
  }

private:
  const SendQueue<Shape, Memory>& queue_;
  std::uint64_t start_;
};

} // namespace shmemctl::mlx5
