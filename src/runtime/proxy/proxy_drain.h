// One round of the proxy thread's work: ring → sink, answers, slots given back.
#pragma once

#include "src/runtime/proxy/proxy_ring.h"

namespace shmemctl {

/// What a sink says of a request.
struct ProxyOutcome {
  std::uint64_t value = 0;
  bool ok = true;
};

struct ProxyDrainLimits {
  unsigned batch = 32;         ///< requests in one round; at most Traits::largest_batch
  unsigned publish_every = 16; ///< requests; at most the ring's capacity
};

/// Takes requests in order and hands them to the sink:
///   ProxyOutcome execute(const Request&)  carries out one, or remembers why it could not
///   bool quiet()                          all that was executed is complete at its target
/// Neither throws. Quiets of one round are answered together, after one quiet() of the sink: what
/// was issued before each of them has been executed by then.
template <class Traits, class Atomics, class Sink, class Consumer = RingConsumer<Traits, Atomics>>
class RingDrain {
public:
  using Request = typename Traits::Request;

  RingDrain(const ProxyRingView& ring, std::uint64_t first, const ProxyDrainLimits& limits,
            Sink& sink)
      : consumer_(ring, first), n_results_(ring.n_results), limits_(limits), sink_(&sink) {}

  /// One round; returns how many requests were taken.
  unsigned poll() {
    unsigned taken = 0;
    Request request;
    while (taken < limits_.batch && consumer_.take(request)) {
      ++taken;
      if (Traits::is_quiet(request))
        quiets_[n_quiets_++] = {request.result, request.result_tag};
      else
        answer({request.result, request.result_tag}, sink_->execute(request));
      if (consumer_.unpublished() >= limits_.publish_every)
        consumer_.publish();
    }
    if (n_quiets_ > 0)
      settle();
    // Nothing more to take: producers that wait for room get all there is, or both would wait.
    if (taken < limits_.batch && consumer_.unpublished() > 0)
      consumer_.publish();
    return taken;
  }

  /// Refuses new requests; those before are still taken.
  void close() {
    end_ = consumer_.close();
    closed_ = true;
  }
  bool closed() const { return closed_; }
  /// Closed, and everything taken, answered and given to the sink.
  bool finished() const { return closed_ && consumer_.position() == end_; }

  std::uint64_t depth() const { return consumer_.depth(); }
  std::uint64_t position() const { return consumer_.position(); }
  void rebind(Sink& sink) { sink_ = &sink; }

private:
  struct Waiter {
    std::uint32_t result;
    std::uint32_t tag;
  };

  void answer(const Waiter& waiter, const ProxyOutcome& outcome) {
    if (waiter.result < n_results_)
      consumer_.answer(waiter.result, static_cast<std::uint8_t>(waiter.tag), outcome.value,
                       outcome.ok);
  }

  void settle() {
    const bool ok = sink_->quiet();
    for (unsigned i = 0; i < n_quiets_; ++i)
      answer(quiets_[i], {0, ok});
    n_quiets_ = 0;
  }

  Consumer consumer_;
  std::uint32_t n_results_;
  unsigned n_quiets_ = 0;
  ProxyDrainLimits limits_;
  Sink* sink_;
  Waiter quiets_[Traits::largest_batch] = {};
  std::uint64_t end_ = 0;
  bool closed_ = false;
};

} // namespace shmemctl
