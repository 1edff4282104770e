// The phases that make memory reachable: heap, state, teams.
#include <algorithm>

#include "src/base/round_up.h"
#include "src/base/units.h"
#include "src/runtime/exchange.h"
#include "src/runtime/routed_atomics.h"
#include "src/runtime/runtime_impl.h"
#include "src/runtime/same_program.h"

namespace shmemctl {

namespace {

/// The PEs that can hand each other descriptors: one node, one machine, one network namespace
/// (abstract socket names belong to it).
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
    const std::vector<std::string> all = allgather_text(
        *bootstrap, std::string(call) + "(" + std::to_string(value) + ")", deadline());
    for (std::size_t pe = 0; pe < all.size(); ++pe)
      if (all[pe] != all[0])
        throw Error(ExitCode::finding, call, "agree over all PEs",
                    "PE 0 called " + all[0] + ", PE " + std::to_string(pe) + " called " + all[pe],
                    "make the same calls with the same sizes on all PEs");
  };
}

/// Symmetric globals need one program. The PE that runs another one says so; the rest hear it.
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
    lifeline->await_cause(other->pe);
  const auto words_of = [&](int pe) {
    const std::string& program = program_of(pe);
    return program.empty() ? "a program without symmetric variables" : program;
  };
  Where where;
  where.host = placement.hosts[static_cast<std::size_t>(other->pe)].host_name;
  where.pe = other->pe;
  throw Error(ExitCode::unavailable, "global variables of the program", "share",
              "PE " + std::to_string(other->pe) + " runs another program (" + words_of(other->pe) +
                  ") than PE " + std::to_string(other->reference_pe) + " (" +
                  words_of(other->reference_pe) + ")",
              "start the same executable file on all PEs", where);
}

void Runtime::Impl::enter_heap() {
  require_one_program();
  shared_pes = pes_sharing_memory(placement);
  const int my_slot = static_cast<int>(
      std::find(shared_pes.begin(), shared_pes.end(), placement.pe) - shared_pes.begin());
  local_peers = make_local_peers(secret, shared_pes, my_slot, [this] { lifeline->check(); });
  if (static_data)
    static_data->share(*local_peers, deadline());
  HostBackingOptions wanted = backing_options();
  wanted.numa_node = choose_heap_node();
  backing = make_host_backing(wanted);
  internal =
      std::make_unique<SymmetricRegion>("internal", limits::internal_bytes, *local_peers, *backing);
  internal->grow(limits::internal_bytes, deadline());
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

std::vector<Transport*> Runtime::Impl::ways() const {
  std::vector<Transport*> ways;
  for (const int way : way_to) {
    const auto at = static_cast<std::size_t>(way);
    const bool other = way >= 0 && at < routed.size() && routed[at];
    ways.push_back(way < 0 ? nullptr : (other ? routed[at] : transports[at].transport).get());
  }
  return ways;
}

/// Collective. Atomics are atomic with each other only where all PEs make them in the same place.
void Runtime::Impl::route_atomics() {
  int mine = -1;
  for (const int way : way_to)
    if (way >= 0 && !transports[static_cast<std::size_t>(way)].transport->atomics_meet_cpu())
      mine = way;
  const std::vector<int> all = allgather_value(*bootstrap, mine, deadline());
  const int route = *std::max_element(all.begin(), all.end());
  if (route < 0)
    return;
  const TransportEntry& nic = transports[static_cast<std::size_t>(route)];
  for (std::size_t pe = 0; pe < count(); ++pe)
    if (way_to[pe] >= 0 && nic.reach[pe].capabilities == 0)
      throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "perform atomics",
                  std::string(nic.transport->name()) +
                      " performs the atomics of other PEs by NIC, which are not atomic with those "
                      "of a CPU, and does not reach this PE: " +
                      nic.reach[pe].reason,
                  "give every PE a NIC, or choose another transport with SHMEMCTL_TRANSPORT");
  routed.resize(transports.size());
  for (std::size_t at = 0; at < transports.size(); ++at)
    if (transports[at].transport->is_load_store())
      routed[at] = std::make_unique<RoutedAtomics>(*transports[at].transport, *nic.transport);
}

