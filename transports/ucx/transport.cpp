#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include <algorithm>
#include <filesystem>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "transports/ucx/transport.h"

namespace shmemctl {

namespace {

constexpr std::size_t longest_reason_bytes = 800; // local_info() is limited to 1 KiB

/// UCX names a port "mlx5_0:1" and a network interface "eth0".
std::string device_name(const HcaPort& nic) {
  std::error_code ignored;
  const bool rdma = std::filesystem::exists("/sys/class/infiniband/" + nic.device, ignored);
  return rdma ? nic.device + ":" + std::to_string(nic.port) : nic.device;
}

/// The data that PEs exchange in connect(). Its text is a line of host, presence and three letters,
/// followed by the worker's address.
struct Introduction {
  UcxRemote remote;
  bool atomics_coherent_with_cpu = true;
};

std::string to_text(const Introduction& local) {
  return local.remote.host + "\t" + local.remote.presence + "\t" +
         (local.atomics_coherent_with_cpu ? "c" : "d") + (local.remote.in_memory ? "m" : "n") +
         (local.remote.handles_errors ? "e" : "n") + "\n" + local.remote.address;
}

Introduction parse_introduction(const std::string& text) {
  const std::size_t end = text.find('\n');
  const std::vector<std::string> parts = split(text.substr(0, end), '\t');
  if (end == std::string::npos || parts.size() != 3 || parts[2].size() != 3)
    return {};
  Introduction peer;
  peer.remote = {parts[0], text.substr(end + 1), parts[1], parts[2][1] == 'm', parts[2][2] == 'e'};
  peer.atomics_coherent_with_cpu = parts[2][0] == 'c';
  return peer;
}

} // namespace

UcxTransport::UcxTransport(const TransportSetup& setup, UcxSettings settings)
    : pe_(setup.pe), n_pes_(setup.n_pes), host_name_(setup.host_name),
      settings_(std::move(settings)), health_(setup.health ? *setup.health : nobody_),
      timeout_s_(setup.timeout_s), remotes_(static_cast<std::size_t>(setup.n_pes)) {
  for (UcxIssued& issued : issued_)
    issued.marks.resize(static_cast<std::size_t>(n_pes_));
  api_ = open_ucx(setup.options->text("UCX_LIBRARY"), why_not_);
  if (!api_)
    return;
  // If the limit of open files is too low, UCX may end the process; this is an error of the host's
  // settings, which ends the job. With any other problem, UCX just reaches no PE.
  UcxContext::require_files();
  if (!succeeds([this] { open_context({}); }))
    return;
  context_->require_files_of_worker();
  succeeds([this] { open_worker(); });
}

UcxTransport::~UcxTransport() = default;

bool UcxTransport::succeeds(const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const Error& error) {
    why_not_ = error.message();
    return false;
  }
}

void UcxTransport::open_context(const std::string& devices) {
  ready_[0].store(nullptr, std::memory_order_release);
  workers_[0].reset();
  context_ = std::make_shared<const UcxContext>(api_, settings_, n_pes_, devices);
  memory_.use(context_);
  request_bytes_ = context_->request_bytes();
}

void UcxTransport::open_worker() {
  workers_[0] = std::make_unique<UcxWorker>(context_, memory_, n_pes_);
  ready_[0].store(workers_[0].get(), std::memory_order_release);
  atomics_coherent_with_cpu_ = all_memory(parse_atomics(workers_[0]->printed()));
}

std::string UcxTransport::local_info() {
  if (!why_not_.empty())
    return "!" + why_not_.substr(0, longest_reason_bytes);
  return api_->version;
}

Reach UcxTransport::reach(const PeerLocation&, const PeerLocation& peer) const {
  if (!why_not_.empty())
    return {0, why_not_};
  if (peer.transport_info.empty() || peer.transport_info[0] == '!')
    return {0,
            "PE " + std::to_string(peer.pe) + " cannot use it: " +
                peer.transport_info.substr(std::min<std::size_t>(1, peer.transport_info.size()))};
  return {can_put | can_get | can_atomics | can_put_signal, "UCX " + api_->version};
}

