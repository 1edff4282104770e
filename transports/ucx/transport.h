// The transport "ucx": its operations, and the operations in flight of each context.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transports/transport.h"
#include "transports/ucx/probe.h"
#include "transports/ucx/progress_thread.h"
#include "transports/ucx/worker.h"

namespace shmemctl {

struct UcxIssued;

/// Operands of an atomic, which UCX may read and write until the atomic is complete.
struct UcxOperands {
  UcxIssued* issued = nullptr;
  std::uint64_t operand = 0, reply = 0;
  std::vector<std::byte> request{}; ///< memory for UCX's request, for an atomic without a reply

  /// UCX expects a pointer to the end of a request's memory.
  void* end_of_request() { return request.data() + request.size(); }
};

/// Operations of one context that are not known to be complete. Guarded by the worker's lock.
struct UcxIssued {
  UcxWorker* worker = nullptr; ///< nullptr until the context is first used
  int in_flight = 0;           ///< requests whose completion UCX will report
  ucs_status_t failure = UCS_OK;

  enum : unsigned char { unfinished = 1, fenced = 2 };
  std::vector<unsigned char> marks; ///< by PE: bits of the enum above
  std::vector<int> unfinished_pes;

  std::deque<UcxOperands> operands;
  std::vector<UcxOperands*> spare;

  void mark(int pe) {
    unsigned char& marked = marks[static_cast<std::size_t>(pe)];
    if ((marked & unfinished) == 0) {
      marked |= unfinished;
      unfinished_pes.push_back(pe);
    }
  }
};

class UcxTransport final : public Transport {
public:
  UcxTransport(const TransportSetup& setup, UcxSettings settings);
  ~UcxTransport() override;

  const char* name() const override { return "ucx"; }
  std::string local_info() override;
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override;
  void use_nics(const std::vector<HcaPort>& nics) override;
  void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
               const Deadline& deadline) override;
  bool has_keys() const override { return true; }
  std::string set_region(const RegionView& region) override;
  void set_keys(int region, const std::vector<std::string>& keys) override;
  void add_local(void* base, std::size_t size_bytes) override;
  void remove_local(void* base) override;

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override;
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override;
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override;
  void post_atomic(int context, const RemoteAddress& target, const AtomicRequest& request) override;
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override;
  void fence(int context) override;
  void quiet(int context) override;
  void progress() override;
  bool atomics_coherent_with_cpu() const override { return atomics_coherent_with_cpu_; }

  std::vector<NicTraffic> traffic() const override;
  std::string connection(int pe) const override;
  /// UCX reports only this PE's ports, so the remote ports are empty.
  std::vector<NicPair> nics_to(int pe) const override;

private:
  /// Contexts share workers, since each worker needs an endpoint and its memory for each peer.
  static constexpr std::size_t max_contexts = 64, max_workers = 4;
  /// Maximum number of requests of one context in flight; at this number, callers wait.
  static constexpr int max_in_flight = 1024;

  /// The state of an operation being posted: it holds the worker's lock, and has room for a
  /// request.
  struct OrderedTurn {
    UcxIssued& issued;
    UcxWorker& worker;
    UcxWorker::Lock lock;
    UcxPeer& peer;
    const char* step;
  };

  void open_context(const std::string& devices);
  void open_worker();
  /// Runs the step. If it throws an Error, stores the message in why_not_ and returns false.
  bool succeeds(const std::function<void()>& step);
  void judge_neighbours(const std::vector<PeerLocation>& peers);
  UcxWorker& worker(std::size_t index);
  UcxIssued& issued(int context);
  OrderedTurn begin(int context, int pe, const char* step);
  /// Throws if the peer or an earlier operation has failed.
  void check(OrderedTurn& turn);
  /// Waits until at most half of max_in_flight requests are in flight.
  void make_room(OrderedTurn& turn);
  /// A failed peer among those with operations in flight; nullptr if there is none.
  static const UcxPeer* failed_peer(const UcxIssued& issued);
  [[noreturn]] void fail(UcxWorker::Lock& lock, const UcxPeer& peer, ucs_status_t status,
                         const char* step);
  UcxWait about(int pe, const char* step) const;
  /// Waits for the result of a UCX call: nullptr, an error, or a request, which the caller must
  /// free.
  void finish(UcxWorker::Lock& lock, UcxWorker& worker, const UcxPeer& peer, void* request,
              const UcxWait& wait);
  /// The same, and frees the request.
  void finish(OrderedTurn& turn, void* request);
  /// Counts a new request, and returns parameters with a callback that counts its end. leave() must
  /// follow.
  static ucp_request_param_t reported_to(UcxIssued& issued);
  /// Handles the result of a call with reported_to(): counts the end if the operation is already
  /// complete, and throws if it failed.
  void leave(OrderedTurn& turn, void* request);
  void put_now(OrderedTurn& turn, const RemoteAddress& target, const void* source,
               std::size_t size_bytes, bool blocking);
  UcxOperands& operands(UcxIssued& issued);
  std::uint64_t fetch(OrderedTurn& turn, const RemoteAddress& target, const AtomicRequest& request);
  /// Fetching AND, OR and XOR, emulated by compare-and-swap.
  std::uint64_t fetch_bits(OrderedTurn& turn, const RemoteAddress& target,
                           const AtomicRequest& request);
  void post(OrderedTurn& turn, const RemoteAddress& target, const AtomicRequest& request);
  void fence_now(UcxIssued& issued);
  void flush(OrderedTurn& turn, const UcxWait& wait);

  static void count_end(UcxIssued& issued, ucs_status_t status);
  static void on_done(void* request, ucs_status_t status, void* issued);
  static void on_atomic_done(void* request, ucs_status_t status, void* operands);

  int pe_, n_pes_;
  std::string host_name_;
  UcxSettings settings_;
  JobHealth nobody_;
  JobHealth& health_;
  double timeout_s_;
  std::shared_ptr<const UcxApi> api_;
  std::string why_not_; ///< why this PE cannot use UCX; "" if it can
  std::shared_ptr<const UcxContext> context_;
  UcxMemory memory_;
  std::size_t request_bytes_ = 0; ///< size of a request of UCX
  bool atomics_coherent_with_cpu_ = true;
  UcxPresence presence_;
  std::vector<UcxRemote> remotes_; ///< by PE; filled by connect()
  std::array<UcxIssued, max_contexts> issued_;
  mutable std::mutex making_; ///< held while a worker is created
  std::array<std::unique_ptr<UcxWorker>, max_workers> workers_;
  std::array<std::atomic<UcxWorker*>, max_workers> ready_{};
  std::unique_ptr<UcxProgressThread> thread_; // declared last: destroyed before the workers
};

} // namespace shmemctl