void Runtime::Impl::enter_state() {
  rma = std::make_unique<Rma>(placement.pe, placement.n_pes, ways(), *lifeline, timeout_s,
                              options.boolean("CHECK"));
  state = std::make_unique<StateBlock>(placement, way_to);
  std::vector<RegionView> views = {view(region::internal, *internal),
                                   view(region::heap, *heap_region)};
  if (static_data)
    views.push_back(static_view());
  if (gpu) {
    rma->set_gpu_ways(make_gpu_ways());
    state->add_observer([this](const State& now) { gpu->mirror(now); });
    for (RegionView& each : gpu->views())
      views.push_back(std::move(each));
  }
  if (state->size_bytes() > internal_layout::state_bytes)
    throw Error(ExitCode::unavailable, "internal region",
                "allocate the state of " + std::to_string(placement.n_pes) + " PEs",
                "it needs " + format_size_bytes(state->size_bytes()), "start fewer PEs");
  state->add_mirror(internal->base() + internal_layout::state_offset_bytes);
  for (const RegionView& each : views)
    publish(each);
  if (gpu)
    gpu->use_network(gpu_network_inputs());
  make_buffers();
}

void Runtime::Impl::publish(const RegionView& region) {
  BootstrapExchange exchange(*bootstrap, deadline());
  register_region(transports_of(region.region), region, exchange);
  rma->set_region(region);
  state->set_region(region);
}

void Runtime::Impl::require_pe(int pe) const {
  if (pe < 0 || pe >= placement.n_pes)
    throw Error(ExitCode::usage, "PE " + std::to_string(pe), "",
                "no such PE: the job has PEs 0 to " + std::to_string(placement.n_pes - 1),
                "pass a PE of the job");
}

void Runtime::Impl::make_buffers() {
  BuffersConfig config;
  config.pe = placement.pe;
  config.users = shared_pes;
  config.secret = secret;
  config.health = lifeline.get();
  config.backing = backing.get();
  config.timeout_s = timeout_s;
  config.way_to = [this](int pe) -> BuffersConfig::WayToPe {
    require_pe(pe);
    const int way = way_to[static_cast<std::size_t>(pe)];
    if (way < 0)
      raise_unreachable(pe);
    const TransportEntry& entry = transports[static_cast<std::size_t>(way)];
    const unsigned can = entry.reach[static_cast<std::size_t>(pe)].capabilities;
    return {entry.transport->name(), (can & can_load_store) != 0};
  };
  config.is_heap = [this](const void* address) {
    const int where = rma->locate(address, placement.pe).region;
    return where == region::heap || where == region::gpu_heap || where == region::gpu_cells;
  };
  if (gpu) {
    config.gpu = &gpu->user_buffers();
    if (!gpu->is_host_memory())
      config.gpu_way_to = [this](int pe) { return gpu_way_of(pe); };
  }
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
  // Nobody may signal a team that its members have not made yet.
  bootstrap->barrier(deadline());
  if (parse_world_mode(options.text("INIT_MODE")) == WorldMode::low_latency)
    make_rail_teams();
}

void Runtime::Impl::make_rail_teams() {
  const bool regular = placement.equal_pes_per_node &&
                       placement.distribution != Distribution::irregular && all_reachable;
  if (!regular)
    throw Error(
        ExitCode::unavailable, "INIT_MODE=low-latency", "create one team per local rank",
        "the nodes do not have equal, contiguous ranges of PEs, or some PEs do not reach others",
        "place the same number of PEs on every node, in contiguous ranges");
  const int n_nodes = placement.n_nodes();
  const int local_pes = placement.n_pes / n_nodes;
  const bool block = placement.distribution == Distribution::block;
  for (int rail = 0; rail < local_pes; ++rail) {
    const auto team = block ? teams->split_strided(team_world, rail, local_pes, n_nodes)
                            : teams->split_strided(team_world, rail * n_nodes, 1, n_nodes);
    if (!team)
      throw Error(ExitCode::unavailable, "INIT_MODE=low-latency", "create one team per local rank",
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

} // namespace shmemctl
