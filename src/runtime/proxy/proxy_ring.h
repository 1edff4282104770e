// The ring's protocol: what producers and the reader do, step by step. The same code runs in
// production, in the model checker (tests/unit/proxy) and, later, in kernels: `Traits` gives the
// shape of a slot (ProxyTraits), `Atomics` the loads and stores (HostAtomics), `Wait` what happens
// between two looks at a word.
//
// Every order has its reason beside it. The model checker delays and reorders stores as far as
// their orders allow, as a GPU's stores over PCIe may arrive; ThreadSanitizer watches the loads.
#pragma once

#include "src/runtime/proxy/proxy_layout.h"

namespace shmemctl {

/// A producer's side: one object for each producer, not shared. Trivially copyable.
///
/// A request goes: reserve (one fetch-add for one or many), wait for room, write. Requests are
/// taken in the order of reservation, so those of one producer stay in order.
template <class Traits, class Atomics>
class RingProducer {
public:
  using Sequence = typename Traits::Sequence;

  /// @param completed a value that `ring.completed` has had
  SHMEMCTL_HOST_DEVICE RingProducer(const ProxyRingView& ring, std::uint64_t completed)
      : ring_(ring), completed_(completed) {}

  /// Reserves `count` slots in a row; false if the ring is closed: nothing is reserved then. What
  /// is reserved must be written, all of it, or the ring stands still; use at most the capacity.
  SHMEMCTL_HOST_DEVICE bool reserve(std::uint64_t count, std::uint64_t& first) const {
    // Relaxed: hands nothing over. That it is one read-modify-write makes the numbers unique, and
    // that there is one counter makes a later reservation of the same producer the greater one.
    const std::uint64_t old = Atomics::fetch_add_relaxed(ring_.issued, 2 * count);
    first = old >> 1 & Sequence::mask;
    return (old & 1) == 0;
  }

  /// Flow control: whether the slot of `sequence` is free, as far as this producer knows.
  SHMEMCTL_HOST_DEVICE bool has_room(std::uint64_t sequence) const {
    return Sequence::distance(completed_, sequence) >> ring_.capacity_log2 == 0;
  }

  /// Returns when the slot is free; false if `wait` gave up. `completed` is only read when this
  /// producer's copy of it does not suffice: about once in a lap.
  template <class Wait>
  SHMEMCTL_HOST_DEVICE bool wait_for_room(std::uint64_t sequence, Wait& wait) {
    if (has_room(sequence))
      return true;
    wait.start();
    for (;;) {
      // Acquire, with the reader's release of `completed`: its loads from the slot come before our
      // stores into it.
      completed_ = Atomics::load_acquire(ring_.completed);
      if (has_room(sequence))
        break;
      if (!wait.pause())
        return false;
    }
    wait.stop();
    return true;
  }

  /// Fills the slot; it has room.
  SHMEMCTL_HOST_DEVICE void write(std::uint64_t sequence,
                                  const typename Traits::Request& request) const {
    std::uint64_t payload[Traits::words];
    Traits::encode(request, payload);
    std::uint64_t* slot =
        ring_.slots + Sequence::slot(sequence, ring_.capacity_log2) * Traits::words;
    const std::uint64_t tag = Sequence::tag(sequence, ring_.capacity_log2);
    // Relaxed: each word shows by its own tag whether it has arrived.
    for (unsigned i = 1; i < Traits::words; ++i)
      Atomics::store_relaxed(slot + i, payload[i] << proxy_tag_shift | tag);
    const std::uint64_t word = payload[0] << proxy_tag_shift | tag;
    // Release: the data to put was written, and the target of a get was read, before the proxy that
    // has seen this word touches them. A value, a fetch or an atomic has nothing to order, and
    // where a release costs a fence for the whole system (a GPU), its word is as relaxed as the
    // others.
    if (Atomics::release_is_free || Traits::orders_memory(request))
      Atomics::store_release(slot, word);
    else
      Atomics::store_relaxed(slot, word);
  }

  /// Whether everything that was reserved before is complete at its target; then a quiet has
  /// nothing to wait for here. Never in a closed ring.
  SHMEMCTL_HOST_DEVICE bool is_quiet() const {
    // Acquire: what a quiet promises is visible.
    const std::uint64_t quieted = Atomics::load_acquire(ring_.quieted);
    // Relaxed: at least what was reserved before this call, by whoever this producer knows of.
    return Atomics::load_relaxed(ring_.issued) == quieted << 1;
  }

  /// The latest value of `ring.completed` that this producer has seen.
  SHMEMCTL_HOST_DEVICE std::uint64_t known_completed() const { return completed_; }

  // Results.

  /// The tag after `tag`; the first is that after 0. A result's next request must have another one
  /// than its last request, so that an old answer is none.
  SHMEMCTL_HOST_DEVICE static constexpr std::uint8_t next_tag(std::uint8_t tag) {
    return static_cast<std::uint8_t>((tag + 1u) & low_bits(Traits::result_tag_bits));
  }

  struct Answer {
    std::uint64_t value;
    bool ok;
    bool given; ///< false if `wait` gave up; the result must then never be used again
  };

