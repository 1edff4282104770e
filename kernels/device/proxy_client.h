// The device side of the proxy: a thread of a kernel that posts requests to its PE's FIFOs. The
// same code runs on host threads in tests. `Atomics`: DeviceAtomics or HostAtomics. `Wait`:
// start(), then pause() between two polls, which returns false to give up (after a timeout, or
// because this PE has reported a problem), then stop().
#pragma once

#include "src/abi/device_job.h"
#include "src/abi/proxy_fifo.h"
#include "src/abi/proxy_request.h"

namespace shmemctl::device {

/// Each thread has its own object. All operations return false on failure; problem() says why, and
/// the operation may still be carried out.
template <class Atomics, class Wait>
class ProxyClient {
public:
  /// @param who thread number: threads with different numbers start with different result slots
  SHMEMCTL_HOST_DEVICE ProxyClient(const DeviceNetwork& network, std::uint32_t who, Wait& wait)
      : network_(network), who_(who), wait_(wait) {}

  /// Posts the request to its PE's FIFO, without waiting for it.
  SHMEMCTL_HOST_DEVICE bool post(const ProxyRequest& request) {
    return post_to(fifo_of(network_.rings, request.pe), request);
  }
  /// Posts the request, and waits for its result.
  SHMEMCTL_HOST_DEVICE bool ask(const ProxyRequest& request, std::uint64_t& value) {
    const std::uint32_t ring = fifo_of(network_.rings, request.pe);
    Asked asked;
    return begin(ring, request, asked) && end(ring, asked, value);
  }
  /// Operations issued before, by any thread, are performed before later ones, at each PE.
  SHMEMCTL_HOST_DEVICE bool fence() {
    ProxyRequest request;
    request.op = ProxyOp::fence;
    for (std::uint32_t ring = 0; ring < network_.rings.n_fifos; ++ring)
      if (!Producer(network_.rings.views[ring], 0).is_quiet() && !post_to(ring, request))
        return false;
    return true;
  }
  /// Waits until all operations issued before, by any thread, are complete at their targets.
  SHMEMCTL_HOST_DEVICE bool quiet() {
    ProxyRequest request;
    request.op = ProxyOp::quiet;
    Asked asked[max_proxy_threads];
    bool posted = true;
    const bool answered = quiet_fifos(
        network_.rings.n_fifos,
        [&](std::uint32_t ring) {
          if (!posted || Producer(network_.rings.views[ring], 0).is_quiet())
            return false;
          posted = begin(ring, request, asked[ring]);
          return posted;
        },
        [&](std::uint32_t ring) {
          std::uint64_t none = 0;
          return end(ring, asked[ring], none);
        });
    return posted && answered;
  }

  SHMEMCTL_HOST_DEVICE const NetworkProblem& problem() const { return problem_; }

private:
  using Producer = FifoProducer<ProxyTraits, Atomics>;
  struct Asked {
    std::uint32_t number;
    std::uint8_t tag;
  };

  SHMEMCTL_HOST_DEVICE bool fail(WaitKind kind, std::uint64_t expected, std::uint64_t seen = 0) {
    problem_ = {kind, expected, seen, 0};
    return false;
  }

  SHMEMCTL_HOST_DEVICE bool post_to(std::uint32_t ring, ProxyRequest request) {
    request.context = static_cast<std::uint8_t>(network_.context);
    // Acquire, pairs with the release below: another thread may have seen the slot free for us.
    std::uint64_t* const known = network_.known_completed + ring;
    const std::uint64_t completed = Atomics::load_acquire(known);
    Producer producer(network_.rings.views[ring], completed);
    std::uint64_t sequence = 0;
    if (!producer.reserve(1, sequence))
      return fail(WaitKind::fifo_closed, sequence);
    if (!producer.wait_for_room(sequence, wait_))
      return fail(WaitKind::fifo_room, sequence, producer.known_completed());
    // May overwrite a newer value by an older one: both are valid, and the older one costs another
    // poll.
    if (producer.known_completed() != completed)
      Atomics::store_release(known, producer.known_completed());
    producer.write(sequence, request);
    return true;
  }

  SHMEMCTL_HOST_DEVICE std::uint64_t* word_of(std::uint32_t ring, std::uint32_t number) const {
    return network_.result_words + ring * network_.rings.views[ring].n_results + number;
  }
  /// Claims a free result slot, and returns the tag of its last request.
  SHMEMCTL_HOST_DEVICE bool claim(std::uint32_t ring, Asked& asked) {
    const std::uint32_t n_results = network_.rings.views[ring].n_results;
    std::uint32_t number = who_ % n_results;
    wait_.start();
    for (std::uint32_t polls = 1;; ++polls) {
      std::uint64_t* const word = word_of(ring, number);
      const std::uint64_t seen = Atomics::load_relaxed(word);
      // Acquire: the previous user has read its result.
      if ((seen & 1) == 0 && Atomics::compare_exchange_acquire(word, seen, seen | 1)) {
        asked = {number, static_cast<std::uint8_t>(seen >> 8)};
        break;
      }
      number = number + 1 == n_results ? 0 : number + 1;
      if (polls % n_results == 0 && !wait_.pause())
        return fail(WaitKind::fifo_result, n_results);
    }
    wait_.stop();
    return true;
  }
  SHMEMCTL_HOST_DEVICE void release(std::uint32_t ring, const Asked& asked) {
    // Release: our loads of the result come before the next request that uses this slot.
    Atomics::store_release(word_of(ring, asked.number), static_cast<std::uint64_t>(asked.tag) << 8);
  }

  SHMEMCTL_HOST_DEVICE bool begin(std::uint32_t ring, ProxyRequest request, Asked& asked) {
    if (!claim(ring, asked))
      return false;
    asked.tag = Producer::next_tag(asked.tag);
    request.result = asked.number;
    request.result_tag = asked.tag;
    // A request that gets no reply keeps its slot: a late reply must not be taken for that of
    // another request.
    return post_to(ring, request);
  }
  SHMEMCTL_HOST_DEVICE bool end(std::uint32_t ring, const Asked& asked, std::uint64_t& value) {
    const auto answer =
        Producer(network_.rings.views[ring], 0).wait_for_result(asked.number, asked.tag, wait_);
    if (!answer.given)
      return fail(WaitKind::fifo_reply, asked.number);
    release(ring, asked);
    if (!answer.ok)
      return fail(WaitKind::fifo_failed, asked.number);
    value = answer.value;
    return true;
  }

  const DeviceNetwork& network_;
  std::uint32_t who_;
  Wait& wait_;
  NetworkProblem problem_{};
};

} // namespace shmemctl::device
