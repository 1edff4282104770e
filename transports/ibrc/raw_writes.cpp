#include "transports/ibrc/raw_writes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/abi/device_state.h"
#include "src/base/wait.h"
#include "transports/ibrc/failure.h"
#include "transports/ibrc/ibrc_transport.h"
#include "transports/rc/connect.h"
#include "transports/verbs/poll_completions.h"
#include "transports/verbs/status.h"

namespace shmemctl::ibrc {

namespace {

/// Number of the only region that is registered: the caller's memory.
constexpr int raw_region = region::heap;
/// One in this many requests is signalled, so that places in the send queue become free in time.
constexpr std::uint32_t raw_signal_interval = 16;
constexpr const char* raw_step = "an RDMA write";

/// Uses an IbrcTransport of its own to make the connections, but none of that transport's
/// operations: this class posts to the QPs and polls their CQs itself.
class QpWrites final : public RawWrites {
public:
  QpWrites(const TransportSetup& setup, const std::shared_ptr<const verbs::Functions>& functions)
      : transport_(setup, functions, "") {}

  /// Returns why the ports cannot be used, in one clause; "" if they can.
  std::string use(const std::vector<HcaPort>& ports) {
    if (ports.empty())
      return "";
    if (!transport_.unusable_reason().empty())
      return transport_.unusable_reason();
    for (const HcaPort& port : ports) {
      try {
        transport_.use_nics({port});
      } catch (const Error& error) {
        return rc::port_name(port.device, port.port) + ": " + error.system_message();
      }
    }
    transport_.use_nics(ports);
    return "";
  }

  void connect(int peer, std::byte* memory, std::size_t size_bytes, Exchange& exchange,
               const Deadline& deadline) override {
    std::vector<PeerLocation> peers;
    if (peer >= 0) {
      PeerLocation location;
      location.pe = peer;
      peers.push_back(location);
    }
    transport_.connect(peers, exchange, deadline);
    const std::string key = transport_.set_region({raw_region, memory, size_bytes, {}});
    transport_.set_keys(raw_region, exchange.allgather(key));
    if (peer >= 0)
      add_paths(peer, memory);
  }

  std::size_t paths() const override { return paths_.size(); }

  void write(const std::byte* source, std::uint64_t target_offset_bytes, std::size_t size_bytes,
             bool last) override {
    Path& path = paths_[next_];
    next_ = next_ + 1 == paths_.size() ? 0 : next_ + 1;
    const std::uint64_t most = path.endpoint->max_message_bytes;
    for (std::size_t done = 0; done < size_bytes;) {
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes - done, most));
      post(path, source + done, target_offset_bytes + done, piece,
           last && done + piece == size_bytes);
      done += piece;
    }
  }

  void complete() override {
    for (Path& path : paths_)
      if (path.endpoint->unsignalled > 0) // no write was announced as the last one
        post(path, nullptr, 0, 0, true);
    for (Path& path : paths_) {
      const Endpoint& endpoint = *path.endpoint;
      wait(path, [&endpoint] { return endpoint.in_flight() == 0; });
      count_bytes(path);
    }
  }

  std::vector<NicTraffic> traffic() const override { return transport_.traffic(); }

private:
  /// A QP, and the addresses and keys of its requests.
  struct Path {
    Endpoint* endpoint = nullptr;
    std::uint32_t lkey = 0;
    rc::RdmaAddress target; ///< start of the peer's memory
    std::uint32_t size_bytes = 0;
    std::uint64_t posted_bytes = 0, operations = 0; ///< not yet added to the port's counters
  };

  void add_paths(int peer, const std::byte* memory) {
    JobView& job = transport_.view();
    const QpSet& qp_set = transport_.first_qp_set();
    const rc::Registration* local = transport_.local_memory()->find(memory);
    const rc::SegmentKey& remote =
        transport_.remote_memory().segment_of(job, RemoteAddress{peer, raw_region, 0});
    const std::size_t count = qp_set.paths_to(peer);
    for (std::size_t at = 0; at < count; ++at) {
      Endpoint& endpoint = qp_set.endpoint(peer, at);
      Path path;
      path.endpoint = &endpoint;
      path.lkey = local->lkey(endpoint.port);
      path.target = remote.at(0, endpoint.peer_port);
      paths_.push_back(path);
      // QPs of a device share a CQ. After an error, it must hold a completion for each request.
      const int most = job.device_of(*job.nics[endpoint.port]).attributes().max_cqe;
      depth_ =
          std::min(depth_, static_cast<std::uint32_t>(std::max(most / static_cast<int>(count), 1)));
    }
  }

