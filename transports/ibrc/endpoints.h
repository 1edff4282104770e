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

/// How ibrc waits for completions and messages. Polls without a pause first: a completion takes
/// microseconds, and polling the CQ is pause enough. Then yields, then sleeps, since the peer may
/// need this core. Checks every 50 ms, when callers also poll asynchronous events and probe the
/// peer.
inline constexpr BackoffPolicy wait_backoff{.spins = 2000,
                                            .relaxes = false,
                                            .yields = 2000,
                                            .first_sleep = std::chrono::microseconds(50),
                                            .max_sleep = std::chrono::microseconds(50),
                                            .yields_per_check = 1,
                                            .check_interval = std::chrono::milliseconds(50)};

/// Not thread safe: called under the QP set's lock. All calls throw Error (unavailable) for a work
/// request that failed, which names device, port, peer and the completion's status, and what
/// JobHealth throws.
class Endpoints {
public:
  /// @param endpoints an upper limit of how many will be added
  Endpoints(JobView& job, const rc::LocalMemory& local, std::size_t endpoints);

  /// Creates a QP. The reference stays valid.
  Endpoint& add(int pe, std::size_t port, std::size_t peer_port);

  std::size_t paths_to(int pe) const { return endpoints_.paths_to(pe); }
  Endpoint& endpoint(int pe, std::size_t path) const { return endpoints_.at(pe, path); }
  rc::Staging& staging() { return staging_; }
  /// Receives the old value of an atomic that is waited for.
  std::uint64_t* result() const { return reinterpret_cast<std::uint64_t*>(staging_.extra()); }
  /// Receives old values that are not used.
  std::uint64_t* ignored() const { return result() + 1; }

  /// Posts the chain and clears it. Waits for room, and for what a fence orders before it.
  /// @param signalled the last request shall be signalled, because it is waited for
  void post(Endpoint& endpoint, WorkChain& chain, bool signalled);
  /// Waits until everything posted to it is complete.
  void drain(Endpoint& endpoint, const char* step);
  /// A staging slot; waits for one. The caller must not hold another one unposted.
  std::int16_t take_slot();
  /// Orders later operations after those posted so far to the same peer.
  void fence();
  /// Waits for everything.
  void quiet();
  /// Processes available completions. True if there was one.
  bool poll();
  /// Processes asynchronous events of the devices.
  void check_events();
  /// From now on operations on it fail with this error, and so does every quiet().
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
  /// A completion will come for everything posted.
  void request_completion(Endpoint& endpoint);
  /// Posts a request that completes after everything before it. Returns an errno, 0 on success.
  int post_flush(Endpoint& endpoint, WorkChain& chain, ibv_send_wr** refused);
  [[noreturn]] void refuse(Endpoint& endpoint, const WorkChain& chain, const ibv_send_wr* refused,
                           int error_number);
  /// False if it is the first to report an endpoint's failure.
  bool take(Completions& completions, const ibv_wc& completion);
  [[noreturn]] void throw_failure(const Endpoint& endpoint);
  /// Retires all requests before `end`. Returns how many.
  std::uint32_t retire(Endpoint& endpoint, std::uint32_t end, bool success);

  JobView& job_;
  rc::Staging staging_;                  ///< after its slots: results of atomics
  std::vector<Completions> completions_; ///< by device; destroyed after the QPs
  std::vector<ThroughputMeter> meters_;  ///< by NIC
  rc::EndpointTable<Endpoint> endpoints_;
  std::optional<Error> failure_; ///< the first one
};

} // namespace shmemctl::ibrc
