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

std::vector<NicUse> uses_of(const Node& node, const std::vector<HcaPort>& ports) {
  std::vector<NicUse> uses;
  for (const HcaPort& port : ports)
    for (std::size_t nic = 0; nic < node.nics.size(); ++nic)
      if (node.nics[nic].name == port.device)
        uses.push_back(
            {static_cast<int>(nic), port.port, Distance{std::nullopt, 0, "the PE has no GPU"}});
  return uses;
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

Mapping mapping_in_use(const Node& node, Mapping mapping, std::size_t local_pes) {
  const Mapping given = mapping;
  for (std::size_t pe = 0; pe < mapping.pes.size(); ++pe) {
    PeMapping& mine = mapping.pes[pe];
    if (mine.gpu >= 0)
      continue;
    mine.nics = uses_of(node, ports_of_pe(node, given, pe, local_pes));
    mine.used = static_cast<int>(mine.nics.size());
    if (mine.nics.empty())
      continue;
    mine.chosen_by = "shared";
    mine.reason = "it has no GPU: the PEs of the node share all NICs";
  }
  fill_loads(node, mapping);
  return mapping;
}

} // namespace shmemctl
