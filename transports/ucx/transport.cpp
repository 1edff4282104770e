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

constexpr std::size_t longest_reason_bytes = 800; // local_info() may have 1 KiB

/// UCX names a port "mlx5_0:1" and a network interface "eth0".
std::string device_name(const HcaPort& nic) {
  std::error_code ignored;
  const bool rdma = std::filesystem::exists("/sys/class/infiniband/" + nic.device, ignored);
  return rdma ? nic.device + ":" + std::to_string(nic.port) : nic.device;
}

/// What PEs tell each other in connect(): a line of host, presence and three letters, and then the
/// worker's address.
struct Introduction {
  UcxRemote remote;
  bool atomics_meet_cpu = true;
};

std::string to_text(const Introduction& mine) {
  return mine.remote.host + "\t" + mine.remote.presence + "\t" +
         (mine.atomics_meet_cpu ? "c" : "d") + (mine.remote.in_memory ? "m" : "n") +
         (mine.remote.handles_errors ? "e" : "n") + "\n" + mine.remote.address;
}

Introduction parse_introduction(const std::string& text) {
  const std::size_t end = text.find('\n');
  const std::vector<std::string> parts = split(text.substr(0, end), '\t');
  if (end == std::string::npos || parts.size() != 3 || parts[2].size() != 3)
    return {};
  Introduction peer;
  peer.remote = {parts[0], text.substr(end + 1), parts[1], parts[2][1] == 'm', parts[2][2] == 'e'};
  peer.atomics_meet_cpu = parts[2][0] == 'c';
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
  // Too low a limit of open files, with which UCX may end the process, is a fault of this host's
  // settings and ends the job. All else is a reason why UCX reaches nobody.
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
  workers_[0].reset();
  context_ = std::make_shared<const UcxContext>(api_, settings_, n_pes_, devices);
  memory_.use(context_);
  request_bytes_ = context_->request_bytes();
}

void UcxTransport::open_worker() {
  workers_[0] = std::make_unique<UcxWorker>(context_, memory_, n_pes_);
  ready_[0].store(workers_[0].get(), std::memory_order_release);
  atomics_meet_cpu_ = all_memory(parse_atomics(workers_[0]->printed()));
}

std::string UcxTransport::local_info() {
  if (!why_not_.empty())
    return "!" + why_not_.substr(0, longest_reason_bytes);
  return api_->version;
}

Reach UcxTransport::reach(const PeerPlace&, const PeerPlace& peer) const {
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

void UcxTransport::connect(const std::vector<PeerPlace>& peers, Exchange& exchange,
                           const Deadline& deadline) {
  std::string mine;
  if (why_not_.empty()) {
    const UcxWorker::Lock lock = workers_[0]->lock();
    mine = to_text(Introduction{{host_name_, workers_[0]->address(), presence_.name(),
                                 context_->has_shared_memory(), context_->may_handle_errors()},
                                atomics_meet_cpu_});
  }
  const std::vector<std::string> all = exchange.allgather(mine);
  for (std::size_t pe = 0; pe < remotes_.size() && pe < all.size(); ++pe) {
    Introduction peer = parse_introduction(all[pe]);
    atomics_meet_cpu_ = atomics_meet_cpu_ && peer.atomics_meet_cpu;
    remotes_[pe] = std::move(peer.remote);
  }
  judge_neighbours(peers);
  if (!why_not_.empty())
    return;
  thread_ = std::make_unique<UcxProgressThread>();
  thread_->add(*workers_[0]);
  constexpr const char* step = "connect to";
  for (const PeerPlace& peer : peers)
    begin(0, peer.pe, step);
  // A flush ends once the connection stands, so that what is wrong with it is found here.
  for (const PeerPlace& peer : peers) {
    Turn turn = begin(0, peer.pe, step);
    flush(turn, {health_, deadline, step, peer.pe});
  }
}

/// Both ends of a connection have to come to the same result.
void UcxTransport::judge_neighbours(const std::vector<PeerPlace>& peers) {
  const UcxRemote mine = remotes_[static_cast<std::size_t>(pe_)];
  const auto me = std::find_if(peers.begin(), peers.end(),
                               [this](const PeerPlace& peer) { return peer.pe == pe_; });
  for (const PeerPlace& peer : peers) {
    UcxRemote& remote = remotes_[static_cast<std::size_t>(peer.pe)];
    const bool same_machine = me != peers.end() && peer.machine_id == me->machine_id;
    remote.in_memory = remote.in_memory && mine.in_memory && same_machine;
    // UCX's shared memory is not among the transports that look after their peers: UCX would
    // choose a slower one that does.
    remote.handles_errors = remote.handles_errors && mine.handles_errors && !remote.in_memory;
    // A name that is not seen now, though all are there, lies in another network namespace.
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

std::unique_ptr<Transport> make_ucx_transport(const TransportSetup& setup,
                                              const UcxSettings& settings) {
  return std::make_unique<UcxTransport>(setup, settings);
}

bool built_with_ucx() {
  return true;
}

} // namespace shmemctl

#endif