void UcxTransport::use_nics(const std::vector<HcaPort>& nics) {
  if (!why_not_.empty())
    return;
  std::vector<std::string> names;
  for (const HcaPort& nic : nics)
    names.push_back(device_name(nic));
  UcxContext::require_files();
  open_context(join(names, ","));
  open_worker();
}

void UcxTransport::connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
                           const Deadline& deadline) {
  std::string local;
  if (why_not_.empty()) {
    const UcxWorker::Lock lock = workers_[0]->lock();
    local = to_text(Introduction{{host_name_, workers_[0]->address(), presence_.name(),
                                  context_->has_shared_memory(), context_->may_handle_errors()},
                                 atomics_coherent_with_cpu_});
  }
  const std::vector<std::string> all = exchange.allgather(local);
  for (std::size_t pe = 0; pe < remotes_.size() && pe < all.size(); ++pe) {
    Introduction peer = parse_introduction(all[pe]);
    atomics_coherent_with_cpu_ = atomics_coherent_with_cpu_ && peer.atomics_coherent_with_cpu;
    remotes_[pe] = std::move(peer.remote);
  }
  judge_neighbours(peers);
  if (!why_not_.empty())
    return;
  thread_ = std::make_unique<UcxProgressThread>();
  thread_->add(*workers_[0]);
  constexpr const char* step = "connect";
  for (const PeerLocation& peer : peers)
    begin(0, peer.pe, step);
  // A flush completes when the connection is established, so connection errors are detected here.
  for (const PeerLocation& peer : peers) {
    OrderedTurn turn = begin(0, peer.pe, step);
    flush(turn, {health_, deadline, step, peer.pe});
  }
}

/// Decides for each peer whether UCX reaches it through shared memory, and whether UCX's error
/// handling or UcxPresence monitors it. Both ends of a connection must get the same result.
void UcxTransport::judge_neighbours(const std::vector<PeerLocation>& peers) {
  const UcxRemote local = remotes_[static_cast<std::size_t>(pe_)];
  const auto me = std::find_if(peers.begin(), peers.end(),
                               [this](const PeerLocation& peer) { return peer.pe == pe_; });
  for (const PeerLocation& peer : peers) {
    UcxRemote& remote = remotes_[static_cast<std::size_t>(peer.pe)];
    const bool same_machine = me != peers.end() && peer.machine_id == me->machine_id;
    remote.in_memory = remote.in_memory && local.in_memory && same_machine;
    // UCX's shared memory transports have no peer error handling. If it were requested, UCX would
    // choose a slower transport.
    remote.handles_errors = remote.handles_errors && local.handles_errors && !remote.in_memory;
    // All PEs are alive now, so a name that is not visible belongs to another network namespace.
    if (!same_machine || !UcxPresence::is_there(remote.presence))
      remote.presence.clear();
  }
}

UcxWorker& UcxTransport::worker(std::size_t index) {
  if (UcxWorker* ready = ready_[index].load(std::memory_order_acquire))
    return *ready;
  const std::lock_guard lock(making_);
  if (!workers_[index]) {
    workers_[index] = std::make_unique<UcxWorker>(context_, memory_, n_pes_);
    thread_->add(*workers_[index]);
    ready_[index].store(workers_[index].get(), std::memory_order_release);
  }
  return *workers_[index];
}

std::string UcxTransport::set_region(const RegionView& region) {
  return why_not_.empty() ? memory_.set_region(region) : std::string();
}

void UcxTransport::set_keys(int region, const std::vector<std::string>& keys) {
  memory_.set_keys(region, keys);
}

void UcxTransport::add_local(void* base, std::size_t size_bytes) {
  if (why_not_.empty())
    memory_.add_local(base, size_bytes);
}

void UcxTransport::remove_local(void* base) {
  memory_.remove_local(base);
}

