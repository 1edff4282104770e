// The endpoints (QPs) of one QP set: posting, completions, waiting, and failures.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/base/wait.h"
#include "transports/ibrc/endpoint.h"
#include "transports/ibrc/job_view.h"
#include "transports/ibrc/throughput_meter.h"
#include "transports/rc/endpoint_table.h"
#include "transports/rc/staging.h"

namespace shmemctl::ibrc {

/// How ibrc waits for completions and messages. It first polls without a pause instruction: a
/// completion takes microseconds, and polling the CQ is slow enough. Then it yields, then sleeps,
/// since the peer may need this core. Every 50 ms it checks the job's health, and callers poll
/// asynchronous events; Requests does that every second, and probes the peer.
inline constexpr BackoffPolicy wait_backoff{.spins = 2000,
                                            .relaxes = false,
                                            .yields = 2000,
                                            .first_sleep = std::chrono::microseconds(50),
                                            .max_sleep = std::chrono::microseconds(50),
                                            .yields_per_check = 1,
                                            .check_interval = std::chrono::milliseconds(50)};

/// Not thread safe: called under the QP set's lock. All calls throw Error (unavailable) if a work
/// request failed; it names device, port, peer and the completion's status. They also throw what
/// JobHealth throws.
class Endpoints {
public:
  /// @param endpoints the maximum number of endpoints that will be added
  Endpoints(JobView& job, const rc::LocalMemory& local, std::size_t endpoints);

  /// Creates a QP. The reference stays valid.
  Endpoint& add(int pe, std::size_t port, std::size_t peer_port);

  std::size_t paths_to(int pe) const { return endpoints_.paths_to(pe); }
  Endpoint& endpoint(int pe, std::size_t path) const { return endpoints_.at(pe, path); }
  rc::Staging& staging() { return staging_; }
  /// The word that receives the old value of an atomic that the caller waits for.
  std::uint64_t* result() const { return reinterpret_cast<std::uint64_t*>(staging_.extra()); }
  /// The word that receives old values that are not used.
  std::uint64_t* ignored() const { return result() + 1; }

  /// Posts the chain and clears it. Waits for room, and for requests that a fence orders before it.
  /// @param signalled whether the last request must be signalled, because the caller waits for it
  void post(Endpoint& endpoint, WorkChain& chain, bool signalled);
  /// Clears a chain that has not been posted, and frees its staging slots.
  void discard(WorkChain& chain) { discard_from(chain, 0); }
  /// Waits until all requests posted to the endpoint are complete.
  void drain(Endpoint& endpoint, const char* step);
  /// Takes a staging slot; waits until one is free. The caller must not hold a slot whose request
  /// is not posted.
  std::int16_t take_slot();
  /// Orders later operations after those posted so far to the same peer.
  void fence();
  /// Waits until all requests are complete.
  void quiet();
  /// Processes available completions. Returns whether there was one.
  bool poll();
  /// Processes asynchronous events of the devices.
  void check_events();
  /// Makes later operations on the endpoint fail with this error. Every quiet() then fails with the
  /// error of the endpoint that failed first.
  void fail(Endpoint& endpoint, const Error& failure);

private:
  /// A CQ, its capacity, and the number of work requests in flight that complete on it.
  struct Completions {
    verbs::CompletionQueue queue;
    std::uint32_t capacity = 0;
    std::uint32_t in_flight = 0;
  };

  Completions& completions_of(const Endpoint& endpoint) {
    return completions_[job_.nics[endpoint.port]->device_index];
  }
  template <class Done>
  void wait(Done&& done, const char* step, int peer);
  void await_fenced(const Endpoint& endpoint, const WorkChain& chain);
  void make_room(Endpoint& endpoint, std::size_t requests);
  bool wants_signal(const Endpoint& endpoint, const Completions& completions,
                    const Work& work) const;
  /// Ensures that a completion will report all posted requests; posts a flush if needed.
  void request_completion(Endpoint& endpoint);
  /// Posts a request that completes after all earlier ones. Returns 0 or an errno value.
  int post_flush(Endpoint& endpoint, WorkChain& chain, ibv_send_wr** refused);
  [[noreturn]] void refuse(Endpoint& endpoint, WorkChain& chain, const ibv_send_wr* refused,
                           int error_number);
  void discard_from(WorkChain& chain, std::size_t first);
  /// Processes one completion. Returns false if it is the first that reports an endpoint's failure.
  bool take(Completions& completions, const ibv_wc& completion);
  [[noreturn]] void throw_failure(const Endpoint& endpoint);
  /// Retires all requests before position `end`. Returns their number.
  std::uint32_t retire(Endpoint& endpoint, std::uint32_t end, bool success);

  JobView& job_;
  rc::Staging staging_;                  ///< its extra bytes hold the results of atomics
  std::vector<Completions> completions_; ///< by device; destroyed after the QPs
  std::vector<ThroughputMeter> meters_;  ///< by NIC
  rc::EndpointTable<Endpoint> endpoints_;
  std::optional<Error> failure_; ///< the first one
};

} // namespace shmemctl::ibrc