  template <class Wait>
  SHMEMCTL_HOST_DEVICE Answer wait_for_result(std::uint32_t number, std::uint8_t tag,
                                              Wait& wait) const {
    const std::uint64_t* words = ring_.results + number * Traits::result_words;
    wait.start();
    for (;;) {
      // Acquire: data that the proxy brought (a get), and all that a quiet promises, is visible
      // after the answer.
      const std::uint64_t low = Atomics::load_acquire(words);
      if ((low & low_bits(proxy_tag_shift)) == tag) {
        // Relaxed: has its own tag.
        const std::uint64_t high = Atomics::load_relaxed(words + 1);
        if ((high & low_bits(proxy_tag_shift)) == tag) {
          wait.stop();
          return {low >> proxy_tag_shift | (high >> proxy_tag_shift & 0xff) << 56,
                  (high >> 16 & 1) == 0, true};
        }
      }
      if (!wait.pause())
        return {0, false, false};
    }
  }

protected:
  ProxyRingView ring_;
  std::uint64_t completed_;
};

/// How a quiet goes over several rings: into all that may have something under way, then through
/// the answers, so that the threads work at the same time. (A kernel gives each ring to a lane.)
/// @param post `bool post(ring)`: puts a quiet into the ring; false if there is nothing to wait for
/// @param wait `bool wait(ring)`: its answer
/// @return whether all went well
template <class Post, class Wait>
SHMEMCTL_HOST_DEVICE bool quiet_rings(std::uint32_t n_rings, Post&& post, Wait&& wait) {
  std::uint64_t posted = 0;
  for (std::uint32_t ring = 0; ring < n_rings; ++ring)
    posted |= static_cast<std::uint64_t>(post(ring) ? 1 : 0) << ring;
  bool ok = true;
  for (std::uint32_t ring = 0; ring < n_rings; ++ring)
    if ((posted >> ring & 1) != 0)
      ok = wait(ring) && ok;
  return ok;
}

/// The reader's side: there is one. Trivially copyable.
template <class Traits, class Atomics>
class RingConsumer {
public:
  using Sequence = typename Traits::Sequence;

  RingConsumer(const ProxyRingView& ring, std::uint64_t first)
      : ring_(ring), position_(first), published_(first) {}

  /// The next request, if all of its words are there; its slot stays taken until publish().
  bool take(typename Traits::Request& request) {
    const std::uint64_t* slot =
        ring_.slots + Sequence::slot(position_, ring_.capacity_log2) * Traits::words;
    const std::uint64_t tag = Sequence::tag(position_, ring_.capacity_log2);
    std::uint64_t payload[Traits::words];
    // Acquire: the producer's data before the request is visible from here on.
    if (!valid(Atomics::load_acquire(slot), tag, payload[0]))
      return false;
    for (unsigned i = 1; i < Traits::words; ++i)
      if (!valid(Atomics::load_relaxed(slot + i), tag, payload[i]))
        return false;
    request = Traits::decode(payload);
    position_ = Sequence::plus(position_, 1);
    return true;
  }

  /// Whether the next request has begun to arrive.
  bool has_next() const {
    const std::uint64_t* slot =
        ring_.slots + Sequence::slot(position_, ring_.capacity_log2) * Traits::words;
    std::uint64_t payload = 0;
    // Relaxed: a hint; take() looks again.
    return valid(Atomics::load_relaxed(slot), Sequence::tag(position_, ring_.capacity_log2),
                 payload);
  }

  /// Everything that was taken is complete at its target.
  void publish_quiet() const {
    // Release: what was brought meanwhile is visible to who has seen this.
    Atomics::store_release(ring_.quieted, position_);
  }

  /// Gives all slots that were taken back to the producers.
  void publish() {
    // Release: the loads from these slots come before a producer's next stores into them.
    Atomics::store_release(ring_.completed, position_);
    published_ = position_;
  }
  std::uint64_t unpublished() const { return Sequence::distance(published_, position_); }
  std::uint64_t position() const { return position_; }

  /// How many requests have been reserved and not been taken.
  std::uint64_t depth() const {
    return Sequence::distance(position_, Atomics::load_relaxed(ring_.issued) >> 1);
  }

  /// From now on reserve() fails; returns the sequence number behind the last request. In one step
  /// with the last reservation, so each request is either before it and taken, or refused.
  std::uint64_t close() const {
    // Relaxed: like a reservation.
    return Atomics::fetch_or_relaxed(ring_.issued, 1) >> 1 & Sequence::mask;
  }

  /// Answers who waits on the result.
  void answer(std::uint32_t number, std::uint8_t tag, std::uint64_t value, bool ok) const {
    std::uint64_t* words = ring_.results + number * Traits::result_words;
    const std::uint64_t high = value >> 56 | static_cast<std::uint64_t>(ok ? 0 : 1) << 8;
    // Relaxed: has its own tag.
    Atomics::store_relaxed(words + 1, high << proxy_tag_shift | tag);
    // Release: what was brought for the producer is visible to who has seen this word.
    Atomics::store_release(words, value << proxy_tag_shift | tag);
  }

protected:
  static bool valid(std::uint64_t word, std::uint64_t tag, std::uint64_t& payload) {
    payload = word >> proxy_tag_shift;
    return (word & low_bits(proxy_tag_shift)) == tag;
  }

  ProxyRingView ring_;
  std::uint64_t position_, published_;
};

} // namespace shmemctl