void UcxTransport::progress() {
  for (const std::atomic<UcxWorker*>& ready : ready_)
    if (UcxWorker* worker = ready.load(std::memory_order_acquire))
      worker->try_progress();
}

std::vector<NicTraffic> UcxTransport::traffic() const {
  std::vector<NicTraffic> all;
  for (const std::atomic<UcxWorker*>& ready : ready_) {
    UcxWorker* worker = ready.load(std::memory_order_acquire);
    if (!worker)
      continue;
    const UcxWorker::Lock lock = worker->lock();
    for (int pe = 0; pe < n_pes_; ++pe) {
      const UcxPeer* peer = worker->known_peer(pe);
      if (!peer || peer->traffic.nic.device.empty())
        continue;
      const auto same = [&](const NicTraffic& known) { return known.nic == peer->traffic.nic; };
      auto known = std::find_if(all.begin(), all.end(), same);
      if (known == all.end())
        known = all.insert(all.end(), {peer->traffic.nic, 0, 0, 0});
      known->put_bytes += peer->traffic.put_bytes;
      known->get_bytes += peer->traffic.get_bytes;
      known->operations += peer->traffic.operations;
    }
  }
  return all;
}

std::string UcxTransport::connection(int pe) const {
  if (!workers_[0] || pe < 0 || pe >= n_pes_)
    return {};
  const UcxWorker::Lock lock = workers_[0]->lock();
  const UcxPeer* peer = workers_[0]->known_peer(pe);
  return peer ? to_text(peer->lanes) : std::string();
}

std::vector<NicPair> UcxTransport::nics_to(int pe) const {
  std::vector<NicPair> nics;
  if (!workers_[0] || pe < 0 || pe >= n_pes_ || pe == pe_)
    return nics;
  const UcxWorker::Lock lock = workers_[0]->lock();
  if (const UcxPeer* const peer = workers_[0]->known_peer(pe))
    for (const HcaPort& port : ports_of(peer->lanes))
      nics.push_back({port, {}});
  return nics;
}

std::unique_ptr<Transport> make_ucx_transport(const TransportSetup& setup,
                                              const UcxSettings& settings) {
  return std::make_unique<UcxTransport>(setup, settings);
}

