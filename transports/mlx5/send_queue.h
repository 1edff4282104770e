// Many producers on one send queue, and how far its device is. The same code runs on host threads
// (HostMemory), in kernels, and in the model checker (tests/unit/mlx5): `Shape` gives the sizes and
// the encodings (DeviceShape), `Memory` the loads and stores.
//
// A producer: reserve() (one fetch-add for one entry or many), then until has_room()
// look_for_room(), set() the words, written(), then try_publish() until it is not Turn::not_mine,
// and if it is Turn::ring then try_ring() until that is true. It keeps `known`, a value that
// completed() has had. Publishing is in order of reservation: who has the next block moves `ready`
// on. Who published rings the doorbell for all that is ready, under a lock of its own, unless
// somebody has reserved behind it and so will publish after it: one ring for many. Nothing here
// waits; callers loop.
//
// The order that the device needs: words of entries, doorbell record, doorbell register.
//
// `Memory` (GpuMemory, HostMemory) has two kinds of words. Those that producers share are near
// them: load, store, load_acquire, store_release, fetch_add, exchange_acquire, fetch_max_release.
// The device's may be far, a round trip over PCIe: load_completion, store_plain, store_record,
// store_doorbell. The turn: load_turn and pass_turn, with entries_written before them.
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

/// What try_publish() says.
enum class Turn : std::uint8_t {
  not_mine, ///< somebody before us has not published yet
  done,
  ring ///< published, and now try_ring()
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

  /// The words of all entries that this thread has reserved, and not published yet, are set.
  SHMEMCTL_HOST_DEVICE void written() const { Memory::entries_written(); }

  /// Hands the blocks [first, first + blocks) on if it is their turn.
  SHMEMCTL_HOST_DEVICE Turn try_publish(std::uint64_t first, std::uint32_t blocks,
                                        const Signalled& signalled, Bell bell) const {
    const std::uint64_t word = Memory::load_turn(&view_.words->ready);
    // Who has reserved behind us publishes behind us, and rings for both. A reservation that this
    // load misses costs a ring, no more.
    const std::uint64_t reserved = Memory::load(&view_.words->reserved);
    if (word >> 1 != first)
      return Turn::not_mine;
    const std::uint64_t end = first + blocks;
    if (signalled.start_plus_1 != 0)
      Memory::store(&view_.words->signalled,
                    signalled.end << 8 | (signalled.end - signalled.start_plus_1));
    const bool wanted = bell == Bell::now || (word & 1) != 0;
    const bool rings = wanted && (reserved == end || crosses(first, end, view_.ring_log2));
    Memory::pass_turn(&view_.words->ready, word, 2 * end + (wanted && !rings ? 1 : 0));
    return rings ? Turn::ring : Turn::done;
  }

  /// Tells the device of the blocks before `end`, which are published, and of all others that are;
  /// false if another is about to tell it of something.
  SHMEMCTL_HOST_DEVICE bool try_ring(std::uint64_t end) const {
    const std::uint64_t ready = Memory::load_turn(&view_.words->ready) >> 1;
    const std::uint64_t word = Memory::load(&view_.words->bell);
    if (word >> 1 >= end)
      return true;
    // Acquire: what was rung before is before what we ring. Then `ready` may be an older one, but
    // not older than `end`, which nobody has rung.
    if ((word & 1) != 0 ||
        !Memory::compare_exchange_acquire(&view_.words->bell, word, 2 * ready + 1))
      return false;
    // Both with a release towards the device: entries, ours and those that we know of by `ready`,
    // then record, then register.
    Memory::store_record(view_.send_record, Shape::send_record(ready));
    Memory::store_doorbell(view_.doorbell, Shape::doorbell(view_, ready), view_.write_combining);
    // Release: the device sees rings in their order.
    Memory::store_release(&view_.words->bell, 2 * ready);
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
  /// Not 0 after an error completion: see Failure. Says nothing of memory.
  SHMEMCTL_HOST_DEVICE std::uint64_t failure() const { return Memory::load(&view_.words->failure); }

  /// Tells the device of everything that is published; false if another is about to tell it of
  /// something.
  SHMEMCTL_HOST_DEVICE bool try_flush() const {
    return try_ring(Memory::load_turn(&view_.words->ready) >> 1);
  }

  struct Target {
    bool needs_nop;         ///< there are entries behind the last completion: post one that has one
    std::uint64_t complete; ///< all that is published is complete when completed() reaches it
  };
  /// What to wait for so that everything published before is complete. Needs a flush, if not a NOP.
  SHMEMCTL_HOST_DEVICE Target target() const {
    // An entry that is just being published may be seen in `signalled` and not in `ready`, or, by
    // who has not published it, the other way around: then both differ, and a NOP is right.
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

  // Completions. At most 2^blocks_log2 blocks are in the device's hands, and that is at most half
  // of what an index counts.

  SHMEMCTL_HOST_DEVICE static std::uint64_t advance(std::uint64_t known, std::uint64_t index) {
    return known + ((index + 1 - known) & index_mask);
  }

  SHMEMCTL_HOST_DEVICE bool take_poll() const {
    return Memory::load(&view_.words->poll_lock) == 0 &&
           Memory::exchange_acquire(&view_.words->poll_lock, 1) == 0;
  }

  SHMEMCTL_HOST_DEVICE void poll_collapsed() const {
    if (!Memory::one_polls)
      return look_at_collapsed();
    if (!take_poll())
      return;
    look_at_collapsed();
    Memory::store_release(&view_.words->poll_lock, 0);
  }
  SHMEMCTL_HOST_DEVICE void look_at_collapsed() const {
    // Before the completion is read, by acquire, so that it is not the older one of both. Then the
    // sum below is never beyond the completion, however long this thread sleeps in between; the
    // other way around, an index of an earlier lap would count as one to come.
    const std::uint64_t before = Memory::load_acquire(&view_.words->completed);
    // Acquire: what the device wrote before it.
    const CompletionTail tail =
        Shape::tail(Memory::load_completion(view_.completions + Shape::tail_word));
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
    if (!take_poll())
      return;
    std::uint64_t taken = Memory::load(&view_.words->taken);
    const std::uint64_t taken_before = taken;
    std::uint64_t completed = Memory::load(&view_.words->completed);
    for (unsigned i = 0; i < most_taken; ++i) {
      const std::uint64_t* entry =
          view_.completions +
          (taken & ((std::uint64_t{1} << view_.blocks_log2) - 1)) * Shape::words_of_completion;
      // Acquire: what the device wrote before it.
      const CompletionTail tail = Shape::tail(Memory::load_completion(entry + Shape::tail_word));
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
    const std::uint64_t syndrome = Memory::load_completion(entry + Shape::syndrome_word);
    // Two that see it at once say much the same.
    Memory::store(&view_.words->failure, decode_failure(tail, syndrome).to_word());
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
