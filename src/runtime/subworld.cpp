#include "src/runtime/subworld.h"

#include <algorithm>

#include "src/bootstrap/uid.h"

namespace shmemctl {

namespace {

/// One PE of each node that has that many.
std::vector<int> pes_of_local_rank(const Placement& placement, int local_pe) {
  std::vector<int> pes;
  for (const std::vector<int>& node : placement.node_pes)
    if (static_cast<std::size_t>(local_pe) < node.size())
      pes.push_back(node[static_cast<std::size_t>(local_pe)]);
  return pes;
}

} // namespace

std::unique_ptr<Bootstrap> join_rail(Bootstrap& parent, const Placement& placement,
                                     const Options& options, const Deadline& deadline) {
  const std::vector<int> pes = pes_of_local_rank(placement, placement.my_local_pe());
  const InterfaceFilter interfaces{options.text("BOOTSTRAP_UID_SOCK_IFNAME"),
                                   options.text("BOOTSTRAP_UID_SOCK_FAMILY")};
  UidArguments arguments;
  arguments.interfaces = interfaces;
  std::string id;
  if (pes[0] == placement.pe) {
    // The id goes over the network: the secret that counts is another one.
    const Secret said = random_secret(), secret = parent.mix_secret(said);
    arguments.rendezvous = one_network(placement, pes)
                               ? Rendezvous::start_local(deadline.remaining_s(), secret)
                               : Rendezvous::start(interfaces, deadline.remaining_s(), secret);
    UniqueId told = arguments.rendezvous->id();
    told.secret = said;
    id = told.text();
  }
  const std::vector<std::string> ids = allgather_text(parent, id, deadline);
  arguments.id = UniqueId::parse(ids[static_cast<std::size_t>(pes[0])]);
  arguments.id.secret = parent.mix_secret(arguments.id.secret);
  arguments.rank = static_cast<int>(std::find(pes.begin(), pes.end(), placement.pe) - pes.begin());
  arguments.size = static_cast<int>(pes.size());
  return join_uid(std::move(arguments), deadline);
}

} // namespace shmemctl
