#include "transports/ibrc/plan.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "transports/rc/ports.h"
#include "transports/rc/qp_path.h"

namespace shmemctl::ibrc {

namespace {

constexpr std::uint64_t max_rdma_bytes = std::uint64_t{1} << 30;

std::string port_name(const Hello::Nic& nic) {
  return rc::port_name(nic.device, nic.port);
}

/// One pair of ports, for checks and messages.
struct Pair {
  const Hello::Nic& mine;
  const Hello::Nic& theirs;
  const rc::Job& job;
  int peer;

  Error error(const std::string& message, const std::string& fix,
              ExitCode code = ExitCode::unavailable) const {
    return {code,         job.name_of(peer) + " by its port " + port_name(theirs),
            "connect to", message,
            fix,          job.where(mine.device, mine.port)};
  }
};

std::string kinds_of(const Hello::Nic& nic) {
  std::vector<std::string> kinds;
  for (const Hello::Address& address : nic.addresses)
    kinds.push_back(std::string(verbs::to_string(address.kind)) + " " +
                    verbs::gid_text(address.raw));
  return kinds.empty() ? "no address" : join(kinds, ", ");
}

void check_link_layers(const Pair& pair, const Settings& settings) {
  const auto layer = [](const Hello::Nic& nic) { return nic.ethernet ? "Ethernet" : "InfiniBand"; };
  if (pair.mine.ethernet != pair.theirs.ethernet)
    throw pair.error(fmt::format("one is {}, the other {}", layer(pair.mine), layer(pair.theirs)),
                     "choose ports of one network on all hosts: SHMEMCTL_HCA_LIST");
  if (!pair.mine.ethernet && settings.path.traffic_class != 0)
    throw pair.error("an InfiniBand port has no traffic class, and IB_TRAFFIC_CLASS is " +
                         std::to_string(settings.path.traffic_class),
                     "unset IB_TRAFFIC_CLASS; on InfiniBand, IB_SL chooses the service level",
                     ExitCode::usage);
}

int path_mtu(const Pair& pair, int my_mtu, int their_mtu) {
  int wished = std::max(my_mtu, their_mtu);
  if (my_mtu != 0 && their_mtu != 0)
    wished = std::min(my_mtu, their_mtu);
  const int both = std::min<int>(pair.mine.mtu_bytes, pair.theirs.mtu_bytes);
  if (wished == 0)
    return both;
  if (wished > both) {
    const bool here = pair.mine.mtu_bytes <= pair.theirs.mtu_bytes;
    throw pair.error(fmt::format("IB_MTU is {}, and the port {} {} has {}", wished,
                                 port_name(here ? pair.mine : pair.theirs),
                                 here ? "here" : "of " + pair.job.name_of(pair.peer), both),
                     fmt::format("unset IB_MTU, or raise that port's MTU: its network interface "
                                 "needs about 100 bytes more than {}",
                                 wished));
  }
  return wished;
}

/// Whether the two ends need a GRH to find each other.
bool needs_grh(const Pair& pair, const Settings& settings) {
  if (pair.mine.ethernet || pair.mine.grh_required || pair.theirs.grh_required ||
      settings.gid.index >= 0)
    return true;
  const auto& mine = pair.mine.addresses;
  const auto& theirs = pair.theirs.addresses;
  // The first half of a GID is its subnet's.
  return !mine.empty() && !theirs.empty() &&
         !std::equal(mine[0].raw.begin(), mine[0].raw.begin() + 8, theirs[0].raw.begin());
}

std::vector<AddressPair> address_pairs(const Pair& pair) {
  const auto kinds = [](const Hello::Nic& nic) {
    std::vector<verbs::GidKind> list;
    for (const Hello::Address& address : nic.addresses)
      list.push_back(address.kind);
    return list;
  };
  std::vector<AddressPair> pairs;
  for (const verbs::GidPair& each : verbs::common_gids(kinds(pair.mine), kinds(pair.theirs)))
    pairs.push_back(
        {each.mine, pair.mine.addresses[each.mine].kind, pair.theirs.addresses[each.theirs].raw});
  if (pairs.empty())
    throw pair.error("their addresses are of different kinds: here " + kinds_of(pair.mine) +
                         ", there " + kinds_of(pair.theirs),
                     "give both ports addresses of one family, or choose by IB_GID_INDEX "
                     "(--gid-index), IB_ADDR_FAMILY and IB_ROCE_VERSION_NUM");
  return pairs;
}

PathPlan plan_path(const Pair& pair, int my_mtu, int their_mtu, const Settings& settings) {
  check_link_layers(pair, settings);
  PathPlan plan;
  plan.mtu_bytes = path_mtu(pair, my_mtu, their_mtu);
  plan.outstanding_reads =
      std::min({rc::max_outstanding_reads, static_cast<int>(pair.mine.outstanding_reads),
                static_cast<int>(pair.theirs.outstanding_reads)});
  plan.max_message_bytes =
      std::min({max_rdma_bytes, pair.mine.max_message_bytes, pair.theirs.max_message_bytes});
  plan.global = needs_grh(pair, settings);
  if (plan.global)
    plan.addresses = address_pairs(pair);
  return plan;
}

} // namespace

std::vector<PathPlan> plan_paths(const Hello& mine, const Hello& theirs, const Settings& settings,
                                 const rc::Job& job, int peer) {
  std::vector<PathPlan> paths;
  for (const auto [nic, peer_nic] : rc::pair_ports(mine.nics.size(), theirs.nics.size())) {
    PathPlan plan = plan_path({mine.nics[nic], theirs.nics[peer_nic], job, peer},
                              mine.wanted_mtu_bytes, theirs.wanted_mtu_bytes, settings);
    plan.nic = nic;
    plan.peer_nic = peer_nic;
    paths.push_back(std::move(plan));
  }
  return paths;
}

} // namespace shmemctl::ibrc
