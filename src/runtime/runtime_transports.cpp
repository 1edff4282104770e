// The phases that find out who reaches whom, and by which transport.
#include <algorithm>
#include <numeric>

#include "src/base/log.h"
#include "src/runtime/runtime_impl.h"
#include "transports/absent.h"

namespace shmemctl {

TransportSetup Runtime::Impl::transport_setup() {
  return {placement.pe, placement.n_pes, identity.host_name, &options, lifeline.get(), timeout_s};
}

/// One that is chosen automatically is made in the next phase, when all know what is missing.
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
    return PeerPlace{static_cast<int>(pe), placement.hosts[pe].node_id,
                     placement.hosts[pe].machine_id, std::move(info)};
  };
  entry.info = allgather_text(*bootstrap, entry.transport->local_info(), deadline());
  if (const auto reason = absent_somewhere(entry.info))
    entry.transport = std::make_unique<AbsentTransport>(
        entry.transport->name(), *reason, "run the same build on all hosts, and look at that PE's");
  const auto mine = static_cast<std::size_t>(placement.pe);
  const PeerPlace me = place_of(mine, entry.info[mine]);
  for (std::size_t pe = 0; pe < count(); ++pe) {
    Reach reach = entry.transport->reach(me, place_of(pe, entry.info[pe]));
    const bool mapped =
        std::find(shared_pes.begin(), shared_pes.end(), static_cast<int>(pe)) != shared_pes.end();
    if ((reach.capabilities & can_load_store) != 0 && !mapped)
      reach = {0, "in another network namespace, through which no memory can be shared"};
    entry.reach.push_back(std::move(reach));
  }
}

void Runtime::Impl::take_way(std::size_t index) {
  for (std::size_t pe = 0; pe < count(); ++pe)
    if (transports[index].reach[pe].capabilities != 0 && way_to[pe] < 0)
      way_to[pe] = static_cast<int>(index);
}

ReachGap Runtime::Impl::gap_of(const TransportEntry& entry) {
  std::uint64_t mine = 0;
  std::string reason;
  for (std::size_t pe = 0; pe < count(); ++pe)
    if (way_to[pe] < 0 && entry.reach[pe].capabilities == 0 && mine++ == 0)
      reason = "PE " + std::to_string(placement.pe) + " (host " + identity.host_name + ") to PE " +
               std::to_string(pe) + ": " + entry.reach[pe].reason;
  const std::vector<std::uint64_t> all = allgather_value(*bootstrap, mine, deadline());
  ReachGap gap{std::accumulate(all.begin(), all.end(), std::uint64_t{0}), ""};
  if (gap.pairs == 0)
    return gap;
  for (const std::string& text : allgather_text(*bootstrap, printable(reason), deadline()))
    if (gap.reason.empty())
      gap.reason = text;
  return gap;
}

/// A transport that cannot be opened on one PE serves nobody, and is no reason to end the job.
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

/// All PEs look at the same numbers, so all take the same one.
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

/// Of the transports that nobody has named: the first that would close all gaps.
std::string Runtime::Impl::find_advice() {
  if (remote_choice.automatic)
    return ""; // all were tried
  for (const std::string& name : remote_candidates()) {
    const bool in_use =
        std::any_of(transports.begin(), transports.end(),
                    [&](const TransportEntry& entry) { return name == entry.transport->name(); });
    if (!in_use && gap_of(try_transport(name)).pairs == 0)
      return option_for(name, options);
  }
  return "";
}

void Runtime::Impl::enter_transport_map() {
  way_to.assign(count(), -1);
  for (std::size_t index = 0; index < transports.size(); ++index) {
    if (transports[index].transport)
      ask_reach(transports[index]);
    else
      transports[index] = choose_remote();
    take_way(index);
  }
  const std::string remote = options.text("REMOTE_TRANSPORT");
  for (const TransportEntry& entry : transports)
    if (!remote_choice.automatic && options.text("TRANSPORT").empty() &&
        remote == entry.transport->name())
      remote_choice.chosen = remote;
  const auto missing = std::find(way_to.begin(), way_to.end(), -1);
  const std::vector<int> complete =
      allgather_value(*bootstrap, missing == way_to.end() ? 1 : 0, deadline());
  all_reachable = std::find(complete.begin(), complete.end(), 0) == complete.end();
  if (!all_reachable)
    remote_choice.advice = find_advice();
  if (request.require_reach && missing != way_to.end())
    raise_unreachable(static_cast<int>(missing - way_to.begin()));
}

void Runtime::Impl::raise_unreachable(int pe) const {
  std::string reasons;
  for (const TransportEntry& entry : transports)
    reasons += (reasons.empty() ? "" : "; ") + std::string(entry.transport->name()) + ": " +
               entry.reach[static_cast<std::size_t>(pe)].reason;
  for (const RemoteChoice::Rejected& other : remote_choice.rejected)
    reasons += "; " + other.name + ": " + other.reason;
  throw Error(
      ExitCode::unavailable, "PE " + std::to_string(pe), "find a transport", reasons,
      remote_choice.advice.empty()
          ? "run shmemctl bringup to check all pairs of PEs, and shmemctl doctor on these hosts"
          : "set " + remote_choice.advice + ", which reaches all pairs");
}

} // namespace shmemctl