  /// @param size_bytes 0 for a WRITE without data, which completes after all earlier requests
  void post(Path& path, const std::byte* source, std::uint64_t target_offset_bytes,
            std::size_t size_bytes, bool signalled) {
    Endpoint& endpoint = *path.endpoint;
    if (endpoint.in_flight() >= depth_)
      wait(path, [this, &endpoint] { return endpoint.in_flight() < depth_; });
    ibv_sge element;
    element.addr = reinterpret_cast<std::uintptr_t>(source);
    element.length = static_cast<std::uint32_t>(size_bytes);
    element.lkey = path.lkey;
    ibv_send_wr request;
    std::memset(&request, 0, sizeof request);
    request.wr_id = std::uint64_t{endpoint.path} << 32 | endpoint.posted;
    request.sg_list = &element;
    request.num_sge = size_bytes > 0 ? 1 : 0;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = path.target.address + target_offset_bytes;
    request.wr.rdma.rkey = path.target.rkey;
    signalled = signalled || endpoint.unsignalled + 1 >= std::min(raw_signal_interval, depth_);
    if (signalled)
      request.send_flags = IBV_SEND_SIGNALED;
    if (size_bytes > 0 && size_bytes <= endpoint.queue_pair.inline_bytes())
      request.send_flags |= IBV_SEND_INLINE;
    if (size_bytes > 0)
      path.size_bytes = element.length;
    ibv_send_wr* refused = nullptr;
    if (const int error_number = ::ibv_post_send(endpoint.queue_pair.get(), &request, &refused);
        error_number != 0) [[unlikely]]
      throw post_failure(transport_.view(), endpoint, work_of(path), error_number);
    ++endpoint.posted;
    endpoint.unsignalled = signalled ? 0 : endpoint.unsignalled + 1;
    if (size_bytes > 0) {
      path.posted_bytes += size_bytes;
      ++path.operations;
    }
  }

  /// All requests of a measurement have the same size, except for the last piece of a long WRITE.
  static Work work_of(const Path& path) { return {WorkKind::put, -1, path.size_bytes, nullptr}; }

  template <class Done>
  void wait(Path& path, Done&& done) {
    JobView& job = transport_.view();
    Wait waiting(*job.health, job.timeout_s, {raw_step, path.endpoint->pe, true}, wait_backoff);
    while (!done()) {
      if (poll(path.endpoint->queue_pair.get()->send_cq))
        waiting.progressed();
      else if (waiting.pause())
        for (const UsedDevice& used : job.devices)
          used.events->poll();
    }
  }

  /// True if there was a completion.
  bool poll(ibv_cq* queue) {
    std::array<ibv_wc, 16> batch;
    const int count =
        verbs::poll_completions(queue, batch, [this] { return transport_.view().where(); });
    for (int i = 0; i < count; ++i)
      take(batch[static_cast<std::size_t>(i)]);
    return count > 0;
  }

  void take(const ibv_wc& completion) {
    Path& path = paths_[completion.wr_id >> 32];
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]]
      fail(path, completion);
    path.endpoint->retired = static_cast<std::uint32_t>(completion.wr_id) + 1;
  }

  [[noreturn]] void fail(const Path& path, const ibv_wc& completion) {
    JobView& job = transport_.view();
    for (const UsedDevice& used : job.devices)
      used.events->poll();
    const Error failure = completion_failure(job, *path.endpoint, work_of(path), completion);
    // If the peer has ended, the job's first failure says more: await_cause() throws it.
    if (verbs::peer_may_be_gone(completion.status))
      job.health->await_cause(path.endpoint->pe);
    throw failure;
  }

  /// Adds to the port's counters. Not done for each request, since the counters are atomic.
  void count_bytes(Path& path) {
    Nic& nic = *transport_.view().nics[path.endpoint->port];
    nic.put_bytes.fetch_add(path.posted_bytes, std::memory_order_relaxed);
    nic.operations.fetch_add(path.operations, std::memory_order_relaxed);
    path.posted_bytes = path.operations = 0;
  }

  IbrcTransport transport_;
  std::vector<Path> paths_; ///< by the endpoint's path
  std::size_t next_ = 0;
  std::uint32_t depth_ = Endpoint::depth; ///< maximum number of requests in flight on one QP
};

} // namespace

std::unique_ptr<RawWrites> open_raw_writes(const TransportSetup& setup,
                                           const std::shared_ptr<const verbs::Functions>& functions,
                                           const std::vector<HcaPort>& ports, std::string& why) {
  auto writes = std::make_unique<QpWrites>(setup, ports.empty() ? nullptr : functions);
  why = writes->use(ports);
  if (!why.empty())
    return nullptr;
  return writes;
}

std::unique_ptr<RawWrites> open_raw_writes(const TransportSetup& setup,
                                           const std::vector<HcaPort>& ports, std::string& why) {
  std::shared_ptr<const verbs::Functions> functions;
  if (!ports.empty()) {
    const Options defaults({});
    const Options& options = setup.options ? *setup.options : defaults;
    functions = verbs::load_functions(options.text("VERBS_LIBRARY"), why);
    if (!functions) {
      why = "no libibverbs: " + why;
      return nullptr;
    }
  }
  return open_raw_writes(setup, functions, ports, why);
}

} // namespace shmemctl::ibrc
