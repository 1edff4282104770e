#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include <algorithm>

#include "src/base/error.h"
#include "transports/ucx/transport.h"

namespace shmemctl {

namespace {

/// Requests that a wait is about. Those of a wait that was given up are freed as well: UCX lets go
/// of them when it is done with them.
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

/// Counts a request as unfinished, also behind a wait that was given up, unless its endpoint can be
/// closed by force.
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

UcxTransport::Turn UcxTransport::begin(int context, int pe, const char* step) {
  UcxIssued& issued = this->issued(context);
  UcxWorker& worker = *issued.worker;
  UcxWorker::Lock lock = worker.lock();
  UcxPeer& peer = worker.peer(pe, remotes_[static_cast<std::size_t>(pe)]);
  Turn turn{issued, worker, std::move(lock), peer, step};
  check(turn);
  if ((issued.marks[static_cast<std::size_t>(pe)] & UcxIssued::fenced) != 0)
    flush(turn, about(pe, step));
  if (issued.under_way >= most_under_way)
    make_room(turn);
  return turn;
}

void UcxTransport::check(Turn& turn) {
  if (turn.peer.failure != UCS_OK)
    fail(turn.lock, turn.peer, turn.peer.failure, turn.step);
  if (turn.issued.failure == UCS_OK)
    return;
  const UcxPeer* failed = failed_peer(turn.issued);
  fail(turn.lock, failed ? *failed : turn.peer, turn.issued.failure, turn.step);
}

void UcxTransport::make_room(Turn& turn) {
  const UcxPeer* failed = nullptr;
  turn.worker.wait(turn.lock, about(turn.peer.pe, turn.step), [&] {
    failed = turn.peer.failure != UCS_OK ? &turn.peer : failed_peer(turn.issued);
    return failed || turn.issued.under_way <= most_under_way / 2;
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
  where.host = remotes_[static_cast<std::size_t>(pe)].host;
  where.pe = pe;
  where.device = to_text(peer.lanes);
  {
    const UcxUnlocked unlocked(lock);
    health_.await_cause(pe);
  }
  throw Error(ExitCode::unavailable, "ucx", step, api_->status_text(status),
              "check the output of PE " + std::to_string(pe) + "; " + ucx_fix(status), where);
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

void UcxTransport::finish(Turn& turn, void* request) {
  if (!request)
    return;
  const Requests owned(*api_, {request});
  const Counted counted(turn.worker, turn.peer, request);
  finish(turn.lock, turn.worker, turn.peer, request, about(turn.peer.pe, turn.step));
}

void UcxTransport::leave(Turn& turn, void* request) {
  if (UCS_PTR_IS_PTR(request))
    return; // its callback was told, or will be
  --turn.issued.under_way;
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
  --issued.under_way;
  issued.worker->end_request();
  if (status != UCS_OK && issued.failure == UCS_OK)
    issued.failure = status;
}

void UcxTransport::put_now(Turn& turn, const RemoteAddress& target, const void* source,
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
  ++issued.under_way;
  issued.worker->begin_request();
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = on_done;
  how.user_data = &issued;
  return how;
}

void UcxTransport::put(int context, const RemoteAddress& target, const void* source,
                       std::size_t size_bytes, bool blocking) {
  Turn turn = begin(context, target.pe, "put to");
  put_now(turn, target, source, size_bytes, blocking);
}

void UcxTransport::get(int context, void* target, const RemoteAddress& source,
                       std::size_t size_bytes, bool blocking) {
  Turn turn = begin(context, source.pe, "get from");
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
  Turn turn = begin(context, signal.pe, "put with signal to");
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
    // Lanes do not wait for each other.
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

void UcxTransport::flush(Turn& turn, const UcxWait& wait) {
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
  if (issued.under_way > 0)
    worker.wait(lock, about(last.pe, step),
                [&] { return issued.under_way == 0 || failed_peer(issued); });
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

} // namespace shmemctl

#endif
