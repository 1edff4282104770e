// The protocol of the proxy FIFO, step by step, for producers and the consumer. The same code runs
// on host threads, in kernels, and in the model checker (tests/unit/runtime/proxy): `Traits` gives
// the shape of a slot (ProxyTraits), `Atomics` the loads and stores (HostAtomics, DeviceAtomics),
// `Wait` the action between two polls.
//
// Every memory order is justified where it is used. The model checker delays and reorders stores as
// far as their memory orders allow, as the stores of a GPU may arrive over PCIe; ThreadSanitizer
// checks the loads.
#pragma once

#include "src/abi/proxy_layout.h"

namespace shmemctl {

/// The producer's side: one object per producer, not shared. Trivially copyable.
///
/// A request is posted by reserve() (one fetch-add for one or several), wait_for_room(), write().
/// Requests are taken in order of reservation, so those of one producer stay in order.
template <class Traits, class Atomics>
class FifoProducer {
public:
  using Sequence = typename Traits::Sequence;

  /// @param completed an earlier value of `ring.completed`
  SHMEMCTL_HOST_DEVICE FifoProducer(const ProxyFifoView& ring, std::uint64_t completed)
      : ring_(ring), completed_(completed) {}

  /// Reserves `count` consecutive slots. Returns false and reserves nothing if the FIFO is closed.
  /// All reserved slots must be written, or the FIFO is blocked; `count` is at most the capacity.
  SHMEMCTL_HOST_DEVICE bool reserve(std::uint64_t count, std::uint64_t& first) const {
    // Relaxed: publishes no data. A single read-modify-write makes the numbers unique, and since
    // there is one counter, a later reservation of the same producer has the greater number.
    const std::uint64_t old = Atomics::fetch_add_relaxed(ring_.issued, 2 * count);
    first = old >> 1 & Sequence::mask;
    return (old & 1) == 0;
  }

  /// Flow control: whether the slot of `sequence` is free, to this producer's knowledge.
  SHMEMCTL_HOST_DEVICE bool has_room(std::uint64_t sequence) const {
    return Sequence::distance(completed_, sequence) >> ring_.capacity_log2 == 0;
  }

  /// Returns when the slot is free; false if `wait` gave up. `completed` is read only when the
  /// cached copy does not suffice: about once per lap.
  template <class Wait>
  SHMEMCTL_HOST_DEVICE bool wait_for_room(std::uint64_t sequence, Wait& wait) {
    if (has_room(sequence))
      return true;
    wait.start();
    for (;;) {
      // Acquire, pairs with the consumer's release of `completed`: its loads from the slot come
      // before our stores into it.
      completed_ = Atomics::load_acquire(ring_.completed);
      if (has_room(sequence))
        break;
      if (!wait.pause())
        return false;
    }
    wait.stop();
    return true;
  }

  /// Writes the request into its slot, which must be free.
  SHMEMCTL_HOST_DEVICE void write(std::uint64_t sequence,
                                  const typename Traits::Request& request) const {
    std::uint64_t payload[Traits::words];
    Traits::encode(request, payload);
    std::uint64_t* slot =
        ring_.slots + Sequence::slot(sequence, ring_.capacity_log2) * Traits::words;
    const std::uint64_t tag = Sequence::tag(sequence, ring_.capacity_log2);
    // Relaxed: each word has its own tag.
    for (unsigned i = 1; i < Traits::words; ++i)
      Atomics::store_relaxed(slot + i, payload[i] << proxy_tag_shift | tag);
    const std::uint64_t word = payload[0] << proxy_tag_shift | tag;
    // Release: the source of a put has been written, and the target of a get has been read, before
    // the proxy that sees this word accesses them. A value, a fetch or an atomic has nothing to
    // order; where a release costs a system-wide fence (a GPU), its word is relaxed like the
    // others.
    if (Atomics::release_is_free || Traits::orders_memory(request))
      Atomics::store_release(slot, word);
    else
      Atomics::store_relaxed(slot, word);
  }

  /// Whether everything reserved before this call is complete at its target, so that a quiet need
  /// not wait. Never true for a closed FIFO.
  SHMEMCTL_HOST_DEVICE bool is_quiet() const {
    // Acquire: completed operations are visible, as quiet guarantees.
    const std::uint64_t quieted = Atomics::load_acquire(ring_.quieted);
    // Relaxed: counts at least the reservations before this call that this producer knows of.
    return Atomics::load_relaxed(ring_.issued) == quieted << 1;
  }

  /// The latest value of `ring.completed` that this producer has seen.
  SHMEMCTL_HOST_DEVICE std::uint64_t known_completed() const { return completed_; }

  // Results.

