// One round of a proxy thread: takes requests from the ring, passes them to the sink, returns
// results and slots.
#pragma once

#include "src/abi/proxy_fifo.h"

namespace shmemctl {

/// A sink's result of a request.
struct ProxyOutcome {
  std::uint64_t value = 0;
  bool ok = true;
};

struct ProxyDrainLimits {
  unsigned batch = 32;         ///< maximum requests in a round; at most Traits::largest_batch
  unsigned publish_every = 16; ///< requests between publications; at most the ring's capacity
};

/// Takes requests in order and passes them to the sink, which has these functions:
/// - ProxyOutcome execute(const Request&): executes one, or stores why it cannot
/// - void begin(const Request&, unsigned number): begins one that awaits data, without waiting
/// - std::uint64_t fetched(unsigned number): the data of that request, after quiet()
/// - bool quiet(): completes all executed requests at their targets
///
/// None of them throws. All quiet requests of a round are answered together, after one quiet() of
/// the sink: all requests issued before them have been executed by then. So are requests that await
/// data, whose round trips overlap; but the first of them is executed at once if none follows it.
template <class Traits, class Atomics, class Sink, class Consumer = FifoConsumer<Traits, Atomics>>
class RingDrain {
public:
  using Request = typename Traits::Request;

  RingDrain(const ProxyFifoView& ring, std::uint64_t first, const ProxyDrainLimits& limits,
            Sink& sink)
      : consumer_(ring, first), n_results_(ring.n_results), limits_(limits), sink_(&sink) {}

  /// One round; returns how many requests were taken.
  unsigned poll() {
    unsigned taken = 0;
    Request request;
    while (taken < limits_.batch && consumer_.take(request)) {
      ++taken;
      carry_out(request, taken < limits_.batch);
      if (consumer_.unpublished() >= limits_.publish_every)
        consumer_.publish();
    }
    if (n_waiters_ > 0)
      settle();
    // The ring is empty, so publish all free slots: otherwise a producer might wait for room while
    // this thread waits for requests.
    if (taken < limits_.batch && consumer_.unpublished() > 0)
      consumer_.publish();
    return taken;
  }

  /// Refuses new requests; earlier ones are still taken.
  void close() {
    end_ = consumer_.close();
    closed_ = true;
  }
  bool closed() const { return closed_; }
  /// Whether the ring is closed, and all requests have been taken, passed to the sink and answered.
  bool finished() const { return closed_ && consumer_.position() == end_; }

  std::uint64_t depth() const { return consumer_.depth(); }
  std::uint64_t position() const { return consumer_.position(); }
  void rebind(Sink& sink) { sink_ = &sink; }

private:
  static constexpr std::uint16_t no_data = 0xffff;

  struct Waiter {
    std::uint32_t result;
    std::uint16_t tag;
    std::uint16_t data_index; ///< index among the round's requests that await data
  };

  void carry_out(const Request& request, bool more_may_come) {
    const Waiter waiter{request.result, request.result_tag, no_data};
    if (Traits::is_quiet(request)) {
      waiters_[n_waiters_++] = waiter;
      return;
    }
    if (Traits::awaits_data(request) &&
        (n_awaited_ > 0 || (more_may_come && consumer_.has_next()))) {
      sink_->begin(request, n_awaited_);
      waiters_[n_waiters_++] = {waiter.result, waiter.tag, n_awaited_++};
      return;
    }
    answer(waiter, sink_->execute(request));
  }

  void answer(const Waiter& waiter, const ProxyOutcome& outcome) {
    if (waiter.result < n_results_)
      consumer_.answer(waiter.result, static_cast<std::uint8_t>(waiter.tag), outcome.value,
                       outcome.ok);
  }

  void settle() {
    const bool ok = sink_->quiet();
    if (ok)
      consumer_.publish_quiet();
    for (unsigned i = 0; i < n_waiters_; ++i) {
      const std::uint16_t data_index = waiters_[i].data_index;
      answer(waiters_[i], {ok && data_index != no_data ? sink_->fetched(data_index) : 0, ok});
    }
    n_waiters_ = n_awaited_ = 0;
  }

  Consumer consumer_;
  std::uint32_t n_results_;
  std::uint16_t n_waiters_ = 0, n_awaited_ = 0;
  ProxyDrainLimits limits_;
  Sink* sink_;
  Waiter waiters_[Traits::largest_batch] = {};
  std::uint64_t end_ = 0;
  bool closed_ = false;
};

} // namespace shmemctl
