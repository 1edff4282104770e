#include "transports/ibrc/plan.h"

#include <algorithm>
#include <fmt/format.h>

#include "transports/rc/connect.h"
#include "transports/rc/qp_path.h"

namespace shmemctl::ibrc {

namespace {

constexpr std::uint64_t max_rdma_bytes = std::uint64_t{1} << 30;

std::string port_name(const Hello::Nic& nic) {
  return rc::port_name(nic.device, nic.port);
}

/// One pair of ports, for checks and messages.
struct Pair {
  const Hello::Nic& local;
  const Hello::Nic& remote;
  const rc::Job& job;
  int peer;

  Error error(const std::string& message, const std::string& fix,
              ExitCode code = ExitCode::unavailable) const {
    return {code,      job.name_of(peer) + " by its port " + port_name(remote),
            "connect", message,
            fix,       job.where(local.device, local.port)};
  }
};

void check_link_layers(const Pair& pair, const Settings& settings) {
  const auto layer = [](const Hello::Nic& nic) { return nic.ethernet ? "Ethernet" : "InfiniBand"; };
  if (pair.local.ethernet != pair.remote.ethernet)
    throw pair.error(fmt::format("one is {}, the other {}", layer(pair.local), layer(pair.remote)),
                     "choose ports of one network with SHMEMCTL_HCA_LIST on all hosts");
  if (const auto unfit = rc::unfit_option(settings.path, pair.local.ethernet))
    throw pair.error(unfit->cause, unfit->fix, ExitCode::usage);
}

int path_mtu(const Pair& pair, int local_mtu, int remote_mtu) {
  int wished = std::max(local_mtu, remote_mtu);
  if (local_mtu != 0 && remote_mtu != 0)
    wished = std::min(local_mtu, remote_mtu);
  const int both = std::min<int>(pair.local.mtu_bytes, pair.remote.mtu_bytes);
  if (wished == 0)
    return both;
  if (wished > both) {
    const bool here = pair.local.mtu_bytes <= pair.remote.mtu_bytes;
    throw pair.error(
        fmt::format("SHMEMCTL_IB_MTU is {}, and the port {} {} has {}", wished,
                    port_name(here ? pair.local : pair.remote),
                    here ? "here" : "of " + pair.job.name_of(pair.peer), both),
        fmt::format("unset SHMEMCTL_IB_MTU, or raise that port's MTU: over RoCE, its network "
                    "interface needs about 100 bytes more than {}",
                    wished));
  }
  return wished;
}

/// Packets need a GRH on Ethernet, between subnets, if a port requires it, and with IB_GID_INDEX.
bool needs_grh(const Pair& pair, const Settings& settings) {
  if (pair.local.ethernet || pair.local.grh_required || pair.remote.grh_required ||
      settings.gid.index >= 0)
    return true;
  const auto& local = pair.local.addresses;
  const auto& remote = pair.remote.addresses;
  // The first half of a GID is the subnet's prefix: different subnets need a GRH.
  return !local.empty() && !remote.empty() &&
         !std::equal(local[0].raw.begin(), local[0].raw.begin() + 8, remote[0].raw.begin());
}

std::vector<AddressPair> address_pairs(const Pair& pair) {
  std::vector<AddressPair> pairs;
  for (const verbs::GidPair& each : verbs::common_gids(pair.local.addresses, pair.remote.addresses))
    pairs.push_back({each.local, pair.local.addresses[each.local].kind,
                     pair.remote.addresses[each.remote].raw});
  if (pairs.empty())
    throw pair.error("their addresses are of different kinds: here " +
                         verbs::addresses_text(pair.local.addresses) + ", there " +
                         verbs::addresses_text(pair.remote.addresses),
                     "give both ports addresses of one family, or choose by "
                     "SHMEMCTL_IB_GID_INDEX (--ib-gid-index), SHMEMCTL_IB_ADDR_FAMILY and "
                     "SHMEMCTL_IB_ROCE_VERSION_NUM");
  return pairs;
}

PathPlan plan_path(const Pair& pair, int local_mtu, int remote_mtu, const Settings& settings) {
  check_link_layers(pair, settings);
  PathPlan plan;
  plan.mtu_bytes = path_mtu(pair, local_mtu, remote_mtu);
  plan.outstanding_reads =
      std::min({rc::max_outstanding_reads, static_cast<int>(pair.local.outstanding_reads),
                static_cast<int>(pair.remote.outstanding_reads)});
  plan.max_message_bytes =
      std::min({max_rdma_bytes, pair.local.max_message_bytes, pair.remote.max_message_bytes});
  plan.global = needs_grh(pair, settings);
  if (plan.global)
    plan.addresses = address_pairs(pair);
  return plan;
}

} // namespace

std::vector<PathPlan> plan_paths(const Hello& local, const Hello& remote, const Settings& settings,
                                 const rc::Job& job, int peer) {
  std::vector<PathPlan> paths;
  for (const auto [nic, peer_nic] : rc::pair_ports(local.nics.size(), remote.nics.size())) {
    PathPlan plan = plan_path({local.nics[nic], remote.nics[peer_nic], job, peer},
                              local.wanted_mtu_bytes, remote.wanted_mtu_bytes, settings);
    plan.nic = nic;
    plan.peer_nic = peer_nic;
    paths.push_back(std::move(plan));
  }
  return paths;
}

} // namespace shmemctl::ibrc
