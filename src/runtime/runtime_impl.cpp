#include "src/runtime/runtime_impl.h"

#include "src/base/log.h"
#include "src/bootstrap/abort_at_end.h"
#include "src/runtime/exchange.h"
#include "src/runtime/fault.h"
#include "src/runtime/numa_choice.h"
#include "src/runtime/transport_choice.h"
#include "src/topo/mapping/request.h"

namespace shmemctl {

namespace {

/// Beside those of the NIC choice, which depends on them as `topo` does.
const std::vector<std::string> used_options = {"BOOTSTRAP",
                                               "BOOTSTRAP_PMI",
                                               "BOOTSTRAP_UID_SOCK_FAMILY",
                                               "BOOTSTRAP_UID_RANK",
                                               "BOOTSTRAP_UID_SIZE",
                                               "INIT_MODE",
                                               "SYMMETRIC_SIZE",
                                               "HEAP_CHUNK",
                                               "HEAP_BACKING",
                                               "HUGE_PAGES",
                                               "CHECK",
                                               "TIMEOUT"};

/// A deadline that has passed before there was a lifeline: nobody knows who is behind, and every PE
/// asks for the end.
Failure without_lifeline(const Error& error, int pe) {
  Failure failure;
  failure.pe = pe;
  failure.message = error.message();
  failure.code = error.code();
  failure.unresponsive = true;
  return failure;
}

} // namespace

bool needs_abort(const std::unique_ptr<Failure>& failure, int pe) {
  if (!failure || !failure->unresponsive)
    return false;
  const bool known_culprit = failure->pe >= 0 && failure->pe != pe;
  return !known_culprit || pe == (failure->pe == 0 ? 1 : 0);
}

Runtime::Impl::Impl(RuntimeRequest the_request)
    : request(std::move(the_request)), options(*request.options), timeout_s(60),
      launcher(launcher_name(request.environment)), phases([this](const std::string& name) {
        if (lifeline)
          lifeline->phase(name);
        if (request.announce)
          request.announce(name);
      }) {}

Runtime::Impl::~Impl() {
  phases.undo_all();
}

void Runtime::Impl::run(const char* name, void (Impl::*enter)(), void (Impl::*undo)()) {
  Phases::Step undo_step;
  if (undo)
    undo_step = [this, undo] { (this->*undo)(); };
  phases.run(
      name,
      [this, name, enter] {
        if (lifeline)
          lifeline->check();
        inject_fault(options, bootstrap ? bootstrap->rank() : -1, name);
        try {
          (this->*enter)();
        } catch (const Error& error) {
          raise(error); // before anything is undone: the lifeline has to stand
        }
      },
      std::move(undo_step));
}

void Runtime::Impl::start() {
  run(phase::options, &Impl::enter_options);
  run(phase::static_data, &Impl::enter_static_data, &Impl::undo_static_data);
  run(phase::bootstrap, &Impl::enter_bootstrap, &Impl::undo_bootstrap);
  run(phase::hosts, &Impl::enter_hosts);
  run(phase::lifeline, &Impl::enter_lifeline, &Impl::undo_lifeline);
  run(phase::placement, &Impl::enter_placement);
  run(phase::devices, &Impl::enter_devices);
  run(phase::heap, &Impl::enter_heap, &Impl::undo_heap);
  run(phase::transports, &Impl::enter_transports, &Impl::undo_transports);
  run(phase::transport_map, &Impl::enter_transport_map);
  run(phase::nics, &Impl::enter_nics);
  run(phase::connections, &Impl::enter_connections);
  if (request.gpu != GpuUse::none)
    run(phase::gpu, &Impl::enter_gpu, &Impl::undo_gpu);
  run(phase::state, &Impl::enter_state, &Impl::undo_state);
  run(phase::teams, &Impl::enter_teams, &Impl::undo_teams);
  run(phase::barrier, &Impl::enter_barrier);
}

void Runtime::Impl::raise(const Error& error) {
  const std::string at = phases.current().empty() ? "running" : phases.current();
  Where where = error.where();
  if (where.host.empty())
    where.host = identity.host_name;
  if (!where.pe && bootstrap)
    where.pe = bootstrap->rank();
  const std::string subject =
      phases.current().empty() ? error.subject() : error.subject() + " in phase " + at;
  const Error named(error.code(), subject, error.attempted(), error.system_message(), error.fix(),
                    where);
  // The first failure of the job goes before any other one, also before what it caused here.
  if (lifeline && !lifeline->announce(named, at))
    lifeline->check();
  if (!lifeline && bootstrap && error.code() == ExitCode::deadline)
    ended_by = std::make_unique<Failure>(without_lifeline(named, bootstrap->rank()));
  throw named;
}

void Runtime::Impl::barrier() {
  if (survivors) {
    survivors->meet("barrier of those that are left");
  } else if (all_reachable) {
    rma->quiet();
    teams->sync(team_world);
  } else {
    const std::lock_guard lock(bootstrap_mutex);
    bootstrap->barrier(deadline());
  }
}

void Runtime::Impl::refresh_heap() {
  if (rma->region(region::heap).size_bytes == heap_region->size_bytes())
    return;
  publish(view(region::heap, *heap_region));
}

void Runtime::Impl::enter_options() {
  options.require_valid(used_options);
  options.require_valid(mapping_option_names());
  options.require_valid(transport_option_names());
  options.require_valid({"PROXY_THREADS", "PROXY_CPUS"});
  options.require_valid({"HEAP", "DEVICE_PATH", "GPUDIRECT", "CUDA_LIBRARY"});
  proxy_cpus(options); // before anything is started
  timeout_s = options.number("TIMEOUT");
  cpus_at_start = allowed_cpus(Sysroot("/"));
}

HostBackingOptions Runtime::Impl::backing_options() const {
  HostBackingOptions wanted;
  wanted.kind = options.text("HEAP_BACKING");
  wanted.huge_pages = options.boolean("HUGE_PAGES");
  return wanted;
}

/// Before there are threads. The variables' pages come from where this thread runs, which copies
/// them.
void Runtime::Impl::enter_static_data() {
  if (!request.share_static_data)
    return;
  static_backing = make_host_backing(backing_options());
  static_data = std::make_unique<StaticDataRegion>(*static_backing);
}

void Runtime::Impl::undo_static_data() {
  static_data.reset();
  static_backing.reset();
}

void Runtime::Impl::enter_bootstrap() {
  BootstrapRequest& wanted = request.bootstrap;
  wanted.options = &options;
  wanted.environment = request.environment;
  bootstrap = open_bootstrap(std::move(wanted), deadline());
}

void Runtime::Impl::undo_bootstrap() {
  if (needs_abort(ended_by, bootstrap->rank()))
    abort_at_end(std::move(parent_bootstrap ? parent_bootstrap : bootstrap), ended_by->code,
                 ended_by->message);
  bootstrap.reset();
  parent_bootstrap.reset();
}

void Runtime::Impl::enter_lifeline() {
  if (bootstrap->rank() == 0)
    secret = random_secret();
  bootstrap->broadcast(secret.data(), secret.size(), 0, deadline());
  secret = bootstrap->mix_secret(secret);
  if (parent_bootstrap) // the part's own secret went through the launcher's bootstrap
    secret = parent_bootstrap->mix_secret(secret);
  std::vector<std::string> host_names;
  for (const PeHost& host : placement.hosts)
    host_names.push_back(host.host_name);
  std::vector<SocketAddress> addresses;
  if (!one_network(placement))
    addresses = usable_addresses(
        {options.text("BOOTSTRAP_UID_SOCK_IFNAME"), options.text("BOOTSTRAP_UID_SOCK_FAMILY")});
  lifeline = Lifeline::start(*bootstrap, secret, addresses, std::move(host_names), deadline());
  bootstrap->watch(lifeline.get());
  if (request.lifeline_changed)
    request.lifeline_changed(lifeline.get());
}

void Runtime::Impl::undo_lifeline() {
  if (request.lifeline_changed)
    request.lifeline_changed(nullptr);
  if (bootstrap)
    bootstrap->watch(nullptr);
  ended_by = lifeline->failure();
  lifeline.reset();
}

void Runtime::Impl::enter_placement() {
  if (!placement.equal_pes_per_node && placement.pe == 0)
    log(LogLevel::info, "runtime", "the nodes have unequal numbers of PEs, which NVSHMEM refuses");
}

void Runtime::Impl::enter_connections() {
  BootstrapExchange exchange(*bootstrap, deadline());
  for (TransportEntry& entry : transports) {
    std::vector<PeerPlace> peers;
    for (int pe = 0; pe < placement.n_pes; ++pe) {
      const auto at = static_cast<std::size_t>(pe);
      if (entry.reach[at].capabilities != 0)
        peers.push_back(
            {pe, placement.hosts[at].node_id, placement.hosts[at].machine_id, entry.info[at]});
    }
    entry.transport->connect(peers, exchange, deadline());
  }
  if (transports.size() > 1)
    route_atomics();
  bootstrap->barrier(deadline()); // also entered by those whose peers are still connecting
}

void Runtime::Impl::enter_barrier() {
  barrier();
}

} // namespace shmemctl