  /// The tag after `tag`; the first one follows 0. Consecutive requests of a result slot must have
  /// different tags, so that an old reply is not taken for a new one.
  SHMEMCTL_HOST_DEVICE static constexpr std::uint8_t next_tag(std::uint8_t tag) {
    return static_cast<std::uint8_t>((tag + 1u) & low_bits(Traits::result_tag_bits));
  }

  struct Answer {
    std::uint64_t value;
    bool ok;
    bool given; ///< false if `wait` gave up; the result slot must then never be used again
  };

  template <class Wait>
  SHMEMCTL_HOST_DEVICE Answer wait_for_result(std::uint32_t number, std::uint8_t tag,
                                              Wait& wait) const {
    const std::uint64_t* words = ring_.results + number * Traits::result_words;
    wait.start();
    for (;;) {
      // Acquire: data that the proxy has fetched (a get), and all that quiet guarantees, is visible
      // after the reply.
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
  ProxyFifoView ring_;
  std::uint64_t completed_;
};

/// Quiet over several FIFOs: first posts a quiet to every FIFO that may have operations in flight,
/// then waits for all replies, so that the proxy threads work concurrently.
/// @param post `bool post(ring)`: posts a quiet to the FIFO; false if there is nothing to wait for
/// @param wait `bool wait(ring)`: waits for the reply
/// @return whether all quiets succeeded
template <class Post, class Wait>
SHMEMCTL_HOST_DEVICE bool quiet_fifos(std::uint32_t n_fifos, Post&& post, Wait&& wait) {
  std::uint64_t posted = 0;
  for (std::uint32_t ring = 0; ring < n_fifos; ++ring)
    posted |= static_cast<std::uint64_t>(post(ring) ? 1 : 0) << ring;
  bool ok = true;
  for (std::uint32_t ring = 0; ring < n_fifos; ++ring)
    if ((posted >> ring & 1) != 0)
      ok = wait(ring) && ok;
  return ok;
}

/// The consumer's side: one per FIFO. Trivially copyable.
template <class Traits, class Atomics>
class FifoConsumer {
public:
  using Sequence = typename Traits::Sequence;

  FifoConsumer(const ProxyFifoView& ring, std::uint64_t first)
      : ring_(ring), position_(first), published_(first) {}

  /// Takes the next request if all of its words have arrived; its slot stays occupied until
  /// publish().
  bool take(typename Traits::Request& request) {
    const std::uint64_t* slot =
        ring_.slots + Sequence::slot(position_, ring_.capacity_log2) * Traits::words;
    const std::uint64_t tag = Sequence::tag(position_, ring_.capacity_log2);
    std::uint64_t payload[Traits::words];
    // Acquire: the producer's data written before the request is visible.
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
    // Relaxed: only a hint; take() checks again.
    return valid(Atomics::load_relaxed(slot), Sequence::tag(position_, ring_.capacity_log2),
                 payload);
  }

  /// Announces that everything taken so far is complete at its target.
  void publish_quiet() const {
    // Release: fetched data is visible to a producer that sees this.
    Atomics::store_release(ring_.quieted, position_);
  }

  /// Returns all taken slots to the producers.
  void publish() {
    // Release: our loads from these slots come before a producer's next stores into them.
    Atomics::store_release(ring_.completed, position_);
    published_ = position_;
  }
  std::uint64_t unpublished() const { return Sequence::distance(published_, position_); }
  std::uint64_t position() const { return position_; }

  /// Number of requests reserved and not yet taken.
  std::uint64_t depth() const {
    return Sequence::distance(position_, Atomics::load_relaxed(ring_.issued) >> 1);
  }

  /// Closes the FIFO: from now on reserve() fails. Returns the sequence number after the last
  /// request. Atomic with respect to reservations, so each request is either reserved before the
  /// close and taken, or refused.
  std::uint64_t close() const {
    // Relaxed: like a reservation.
    return Atomics::fetch_or_relaxed(ring_.issued, 1) >> 1 & Sequence::mask;
  }

  /// Writes the result of a request that a producer waits for.
  void answer(std::uint32_t number, std::uint8_t tag, std::uint64_t value, bool ok) const {
    std::uint64_t* words = ring_.results + number * Traits::result_words;
    const std::uint64_t high = value >> 56 | static_cast<std::uint64_t>(ok ? 0 : 1) << 8;
    // Relaxed: has its own tag.
    Atomics::store_relaxed(words + 1, high << proxy_tag_shift | tag);
    // Release: data fetched for the producer is visible once it sees this word.
    Atomics::store_release(words, value << proxy_tag_shift | tag);
  }

protected:
  static bool valid(std::uint64_t word, std::uint64_t tag, std::uint64_t& payload) {
    payload = word >> proxy_tag_shift;
    return (word & low_bits(proxy_tag_shift)) == tag;
  }

  ProxyFifoView ring_;
  std::uint64_t position_, published_;
};

} // namespace shmemctl
