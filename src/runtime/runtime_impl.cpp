#include "src/runtime/runtime_impl.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unistd.h>

#include "src/base/archive.h"
#include "src/base/log.h"
#include "src/base/round_up.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/model/topo/mapping/request.h"
#include "src/model/topo/readers/reader.h"
#include "src/runtime/bootstrap/bootstrap.h"
#include "src/runtime/exchange.h"
#include "src/runtime/fault.h"
#include "src/runtime/identity.h"
#include "src/runtime/locality.h"
#include "src/runtime/routed_atomics.h"
#include "src/runtime/transport_choice.h"
#include "transports/absent.h"
#include "transports/registry.h"

namespace shmemctl {

namespace {

/// Options that the runtime validates, besides those of the NIC mapping, the transports, the proxy
/// and the GPU (see enter_options()).
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

/// How long a PE that has failed before its bring-up waits for the others in each step.
constexpr double problem_limit_s = 10;

/// For a deadline that passed before the failure detector existed: the cause is unknown, and every
/// PE requests the abort.
Failure without_failure_detector(const Error& error, int pe) {
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
      launcher(launcher_name(request.environment)), problem_phase(phase::options),
      phases([this](const std::string& name) {
        if (failure_detector)
          failure_detector->phase(name);
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
        try {
          if (failure_detector)
            failure_detector->check();
          const int pe = bootstrap ? bootstrap->rank() : -1;
          // Otherwise the phase might still be unsent when all threads of the PE stop.
          if (failure_detector && is_fault(options, FaultKind::stop, pe, name))
            failure_detector->await_sent();
          hold_problem([&] { inject_fault(options, pe, name); });
          (this->*enter)();
        } catch (const Error& error) {
          raise(error); // before anything is undone: the failure detector must still run
        }
      },
      std::move(undo_step));
}

void Runtime::Impl::start() {
  run(phase::options, &Impl::enter_options);
  run(phase::static_data, &Impl::enter_static_data, &Impl::undo_static_data);
  run(phase::bootstrap, &Impl::enter_bootstrap, &Impl::undo_bootstrap);
  run(phase::hosts, &Impl::enter_hosts);
  run(phase::failure_detector, &Impl::enter_failure_detector, &Impl::undo_failure_detector);
  if (request.problem)
    raise_problem();
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

Error Runtime::Impl::named(const Error& error) const {
  const std::optional<int> pe = bootstrap ? std::optional(bootstrap->rank()) : std::nullopt;
  const Error here = error.located(identity.host_name, pe);
  return phases.current().empty()
             ? here
             : here.with_subject(error.subject() + " in phase " + phases.current());
}

void Runtime::Impl::raise(const Error& error) {
  const Error failure = named(error);
  if (!failure_detector) {
    if (bootstrap && error.code() == ExitCode::deadline)
      ended_by = std::make_unique<Failure>(without_failure_detector(failure, bootstrap->rank()));
    throw request.problem ? *request.problem : failure; // the problem can no longer be announced
  }
  Error ending = failure;
  const bool first =
      failure_detector->announce(failure, phases.current().empty() ? "running" : phases.current());
  // The job's first failure takes precedence over this error, which may be its consequence.
  if (!first)
    try {
      failure_detector->check();
    } catch (const Error& cause) {
      ending = cause;
    }
  if (error.printed() || failure_detector->await_printed(first ? &failure : nullptr))
    ending.mark_printed();
  throw ending;
}

void Runtime::Impl::raise_problem() {
  Error ending = *request.problem;
  failure_detector->announce(ending, problem_phase);
  // the error is not a consequence of another PE's error
  if (failure_detector->await_printed(&*request.problem))
    ending.mark_printed();
  throw ending;
}

void Runtime::Impl::barrier() {
  if (degraded) {
    degraded->barrier("barrier of those that are left");
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
  if (request.problem) { // any option may be the cause of the problem: none is checked
    timeout_s = problem_limit_s;
    return;
  }
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

/// Runs before any thread is started. The pages of the variables are allocated on the NUMA node of
/// this thread, because it copies them.
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

void Runtime::Impl::enter_failure_detector() {
  if (bootstrap->rank() == 0)
    secret = random_secret();
  bootstrap->broadcast(secret.data(), secret.size(), 0, deadline());
  secret = bootstrap->mix_secret(secret);
  if (parent_bootstrap) // the unique id of this world's bootstrap was sent over the parent
    secret = parent_bootstrap->mix_secret(secret);
  std::vector<std::string> host_names;
  for (const PeHost& host : placement.hosts)
    host_names.push_back(host.host_name);
  std::vector<SocketAddress> addresses;
  if (!one_network(placement)) {
    const InterfaceFilter chosen{options.text("BOOTSTRAP_UID_SOCK_IFNAME"),
                                 options.text("BOOTSTRAP_UID_SOCK_FAMILY")};
    hold_problem([&] { addresses = usable_addresses(chosen); });
    if (request.problem && addresses.empty()) // any address suffices to announce the problem
      hold_problem([&] { addresses = usable_addresses({}); });
  }
  // If this PE has the same problem, it prints its own error, since the problem is not specific to
  // the other PE's host.
  ErrorPrinter printer = request.print_error;
  if (printer && request.problem)
    printer = [print = request.print_error, own = *request.problem](const Error& error) {
      print(same_failure(own, error) ? own : error);
    };
  failure_detector = FailureDetector::start(*bootstrap, secret, addresses, std::move(host_names),
                                            deadline(), std::move(printer));
  bootstrap->watch(failure_detector.get());
  if (request.failure_detector_changed)
    request.failure_detector_changed(failure_detector.get());
}

void Runtime::Impl::undo_failure_detector() {
  if (request.failure_detector_changed)
    request.failure_detector_changed(nullptr);
  if (bootstrap)
    bootstrap->watch(nullptr);
  ended_by = failure_detector->failure();
  failure_detector.reset();
}

void Runtime::Impl::enter_placement() {
  if (!placement.equal_pes_per_node && placement.pe == 0)
    log(LogLevel::info, "runtime", "the nodes have unequal numbers of PEs, which NVSHMEM refuses");
}

void Runtime::Impl::enter_connections() {
  BootstrapExchange exchange(*bootstrap, deadline());
  for (TransportEntry& entry : transports) {
    std::vector<PeerLocation> peers;
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
  bootstrap->barrier(deadline()); // all PEs enter it, also those whose peers are still connecting
}

void Runtime::Impl::enter_barrier() {
  barrier();
}

// The phases that determine the hosts of the PEs, the devices and the NICs.

namespace {

/// The first message that PEs exchange as an archive. The version comes first; if it differs,
/// nothing else is read.
struct HostMessage {
  std::uint32_t version = archive_version;
  PeHost host;
};

void serialize(Archive& archive, HostMessage& message) {
  archive(message.version);
  archive.require(message.version == archive_version);
  archive(message.host.machine_id, message.host.node_id, message.host.network_namespace,
          message.host.pid_namespace, message.host.pid, message.host.host_name);
}

PeHost host_of(const std::string& bytes, std::size_t pe) {
  if (std::optional<HostMessage> message = from_bytes<HostMessage>(bytes))
    return std::move(message->host);
  throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "join the job",
              "it runs another version of shmemctl than this PE",
              "run the same version of shmemctl on all hosts");
}

} // namespace

void Runtime::Impl::gather_hosts() {
  HostMessage message;
  message.host = {identity.host_name,         identity.machine_id,    identity.node_id,
                  identity.network_namespace, identity.pid_namespace, ::getpid()};
  const std::vector<std::string> messages =
      allgather_text(*bootstrap, to_bytes(message), deadline());
  std::vector<PeHost> hosts;
  try {
    for (std::size_t pe = 0; pe < messages.size(); ++pe)
      hosts.push_back(host_of(messages[pe], pe));
  } catch (const Error& error) { // if versions differ, every PE throws here
    throw printed_once(*bootstrap, request.print_error, error);
  }
  placement = place(bootstrap->rank(), std::move(hosts));
}

void Runtime::Impl::enter_hosts() {
  identity = read_machine_identity(Sysroot("/"));
  hold_problem([&] { identity = read_identity(Sysroot("/"), options, request.environment); });
  gather_hosts();
  if (request.hosts_known)
    hold_problem([&] { request.hosts_known(placement); });
  WorldMode mode = WorldMode::whole;
  hold_problem([&] { mode = parse_world_mode(options.text("INIT_MODE")); });
  if (mode != WorldMode::per_local_rank)
    return;
  std::unique_ptr<Bootstrap> rail = join_rail(*bootstrap, placement, options, deadline());
  parent_bootstrap = std::move(bootstrap);
  bootstrap = std::move(rail);
  gather_hosts();
}

/// Also gives each PE of this node its GPU, as `topo` does.
void Runtime::Impl::enter_devices() {
  node = read_machine(Sysroot("/"));
  wanted_mapping = mapping_request(options, node);
  if (options.integer("PES_PER_NODE") == 0 && !options.value("GPUS").set()) {
    const auto local_pes = placement.node_pes[static_cast<std::size_t>(placement.my_node())].size();
    wanted_mapping.gpus = assign_gpus(node, static_cast<int>(local_pes), {});
  }
}

void Runtime::Impl::enter_nics() {
  mapping = map_nics(node, wanted_mapping);
  const std::vector<HcaPort> ports =
      ports_of_pe(node, mapping, static_cast<std::size_t>(placement.my_local_pe()),
                  placement.node_pes[static_cast<std::size_t>(placement.my_node())].size());
  for (const TransportEntry& entry : transports)
    if (!ports.empty())
      entry.transport->use_nics(ports);
}

/// The NUMA node for the heap's pages; -1 for any.
int Runtime::Impl::choose_heap_node() const {
  const auto local_pe = static_cast<std::size_t>(placement.my_local_pe());
  const int near_gpu = local_pe < wanted_mapping.gpus.size() ? wanted_mapping.gpus[local_pe] : -1;
  const NumaChoice choice = choose_numa_node(node, allowed_cpus(Sysroot("/")), near_gpu);
  log(LogLevel::info, "memory",
      "PE " + std::to_string(placement.pe) + ": the heap prefers " +
          (choice.node < 0 ? "no NUMA node: " : "NUMA node " + std::to_string(choice.node) + ": ") +
          choice.reason);
  return choice.node;
}

// The phases that make memory reachable: heap, state, teams.

namespace {

/// The PEs that can pass each other descriptors, ascending: those on the same node, the same
/// machine and in the same network namespace (which abstract socket names belong to).
std::vector<int> pes_sharing_memory(const Placement& placement) {
  const auto host = [&](int pe) -> const PeHost& {
    return placement.hosts[static_cast<std::size_t>(pe)];
  };
  std::vector<int> pes;
  for (const int pe : placement.node_pes[static_cast<std::size_t>(placement.my_node())])
    if (host(pe).machine_id == host(placement.pe).machine_id &&
        host(pe).network_namespace == host(placement.pe).network_namespace)
      pes.push_back(pe);
  return pes;
}

} // namespace

RegionView Runtime::Impl::view(int region, const SymmetricRegion& part) const {
  RegionView view{region, part.base(), part.size_bytes(), {}};
  view.mapped.resize(count(), nullptr);
  for (std::size_t slot = 0; slot < shared_pes.size(); ++slot)
    view.mapped[static_cast<std::size_t>(shared_pes[slot])] =
        part.slot_base(static_cast<int>(slot));
  return view;
}

RegionView Runtime::Impl::static_view() const {
  RegionView view{region::static_data, static_data->base(), static_data->size_bytes(), {}};
  view.mapped.resize(count(), nullptr);
  for (std::size_t slot = 0; slot < shared_pes.size(); ++slot)
    view.mapped[static_cast<std::size_t>(shared_pes[slot])] =
        static_data->slot_base(static_cast<int>(slot));
  return view;
}

Agreement Runtime::Impl::make_agreement() {
  return [this](const char* call, std::uint64_t value) {
    const std::lock_guard lock(bootstrap_mutex);
    const std::vector<std::string> all =
        allgather_text(*bootstrap, std::string(call) + " " + std::to_string(value), deadline());
    for (std::size_t pe = 0; pe < all.size(); ++pe)
      if (all[pe] != all[0])
        throw Error(ExitCode::finding, call, "run on all PEs",
                    "PE 0 called " + all[0] + ", PE " + std::to_string(pe) + " called " + all[pe],
                    "make the same calls with the same sizes on all PEs");
  };
}

/// Symmetric globals require the same program on all PEs. A PE that runs another program throws;
/// the others wait for that failure.
void Runtime::Impl::require_one_program() {
  const std::vector<std::string> programs =
      allgather_text(*bootstrap, static_data ? static_data->fingerprint() : "", deadline());
  const std::optional<OtherProgram> other = find_other_program(programs);
  if (!other)
    return;
  const auto program_of = [&](int pe) -> const std::string& {
    return programs[static_cast<std::size_t>(pe)];
  };
  if (program_of(placement.pe) == program_of(other->reference_pe))
    failure_detector->await_cause(other->pe);
  const auto text_of = [&](int pe) {
    const std::string& program = program_of(pe);
    return program.empty() ? "a program without symmetric variables" : program;
  };
  Where where;
  where.host = placement.hosts[static_cast<std::size_t>(other->pe)].host_name;
  where.pe = other->pe;
  throw Error(ExitCode::unavailable, "global variables of the program", "share",
              "PE " + std::to_string(other->pe) + " runs another program (" + text_of(other->pe) +
                  ") than PE " + std::to_string(other->reference_pe) + " (" +
                  text_of(other->reference_pe) + ")",
              "start the same executable file on all PEs", where);
}

void Runtime::Impl::enter_heap() {
  require_one_program();
  shared_pes = pes_sharing_memory(placement);
  const int my_slot = static_cast<int>(
      std::find(shared_pes.begin(), shared_pes.end(), placement.pe) - shared_pes.begin());
  local_peers =
      make_local_peers(secret, shared_pes, my_slot, [this] { failure_detector->check(); });
  if (static_data)
    static_data->share(*local_peers, deadline());
  HostBackingOptions wanted = backing_options();
  wanted.numa_node = choose_heap_node();
  backing = make_host_backing(wanted);
  internal =
      std::make_unique<SymmetricRegion>("internal", limits::internal_bytes, *local_peers, *backing);
  internal->grow(internal_layout::state_offset_bytes +
                     std::min(StateBlock::size_bytes_for(placement.n_pes),
                              internal_layout::state_bytes), // enter_state() refuses a larger one
                 deadline());
  const auto granularity = std::max<std::size_t>(backing->granularity_bytes(), 2u << 20);
  SymmetricHeap::Config config;
  config.limit_bytes =
      round_up(static_cast<std::size_t>(options.size_bytes("SYMMETRIC_SIZE")), granularity);
  config.chunk_bytes = std::min<std::size_t>(
      config.limit_bytes,
      round_up(static_cast<std::size_t>(options.size_bytes("HEAP_CHUNK")), granularity));
  config.checked = options.boolean("CHECK");
  config.timeout_s = timeout_s;
  config.pe = placement.pe;
  heap_region =
      std::make_unique<SymmetricRegion>("heap", config.limit_bytes, *local_peers, *backing);
  heap = std::make_unique<SymmetricHeap>(config, *heap_region, make_agreement());
}

void Runtime::Impl::undo_heap() {
  heap.reset();
  staging.reset();
  heap_region.reset();
  internal.reset();
  backing.reset();
  local_peers.reset();
}

std::vector<Transport*> Runtime::Impl::transports_by_pe() const {
  std::vector<Transport*> transports_by_pe;
  for (const int index : transport_index_by_pe) {
    const auto at = static_cast<std::size_t>(index);
    const bool other = index >= 0 && at < routed.size() && routed[at];
    transports_by_pe.push_back(index < 0 ? nullptr
                                         : (other ? routed[at] : transports[at].transport).get());
  }
  return transports_by_pe;
}

/// Collective. If any PE's NIC executes atomics that are not atomic with the CPU's, sends the
/// atomics of all PEs through the NIC: only atomics that are executed in the same place are atomic
/// with each other.
void Runtime::Impl::route_atomics() {
  int own_index = -1;
  for (const int index : transport_index_by_pe)
    if (index >= 0 &&
        !transports[static_cast<std::size_t>(index)].transport->atomics_coherent_with_cpu())
      own_index = index;
  const std::vector<int> all = allgather_value(*bootstrap, own_index, deadline());
  const int route = *std::max_element(all.begin(), all.end());
  if (route < 0)
    return;
  const TransportEntry& nic = transports[static_cast<std::size_t>(route)];
  for (std::size_t pe = 0; pe < count(); ++pe)
    if (transport_index_by_pe[pe] >= 0 && nic.reach[pe].capabilities == 0)
      throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "perform atomics on it",
                  std::string("in this job all atomics go through NICs by ") +
                      nic.transport->name() +
                      ", because a NIC's atomics are not atomic with a CPU's; from this PE, "
                      "the transport " +
                      nic.transport->name() + " does not reach that PE: " + nic.reach[pe].reason,
                  "give every PE a NIC, or choose another transport with SHMEMCTL_TRANSPORT");
  routed.resize(transports.size());
  for (std::size_t at = 0; at < transports.size(); ++at)
    if (transports[at].transport->is_load_store())
      routed[at] = std::make_unique<RoutedAtomics>(*transports[at].transport, *nic.transport);
}

void Runtime::Impl::enter_state() {
  rma = std::make_unique<Rma>(placement.pe, placement.n_pes, transports_by_pe(), *failure_detector,
                              timeout_s, options.boolean("CHECK"));
  state = std::make_unique<StateBlock>(placement, transport_index_by_pe);
  std::vector<RegionView> views = {view(region::internal, *internal),
                                   view(region::heap, *heap_region)};
  if (static_data)
    views.push_back(static_view());
  if (gpu) {
    rma->set_gpu_transports(make_gpu_transports());
    state->add_observer([this](const State& now) { gpu->mirror(now); });
    for (RegionView& each : gpu->views())
      views.push_back(std::move(each));
  }
  if (state->size_bytes() > internal_layout::state_bytes)
    throw Error(ExitCode::unavailable, "internal region",
                "allocate the state of " + std::to_string(placement.n_pes) + " PEs",
                "it needs " + format_size_bytes(state->size_bytes()) + ", and the region has " +
                    format_size_bytes(internal_layout::state_bytes) + " for it",
                "start fewer PEs");
  state->add_mirror(internal->base() + internal_layout::state_offset_bytes);
  for (const RegionView& each : views)
    publish(each);
  if (gpu)
    gpu->use_network(gpu_network_inputs());
  make_buffers();
}

void Runtime::Impl::publish(const RegionView& region) {
  const std::lock_guard lock(bootstrap_mutex);
  BootstrapExchange exchange(*bootstrap, deadline());
  register_region(transports_of(region.region), region, exchange);
  rma->set_region(region);
  state->set_region(region);
}

void Runtime::Impl::make_buffers() {
  BuffersConfig config;
  config.pe = placement.pe;
  config.users = shared_pes;
  config.secret = secret;
  config.health = failure_detector.get();
  config.backing = backing.get();
  config.timeout_s = timeout_s;
  config.is_heap = [this](const void* address) {
    const int where = rma->locate(address, placement.pe).region;
    return where == region::heap || where == region::gpu_heap || where == region::gpu_team_flags;
  };
  if (gpu)
    config.gpu = &gpu->user_buffers();
  buffers = std::make_unique<Buffers>(std::move(config));
}

void Runtime::Impl::undo_state() {
  buffers.reset();
  state.reset();
  rma.reset();
}

void Runtime::Impl::enter_teams() {
  std::vector<int> leaders;
  for (const std::vector<int>& pes : placement.node_pes)
    leaders.push_back(pes[0]);
  teams = std::make_unique<Teams>(*rma, *state, reinterpret_cast<TeamSync*>(internal->base()),
                                  placement.node_pes[static_cast<std::size_t>(placement.my_node())],
                                  shared_pes, leaders);
  collectives = std::make_unique<Collectives>(*teams);
  // No PE may signal a team that its members have not created yet.
  bootstrap->barrier(deadline());
  if (parse_world_mode(options.text("INIT_MODE")) == WorldMode::low_latency)
    make_rail_teams();
}

void Runtime::Impl::make_rail_teams() {
  const bool regular = placement.equal_pes_per_node &&
                       placement.distribution != Distribution::irregular && all_reachable;
  if (!regular)
    throw Error(
        ExitCode::unavailable, "SHMEMCTL_INIT_MODE=low-latency", "create one team per local rank",
        "the nodes do not have equally many PEs in blocks or round-robin, or some PEs do not reach "
        "others (shmemctl bringup shows which)",
        "place the same number of PEs on every node, in blocks or round-robin");
  const int n_nodes = placement.n_nodes();
  const int local_pes = placement.n_pes / n_nodes;
  const bool block = placement.distribution == Distribution::block;
  for (int rail = 0; rail < local_pes; ++rail) {
    const auto team = block ? teams->split_strided(team_world, rail, local_pes, n_nodes)
                            : teams->split_strided(team_world, rail * n_nodes, 1, n_nodes);
    if (!team)
      throw Error(ExitCode::unavailable, "SHMEMCTL_INIT_MODE=low-latency",
                  "create one team per local rank",
                  "all " + std::to_string(limits::max_teams) + " teams are in use",
                  "start fewer PEs per node");
    if (*team != invalid_team)
      rail_team = *team;
  }
}

void Runtime::Impl::undo_teams() {
  collectives.reset();
  teams.reset();
}

// The phases that determine the reachable PEs and their transports.

TransportSetup Runtime::Impl::transport_setup() {
  return {placement.pe, placement.n_pes,        identity.host_name,
          &options,     failure_detector.get(), timeout_s};
}

/// A transport that is chosen automatically is made in the next phase, when all PEs know which
/// pairs are not reached yet.
void Runtime::Impl::enter_transports() {
  const auto make = request.make_transport ? request.make_transport : make_transport;
  const bool beyond_memory = placement.n_nodes() > 1 || !one_network(placement);
  for (const std::string& name : choose_transports(options, beyond_memory))
    transports.push_back(
        {name == automatic_transport ? nullptr : make(name, transport_setup()), {}, {}});
}

void Runtime::Impl::undo_transports() {
  proxy.reset();
  rma.reset();
  routed.clear();
  transports.clear();
}

void Runtime::Impl::ask_reach(TransportEntry& entry) {
  const auto place_of = [this](std::size_t pe, std::string info) {
    return PeerLocation{static_cast<int>(pe), placement.hosts[pe].node_id,
                        placement.hosts[pe].machine_id, std::move(info)};
  };
  entry.info = allgather_text(*bootstrap, entry.transport->local_info(), deadline());
  if (const auto reason = missing_somewhere(entry.info))
    entry.transport = std::make_unique<AbsentTransport>(
        entry.transport->name(), *reason,
        "run the same build on all hosts, and shmemctl doctor on that PE's host");
  const auto own = static_cast<std::size_t>(placement.pe);
  const PeerLocation me = place_of(own, entry.info[own]);
  for (std::size_t pe = 0; pe < count(); ++pe) {
    Reach reach = entry.transport->reach(me, place_of(pe, entry.info[pe]));
    const bool mapped =
        std::binary_search(shared_pes.begin(), shared_pes.end(), static_cast<int>(pe));
    if ((reach.capabilities & can_load_store) != 0 && !mapped)
      reach = {0, "in another network namespace, so the two PEs can share no memory"};
    entry.reach.push_back(std::move(reach));
  }
}

void Runtime::Impl::assign_transport(std::size_t index) {
  for (std::size_t pe = 0; pe < count(); ++pe)
    if (transports[index].reach[pe].capabilities != 0 && transport_index_by_pe[pe] < 0)
      transport_index_by_pe[pe] = static_cast<int>(index);
}

ReachGap Runtime::Impl::gap_of(const TransportEntry& entry) {
  std::uint64_t unreached = 0;
  std::string reason;
  for (std::size_t pe = 0; pe < count(); ++pe)
    if (transport_index_by_pe[pe] < 0 && entry.reach[pe].capabilities == 0 && unreached++ == 0)
      reason = "PE " + std::to_string(placement.pe) + " (host " + identity.host_name + ") to PE " +
               std::to_string(pe) + ": " + entry.reach[pe].reason;
  const std::vector<std::uint64_t> all = allgather_value(*bootstrap, unreached, deadline());
  ReachGap gap{std::accumulate(all.begin(), all.end(), std::uint64_t{0}), ""};
  if (gap.pairs == 0)
    return gap;
  for (const std::string& text : allgather_text(*bootstrap, printable(reason), deadline()))
    if (gap.reason.empty())
      gap.reason = text;
  return gap;
}

/// A transport that cannot be opened on one PE is not used by any PE, but does not end the job.
TransportEntry Runtime::Impl::try_transport(const std::string& name) {
  const auto make = request.make_transport ? request.make_transport : make_transport;
  TransportEntry entry;
  try {
    entry.transport = make(name, transport_setup());
  } catch (const Error& error) {
    entry.transport = std::make_unique<AbsentTransport>(name, error.message(), error.fix());
  }
  ask_reach(entry);
  return entry;
}

/// All PEs decide from the same numbers, so all choose the same transport.
TransportEntry Runtime::Impl::choose_remote() {
  remote_choice.automatic = true;
  std::optional<TransportEntry> best;
  std::uint64_t fewest = 0;
  for (const std::string& name : remote_candidates()) {
    TransportEntry entry = try_transport(name);
    const ReachGap gap = gap_of(entry);
    if (gap.pairs > 0)
      remote_choice.rejected.push_back({name, gap.reason});
    if (!best || gap.pairs < fewest) {
      best = std::move(entry);
      fewest = gap.pairs;
      remote_choice.chosen = name;
    }
    if (gap.pairs == 0)
      break;
  }
  const auto chosen = [this](const RemoteChoice::Rejected& other) {
    return other.name == remote_choice.chosen;
  };
  std::vector<RemoteChoice::Rejected>& rejected = remote_choice.rejected;
  rejected.erase(std::remove_if(rejected.begin(), rejected.end(), chosen), rejected.end());
  if (placement.pe == 0)
    log(LogLevel::info, "transports", "beyond the node: " + to_text(remote_choice));
  return std::move(*best);
}

/// The option that selects the first transport that is not in use and would reach all remaining
/// pairs; "" if there is none. Adds other such transports to remote_choice.other_advice.
std::string Runtime::Impl::find_remote_advice() {
  if (remote_choice.automatic)
    return ""; // all candidates have been tried
  std::string first;
  for (const std::string& name : remote_candidates()) {
    const bool in_use =
        std::any_of(transports.begin(), transports.end(),
                    [&](const TransportEntry& entry) { return name == entry.transport->name(); });
    if (in_use || gap_of(try_transport(name)).pairs != 0)
      continue;
    if (first.empty())
      first = option_for(name, options);
    else
      remote_choice.other_advice.push_back(name);
  }
  return first;
}

void Runtime::Impl::enter_transport_map() {
  transport_index_by_pe.assign(count(), -1);
  for (std::size_t index = 0; index < transports.size(); ++index) {
    if (transports[index].transport)
      ask_reach(transports[index]);
    else
      transports[index] = choose_remote();
    assign_transport(index);
  }
  const std::string remote = options.text("REMOTE_TRANSPORT");
  for (const TransportEntry& entry : transports)
    if (!remote_choice.automatic && options.text("TRANSPORT").empty() &&
        remote == entry.transport->name())
      remote_choice.chosen = remote;
  const auto missing = std::find(transport_index_by_pe.begin(), transport_index_by_pe.end(), -1);
  const std::vector<int> complete =
      allgather_value(*bootstrap, missing == transport_index_by_pe.end() ? 1 : 0, deadline());
  all_reachable = std::find(complete.begin(), complete.end(), 0) == complete.end();
  if (!all_reachable)
    remote_choice.advice = find_remote_advice();
  if (request.require_reach && missing != transport_index_by_pe.end())
    raise_unreachable(static_cast<int>(missing - transport_index_by_pe.begin()));
}

void Runtime::Impl::raise_unreachable(int pe) const {
  std::string reasons;
  for (const TransportEntry& entry : transports)
    reasons += (reasons.empty() ? "" : "; ") + std::string(entry.transport->name()) + ": " +
               entry.reach[static_cast<std::size_t>(pe)].reason;
  for (const RemoteChoice::Rejected& other : remote_choice.rejected)
    reasons += "; " + other.name + ": " + other.reason;
  throw Error(
      ExitCode::unavailable, "PE " + std::to_string(pe), "find a transport to it", reasons,
      remote_choice.advice.empty()
          ? "run shmemctl bringup to check all pairs of PEs, and shmemctl doctor on these hosts"
          : "set " + remote_choice.advice + ", which reaches all pairs" +
                (remote_choice.other_advice.empty()
                     ? ""
                     : "; so does " + join(remote_choice.other_advice, " or ")));
}

} // namespace shmemctl
