#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include <sys/statvfs.h>

#include "src/base/error.h"
#include "src/base/process.h"
#include "src/base/units.h"
#include "transports/ucx/probe.h"
#include "transports/ucx/worker.h"

namespace shmemctl {

namespace {

constexpr auto closing_time = std::chrono::seconds(1);

void on_peer_error(void* peer, ucp_ep_h, ucs_status_t status) {
  auto& failed = *static_cast<UcxPeer*>(peer);
  if (failed.failure == UCS_OK)
    failed.failure = status;
}

/// The fix for a worker that cannot be created. A worker's first buffers are in /dev/shm, whatever
/// memory the symmetric heap uses; if there is too little room, UCX reports "out of memory".
std::string worker_fix(ucs_status_t status) {
  struct statvfs system {};
  constexpr std::uint64_t enough_bytes = std::uint64_t{8} << 20;
  if (::statvfs("/dev/shm", &system) == 0) {
    const std::uint64_t free_bytes = std::uint64_t{system.f_bavail} * system.f_frsize;
    if (system.f_blocks > 0 && free_bytes < enough_bytes)
      return "delete files that were left in /dev/shm, where " + format_size_bytes(free_bytes) +
             " of " + format_size_bytes(std::uint64_t{system.f_blocks} * system.f_frsize) +
             " are free and UCX keeps buffers, or enlarge it (mount -o "
             "remount,size=50% /dev/shm; docker run --shm-size=16g)";
  }
  return ucx_fix(status);
}

Error not_connected(const UcxApi& api, int pe, ucs_status_t status) {
  const std::string logged = UcxLog::take_error();
  return {ExitCode::unavailable, "PE " + std::to_string(pe), "connect by UCX",
          api.status_text(status) + (logged.empty() ? "" : " (" + logged + ")"), ucx_fix(status)};
}

} // namespace

UcxWorker::UcxWorker(std::shared_ptr<const UcxContext> context, const UcxMemory& memory, int n_pes)
    : context_(std::move(context)), memory_(memory), peers_(static_cast<std::size_t>(n_pes)) {
  context_->require_files_of_worker();
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED; // under the lock
  // With some settings (UCX_MEM_MMAP_HOOK_MODE=none), UCX starts its thread only here.
  const SignalsBlocked blocked(SignalsBlocked::But::faults);
  ucs_status_t status = api().worker_create(context_->get(), &params, &worker_);
  if (status == UCS_OK) {
    status = api().worker_get_efd(worker_, &event_fd_);
    if (status != UCS_OK)
      api().worker_destroy(worker_);
  }
  if (status != UCS_OK) {
    const std::string logged = UcxLog::take_error();
    throw Error(ExitCode::unavailable, "UCX", "create a worker",
                api().status_text(status) + (logged.empty() ? "" : " (" + logged + ")"),
                worker_fix(status));
  }
}

UcxWorker::~UcxWorker() {
  const Lock held = lock();
  close_endpoints();
  if (unfinished_ > 0) {
    abandon();
    return;
  }
  for (const auto& peer : peers_)
    if (peer)
      for (UcxPeer::Keys& keys : peer->keys)
        old_keys_.insert(old_keys_.end(), keys.unpacked.begin(), keys.unpacked.end());
  for (const ucp_rkey_h key : old_keys_)
    if (key)
      api().rkey_destroy(key);
  api().worker_destroy(worker_);
}

/// Leaks the worker. UCX ends the process if a worker is destroyed that has requests to a peer that
/// does not respond, and without UCX's error handling they cannot be cancelled. The job has failed,
/// so the process ends soon.
void UcxWorker::abandon() {
  for (std::unique_ptr<UcxPeer>& peer : peers_)
    static_cast<void>(peer.release());
  static_cast<void>(std::make_unique<std::shared_ptr<const UcxContext>>(context_).release());
} // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): meant

void UcxWorker::wait_briefly(std::vector<Closing>& all, bool while_well) {
  const Deadline deadline = Deadline::after(closing_time);
  for (Closing& each : all) {
    if (!UCS_PTR_IS_PTR(each.request)) {
      each.complete = each.request == nullptr;
      continue;
    }
    ucs_status_t status = UCS_INPROGRESS;
    while ((status = api().request_check_status(each.request)) == UCS_INPROGRESS &&
           !(while_well && each.peer->failure != UCS_OK) && !deadline.passed())
      if (progress() == 0)
        std::this_thread::yield();
    each.complete = status == UCS_OK;
    api().request_free(each.request);
  }
}

void UcxWorker::close_endpoints() {
  std::vector<Closing> all;
  const ucp_request_param_t plainly{};
  for (const auto& peer : peers_)
    if (peer && peer->endpoint)
      all.push_back({peer.get(), peer->failure == UCS_OK
                                     ? api().ep_flush_nbx(peer->endpoint, &plainly)
                                     : UCS_STATUS_PTR(peer->failure)});
  wait_briefly(all, true);
  for (Closing& each : all) {
    ucp_request_param_t how{};
    if (!each.complete) {
      if (!each.peer->reports_errors) {
        each.request = nullptr; // UCX cannot close it by force; the worker destroys the endpoint
        continue;
      }
      how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }
    each.request = api().ep_close_nbx(each.peer->endpoint, &how);
  }
  wait_briefly(all, false);
}

UcxWorker::Lock UcxWorker::lock() {
  Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    contenders_.fetch_add(1, std::memory_order_relaxed);
    lock.lock();
    contenders_.fetch_sub(1, std::memory_order_relaxed);
  }
  return lock;
}

