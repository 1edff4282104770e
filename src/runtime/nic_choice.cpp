#include "src/runtime/nic_choice.h"

#include <algorithm>

namespace shmemctl {

namespace {

void add_once(std::vector<HcaPort>& ports, const HcaPort& port) {
  if (std::find(ports.begin(), ports.end(), port) == ports.end())
    ports.push_back(port);
}

std::vector<HcaPort> ports_of_table(const Node& node, const Mapping& mapping) {
  std::vector<HcaPort> ports;
  for (const TableEntry& entry : mapping.table.entries) {
    const int nic = mapping.table_nics[static_cast<std::size_t>(entry.device)];
    add_once(ports, {node.nics[static_cast<std::size_t>(nic)].name, entry.port});
  }
  return ports;
}

} // namespace

std::vector<HcaPort> ports_of_pe(const Node& node, const Mapping& mapping, std::size_t local_pe,
                                 std::size_t local_pes) {
  std::vector<HcaPort> ports;
  if (local_pe >= mapping.pes.size())
    return ports;
  const PeMapping& mine = mapping.pes[local_pe];
  if (mine.gpu < 0) {
    const std::vector<HcaPort> all = ports_of_table(node, mapping);
    for (std::size_t at = all.empty() ? 0 : local_pe % all.size(); at < all.size(); at += local_pes)
      ports.push_back(all[at]);
    return ports;
  }
  for (int i = 0; i < mine.used && i < static_cast<int>(mine.nics.size()); ++i) {
    const NicUse& use = mine.nics[static_cast<std::size_t>(i)];
    add_once(ports, {node.nics[static_cast<std::size_t>(use.nic)].name, use.port});
  }
  return ports;
}

} // namespace shmemctl