namespace {

/// Requests of a wait, freed on destruction. Requests that are still in flight, after a wait that
/// failed, may be freed too: UCX releases them when it no longer needs them.
class Requests {
public:
  Requests(const UcxApi& api, std::vector<void*> requests)
      : api_(api), requests_(std::move(requests)) {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  ~Requests() {
    for (void* const request : requests_)
      if (UCS_PTR_IS_PTR(request))
        api_.request_free(request);
  }

private:
  const UcxApi& api_;
  std::vector<void*> requests_;
};

/// Counts a request as unfinished while the object exists. A request that is still in flight at the
/// end, after a wait that failed, stays counted unless its endpoint can be closed by force.
class Counted {
public:
  Counted(UcxWorker& worker, const UcxPeer& peer, void* request)
      : worker_(worker), peer_(peer), request_(request) {
    worker_.begin_request();
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    if (!UCS_PTR_IS_PTR(request_) || peer_.reports_errors ||
        worker_.api().request_check_status(request_) != UCS_INPROGRESS)
      worker_.end_request();
  }

private:
  UcxWorker& worker_;
  const UcxPeer& peer_;
  void* request_;
};

} // namespace

UcxIssued& UcxTransport::issued(int context) {
  UcxIssued& issued = issued_.at(static_cast<std::size_t>(context));
  if (!issued.worker)
    issued.worker =
        &worker(context == 0 ? 0 : 1 + (static_cast<std::size_t>(context) - 1) % (max_workers - 1));
  return issued;
}

UcxWait UcxTransport::about(int pe, const char* step) const {
  return {health_, Deadline::after(std::chrono::duration<double>(timeout_s_)), step, pe};
}

UcxTransport::OrderedTurn UcxTransport::begin(int context, int pe, const char* step) {
  UcxIssued& issued = this->issued(context);
  UcxWorker& worker = *issued.worker;
  UcxWorker::Lock lock = worker.lock();
  UcxPeer& peer = worker.peer(pe, remotes_[static_cast<std::size_t>(pe)]);
  OrderedTurn turn{issued, worker, std::move(lock), peer, step};
  check(turn);
  if ((issued.marks[static_cast<std::size_t>(pe)] & UcxIssued::fenced) != 0)
    flush(turn, about(pe, step));
  if (issued.in_flight >= max_in_flight)
    make_room(turn);
  return turn;
}

void UcxTransport::check(OrderedTurn& turn) {
  if (turn.peer.failure != UCS_OK)
    fail(turn.lock, turn.peer, turn.peer.failure, turn.step);
  if (turn.issued.failure == UCS_OK)
    return;
  const UcxPeer* failed = failed_peer(turn.issued);
  fail(turn.lock, failed ? *failed : turn.peer, turn.issued.failure, turn.step);
}

void UcxTransport::make_room(OrderedTurn& turn) {
  const UcxPeer* failed = nullptr;
  turn.worker.wait(turn.lock, about(turn.peer.pe, turn.step), [&] {
    failed = turn.peer.failure != UCS_OK ? &turn.peer : failed_peer(turn.issued);
    return failed || turn.issued.in_flight <= max_in_flight / 2;
  });
  if (failed)
    fail(turn.lock, *failed, failed->failure, turn.step);
  check(turn);
}

const UcxPeer* UcxTransport::failed_peer(const UcxIssued& issued) {
  for (const int pe : issued.unfinished_pes)
    if (const UcxPeer* peer = issued.worker->known_peer(pe); peer->failure != UCS_OK)
      return peer;
  return nullptr;
}

void UcxTransport::fail(UcxWorker::Lock& lock, const UcxPeer& peer, ucs_status_t status,
                        const char* step) {
  const int pe = peer.pe;
  Where where;
  where.host = host_name_;
  where.pe = pe_;
  where.device = to_text(peer.lanes);
  {
    const UcxUnlocked unlocked(lock);
    health_.await_cause(pe);
  }
  const std::string name = "PE " + std::to_string(pe);
  const std::string& host = remotes_[static_cast<std::size_t>(pe)].host;
  throw Error(ExitCode::unavailable, "ucx to " + name + " on " + host, step,
              api_->status_text(status), "check the output of " + name + "; " + ucx_fix(status),
              where);
}

void UcxTransport::finish(UcxWorker::Lock& lock, UcxWorker& worker, const UcxPeer& peer,
                          void* request, const UcxWait& wait) {
  if (UCS_PTR_IS_ERR(request))
    fail(lock, peer, UCS_PTR_STATUS(request), wait.step);
  ucs_status_t status = UCS_OK;
  if (request)
    worker.wait(lock, wait, [&] {
      status = api_->request_check_status(request);
      return status != UCS_INPROGRESS || peer.failure != UCS_OK;
    });
  if (status == UCS_INPROGRESS)
    status = peer.failure;
  if (status != UCS_OK)
    fail(lock, peer, status, wait.step);
}

void UcxTransport::finish(OrderedTurn& turn, void* request) {
  if (!request)
    return;
  const Requests owned(*api_, {request});
  const Counted counted(turn.worker, turn.peer, request);
  finish(turn.lock, turn.worker, turn.peer, request, about(turn.peer.pe, turn.step));
}

void UcxTransport::leave(OrderedTurn& turn, void* request) {
  if (UCS_PTR_IS_PTR(request))
    return; // the request's callback counts the end
  --turn.issued.in_flight;
  turn.worker.end_request();
  if (UCS_PTR_IS_ERR(request))
    fail(turn.lock, turn.peer, UCS_PTR_STATUS(request), turn.step);
}

void UcxTransport::on_done(void* request, ucs_status_t status, void* user) {
  auto& issued = *static_cast<UcxIssued*>(user);
  count_end(issued, status);
  issued.worker->api().request_free(request);
}

void UcxTransport::count_end(UcxIssued& issued, ucs_status_t status) {
  --issued.in_flight;
  issued.worker->end_request();
  if (status != UCS_OK && issued.failure == UCS_OK)
    issued.failure = status;
}

void UcxTransport::put_now(OrderedTurn& turn, const RemoteAddress& target, const void* source,
                           std::size_t size_bytes, bool blocking) {
  const auto* from = static_cast<const std::byte*>(source);
  RemoteAddress to = target;
  turn.issued.mark(target.pe);
  turn.peer.traffic.put_bytes += size_bytes;
  ++turn.peer.traffic.operations;
  while (size_bytes > 0) {
    const UcxTarget piece = turn.worker.target(turn.peer, to);
    const std::size_t now = std::min<std::uint64_t>(size_bytes, piece.size_bytes);
    ucp_request_param_t how{};
    if (blocking) {
      finish(turn, api_->put_nbx(turn.peer.endpoint, from, now, piece.address, piece.key, &how));
    } else {
      how = reported_to(turn.issued);
      leave(turn, api_->put_nbx(turn.peer.endpoint, from, now, piece.address, piece.key, &how));
    }
    from += now;
    to.offset_bytes += now;
    size_bytes -= now;
  }
}

ucp_request_param_t UcxTransport::reported_to(UcxIssued& issued) {
  ++issued.in_flight;
  issued.worker->begin_request();
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = on_done;
  how.user_data = &issued;
  return how;
}

void UcxTransport::put(int context, const RemoteAddress& target, const void* source,
                       std::size_t size_bytes, bool blocking) {
  OrderedTurn turn = begin(context, target.pe, "put");
  put_now(turn, target, source, size_bytes, blocking);
}

void UcxTransport::get(int context, void* target, const RemoteAddress& source,
                       std::size_t size_bytes, bool blocking) {
  OrderedTurn turn = begin(context, source.pe, "get");
  auto* to = static_cast<std::byte*>(target);
  RemoteAddress from = source;
  if (!blocking)
    turn.issued.mark(source.pe);
  turn.peer.traffic.get_bytes += size_bytes;
  ++turn.peer.traffic.operations;
  while (size_bytes > 0) {
    const UcxTarget piece = turn.worker.target(turn.peer, from);
    const std::size_t now = std::min<std::uint64_t>(size_bytes, piece.size_bytes);
    ucp_request_param_t how{};
    if (blocking) {
      finish(turn, api_->get_nbx(turn.peer.endpoint, to, now, piece.address, piece.key, &how));
    } else {
      how = reported_to(turn.issued);
      leave(turn, api_->get_nbx(turn.peer.endpoint, to, now, piece.address, piece.key, &how));
    }
    to += now;
    from.offset_bytes += now;
    size_bytes -= now;
  }
}

void UcxTransport::put_signal(int context, const RemoteAddress& target, const void* source,
                              std::size_t size_bytes, const RemoteAddress& signal,
                              std::uint64_t signal_value, SignalOp op, bool blocking) {
  OrderedTurn turn = begin(context, signal.pe, "put with signal");
  put_now(turn, target, source, size_bytes, blocking);
  if (size_bytes > 0)
    fence_now(turn.issued);
  if ((turn.issued.marks[static_cast<std::size_t>(signal.pe)] & UcxIssued::fenced) != 0)
    flush(turn, about(signal.pe, turn.step));
  post(turn, signal,
       {op == SignalOp::set ? AtomicOp::set : AtomicOp::add, sizeof signal_value, signal_value});
}

void UcxTransport::fence_now(UcxIssued& issued) {
  const ucs_status_t status = api_->worker_fence(issued.worker->get());
  for (const int pe : issued.unfinished_pes) {
    const UcxPeer* peer = issued.worker->known_peer(pe);
    // A fence does not order operations of different lanes, so a flush must follow.
    if (status != UCS_OK || peer->lanes.size() != 1)
      issued.marks[static_cast<std::size_t>(pe)] |= UcxIssued::fenced;
  }
}

void UcxTransport::fence(int context) {
  UcxIssued& issued = issued_.at(static_cast<std::size_t>(context));
  if (!issued.worker)
    return;
  const UcxWorker::Lock lock = issued.worker->lock();
  fence_now(issued);
}

void UcxTransport::flush(OrderedTurn& turn, const UcxWait& wait) {
  const ucp_request_param_t how{};
  void* const request = api_->ep_flush_nbx(turn.peer.endpoint, &how);
  const Requests owned(*api_, {request});
  finish(turn.lock, turn.worker, turn.peer, request, wait);
  turn.issued.marks[static_cast<std::size_t>(turn.peer.pe)] &=
      static_cast<unsigned char>(~UcxIssued::fenced);
}

void UcxTransport::quiet(int context) {
  UcxIssued& issued = issued_.at(static_cast<std::size_t>(context));
  if (!issued.worker || issued.unfinished_pes.empty())
    return;
  constexpr const char* step = "complete operations";
  UcxWorker& worker = *issued.worker;
  UcxWorker::Lock lock = worker.lock();
  std::vector<void*> flushes;
  const ucp_request_param_t how{};
  for (const int pe : issued.unfinished_pes)
    flushes.push_back(api_->ep_flush_nbx(worker.known_peer(pe)->endpoint, &how));
  const Requests owned(*api_, flushes);
  for (std::size_t at = 0; at < flushes.size(); ++at) {
    const int pe = issued.unfinished_pes[at];
    if (flushes[at])
      finish(lock, worker, *worker.known_peer(pe), flushes[at], about(pe, step));
  }
  const UcxPeer& last = *worker.known_peer(issued.unfinished_pes.back());
  if (issued.in_flight > 0)
    worker.wait(lock, about(last.pe, step),
                [&] { return issued.in_flight == 0 || failed_peer(issued); });
  for (const int pe : issued.unfinished_pes) {
    const UcxPeer& peer = *worker.known_peer(pe);
    if (peer.failure != UCS_OK)
      fail(lock, peer, peer.failure, step);
    issued.marks[static_cast<std::size_t>(pe)] = 0;
  }
  if (issued.failure != UCS_OK)
    fail(lock, last, issued.failure, step);
  issued.unfinished_pes.clear();
}

namespace {

ucp_atomic_op_t ucx_operation(AtomicOp op) {
  switch (op) {
  case AtomicOp::fetch:
  case AtomicOp::add:
    return UCP_ATOMIC_OP_ADD;
  case AtomicOp::set:
  case AtomicOp::swap:
    return UCP_ATOMIC_OP_SWAP;
  case AtomicOp::compare_swap:
    return UCP_ATOMIC_OP_CSWAP;
  case AtomicOp::bit_and:
    return UCP_ATOMIC_OP_AND;
  case AtomicOp::bit_or:
    return UCP_ATOMIC_OP_OR;
  case AtomicOp::bit_xor:
    return UCP_ATOMIC_OP_XOR;
  }
  return UCP_ATOMIC_OP_LAST;
}

/// Sets the operands. For a compare-and-swap, UCX compares with the first operand, and takes the
/// value to store from the reply buffer.
void fill(UcxOperands& operands, const AtomicRequest& request) {
  operands.operand = request.op == AtomicOp::fetch          ? 0
                     : request.op == AtomicOp::compare_swap ? request.compare
                                                            : request.operand;
  operands.reply = request.operand;
}

} // namespace

void UcxTransport::on_atomic_done(void* request, ucs_status_t status, void* user) {
  auto& operands = *static_cast<UcxOperands*>(user);
  UcxIssued& issued = *operands.issued;
  issued.spare.push_back(&operands);
  count_end(issued, status);
  if (request != operands.end_of_request())
    issued.worker->api().request_free(request);
}

UcxOperands& UcxTransport::operands(UcxIssued& issued) {
  if (issued.spare.empty()) {
    issued.operands.push_back({&issued});
    return issued.operands.back();
  }
  UcxOperands& taken = *issued.spare.back();
  issued.spare.pop_back();
  return taken;
}

std::uint64_t UcxTransport::fetch(OrderedTurn& turn, const RemoteAddress& target,
                                  const AtomicRequest& request) {
  const UcxTarget place = turn.worker.target(turn.peer, target);
  ++turn.peer.traffic.operations;
  UcxOperands& values = operands(turn.issued);
  fill(values, request);
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
  how.datatype = ucp_dt_make_contig(request.size_bytes);
  how.reply_buffer = &values.reply;
  // If the wait throws, the operands are not reused, since UCX may still write the reply.
  finish(turn, api_->atomic_op_nbx(turn.peer.endpoint, ucx_operation(request.op), &values.operand,
                                   1, place.address, place.key, &how));
  turn.issued.spare.push_back(&values);
  return request.size_bytes == 4 ? static_cast<std::uint32_t>(values.reply) : values.reply;
}

std::uint64_t UcxTransport::fetch_bits(OrderedTurn& turn, const RemoteAddress& target,
                                       const AtomicRequest& request) {
  const auto changed = [&](std::uint64_t value) {
    return request.op == AtomicOp::bit_and  ? value & request.operand
           : request.op == AtomicOp::bit_or ? value | request.operand
                                            : value ^ request.operand;
  };
  std::uint64_t seen = fetch(turn, target, {AtomicOp::fetch, request.size_bytes});
  for (;;) {
    const std::uint64_t old =
        fetch(turn, target, {AtomicOp::compare_swap, request.size_bytes, changed(seen), seen});
    if (old == seen)
      return old;
    seen = old;
  }
}

void UcxTransport::post(OrderedTurn& turn, const RemoteAddress& target,
                        const AtomicRequest& request) {
  const UcxTarget place = turn.worker.target(turn.peer, target);
  ++turn.peer.traffic.operations;
  turn.issued.mark(target.pe);
  UcxOperands& values = operands(turn.issued);
  fill(values, request);
  const ucp_atomic_op_t op = ucx_operation(request.op);
  ucp_request_param_t how = reported_to(turn.issued);
  // Without NO_IMM_CMPL, UCX would not report when it no longer uses the operand.
  how.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  how.cb.send = on_atomic_done;
  how.user_data = &values;
  how.datatype = ucp_dt_make_contig(request.size_bytes);
  if (op == UCP_ATOMIC_OP_SWAP || op == UCP_ATOMIC_OP_CSWAP) {
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER; // UCX requires a reply for these atomics
    how.reply_buffer = &values.reply;
  } else {
    // For these atomics, UCX 1.13 does not set the request's completion, so that of the request's
    // last user remains. UCX calls it if the endpoint fails while the atomic waits to be sent. A
    // request of zeros has no completion.
    values.request.assign(request_bytes_, std::byte{0});
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST;
    how.request = values.end_of_request();
  }
  leave(turn, api_->atomic_op_nbx(turn.peer.endpoint, op, &values.operand, 1, place.address,
                                  place.key, &how));
}

std::uint64_t UcxTransport::atomic(int context, const RemoteAddress& target,
                                   const AtomicRequest& request) {
  OrderedTurn turn = begin(context, target.pe, "perform an atomic operation");
  // In UCX 1.13 as compiled by Debian 12, these atomics ignore the operand over shared memory.
  const bool bits = request.op == AtomicOp::bit_and || request.op == AtomicOp::bit_or ||
                    request.op == AtomicOp::bit_xor;
  if (bits && turn.peer.in_memory)
    return fetch_bits(turn, target, request);
  if (request.op != AtomicOp::set)
    return fetch(turn, target, request);
  post(turn, target, request);
  return 0;
}

void UcxTransport::post_atomic(int context, const RemoteAddress& target,
                               const AtomicRequest& request) {
  if (request.op == AtomicOp::fetch)
    return;
  OrderedTurn turn = begin(context, target.pe, "perform an atomic operation");
  post(turn, target, request);
}

} // namespace shmemctl

#endif