std::string UcxWorker::address() {
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
  const ucs_status_t status = api().worker_query(worker_, &attributes);
  if (status != UCS_OK)
    throw Error(ExitCode::unavailable, "UCX", "query the worker's address",
                api().status_text(status), ucx_fix(status));
  std::string text(reinterpret_cast<const char*>(attributes.address), attributes.address_length);
  api().worker_release_address(worker_, attributes.address);
  return text;
}

std::string UcxWorker::printed() {
  return print_to_text([this](FILE* file) { api().worker_print_info(worker_, file); });
}

UcxPeer& UcxWorker::peer(int pe, const UcxRemote& remote) {
  std::unique_ptr<UcxPeer>& slot = peers_[static_cast<std::size_t>(pe)];
  if (slot && slot->endpoint)
    return *slot;
  slot = std::make_unique<UcxPeer>();
  slot->pe = pe;
  UcxLog::take_error();
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(remote.address.data());
  params.err_handler = {on_peer_error, slot.get()};
  ucs_status_t status = UCS_OK;
  for (const bool reports : {true, false}) {
    if (reports && !remote.handles_errors)
      continue;
    params.err_mode = reports ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    slot->reports_errors = reports;
    status = api().ep_create(worker_, &params, &slot->endpoint);
    if (status == UCS_OK)
      break;
    slot->endpoint = nullptr;
  }
  if (status != UCS_OK)
    throw not_connected(api(), pe, status);
  describe(*slot);
  if (!slot->reports_errors)
    slot->presence = remote.presence;
  return *slot;
}

void UcxWorker::watch_peer(int pe) {
  UcxPeer* peer = pe < 0 ? nullptr : known_peer(pe);
  if (peer && !peer->presence.empty() && !UcxPresence::is_there(peer->presence))
    on_peer_error(peer, peer->endpoint, UCS_ERR_CONNECTION_RESET);
}

void UcxWorker::describe(UcxPeer& peer) {
  peer.lanes =
      parse_lanes(print_to_text([&](FILE* file) { api().ep_print_info(peer.endpoint, file); }));
  peer.in_memory = some_memory(peer.lanes);
  if (std::optional<HcaPort> port = only_port(peer.lanes))
    peer.traffic.nic = std::move(*port);
}

void UcxWorker::renew_keys(UcxPeer& peer, int region, UcxPeer::Keys& keys) {
  keys.version = memory_.version();
  const UcxMemory::Pieces now = memory_.pieces(region, peer.pe);
  if (now == keys.pieces)
    return;
  std::vector<ucp_rkey_h> unpacked(now ? now->size() : 0);
  for (std::size_t at = 0; at < keys.unpacked.size(); ++at)
    if (at < unpacked.size() && (*now)[at] == (*keys.pieces)[at])
      unpacked[at] = keys.unpacked[at];
    else
      old_keys_.push_back(keys.unpacked[at]); // operations with the old key may be in flight
  keys.pieces = now;
  keys.unpacked = std::move(unpacked);
}

UcxTarget UcxWorker::target(UcxPeer& peer, const RemoteAddress& address) {
  UcxPeer::Keys& keys = peer.keys.at(static_cast<std::size_t>(address.region));
  if (keys.version != memory_.version())
    renew_keys(peer, address.region, keys);
  for (std::size_t at = 0; at < keys.unpacked.size(); ++at) {
    const UcxPiece& piece = (*keys.pieces)[at];
    const std::uint64_t inside = address.offset_bytes - piece.offset_bytes;
    if (address.offset_bytes < piece.offset_bytes || inside >= piece.size_bytes)
      continue;
    ucp_rkey_h& key = keys.unpacked[at];
    if (!key) {
      const ucs_status_t status = api().ep_rkey_unpack(peer.endpoint, piece.packed.data(), &key);
      if (status != UCS_OK)
        throw Error(ExitCode::unavailable, "ucx",
                    "read the rkey for the memory of PE " + std::to_string(peer.pe),
                    api().status_text(status), ucx_fix(status));
    }
    return {piece.address + inside, key, piece.size_bytes - inside};
  }
  throw Error(ExitCode::unavailable, "ucx", "translate an address",
              "no rkey from PE " + std::to_string(peer.pe) + " for offset " +
                  std::to_string(address.offset_bytes) + " of region " +
                  std::to_string(address.region),
              "report this as a bug in shmemctl, with the command line");
}

void UcxWorker::try_progress() {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock())
    return;
  progress();
  driven_.fetch_add(1, std::memory_order_relaxed);
}

} // namespace shmemctl

#endif
