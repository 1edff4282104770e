#include <algorithm>
#include <fmt/format.h>

#include "src/topo/advice/checks.h"
#include "src/topo/advice/mapping_plans.h"
#include "src/topo/advice/wording.h"
#include "src/topo/mapping/nic_roles.h"

namespace shmemctl {

namespace {

bool is_in_table(const Mapping& mapping, int nic) {
  const auto& rows = mapping.table.entries;
  return std::any_of(rows.begin(), rows.end(), [&](const TableEntry& row) {
    return mapping.table_nics.at(static_cast<std::size_t>(row.device)) == nic;
  });
}

} // namespace

/// What NVSHMEM does not have in its table needs no word: the user left it out.
Diagnoses check_other_nics(const Node& node, const Mapping& mapping) {
  std::vector<int> others;
  std::vector<std::string> names;
  for (const RatedPort& rated : port_roles(node)) {
    const int nic = rated.port.nic;
    const bool seen = !others.empty() && others.back() == nic;
    const bool taken = mapping.request.policy != Policy::nvshmem || is_in_table(mapping, nic);
    if (rated.serves_a_gpu || seen || !taken)
      continue;
    others.push_back(nic);
    names.push_back(nic_name(node, nic));
  }
  if (names.empty())
    return {};
  std::vector<EnvChange> remedies;
  if (mapping.request.policy == Policy::nvshmem)
    if (const auto filter = leaving_out(node, mapping.request, others))
      remedies.push_back(*filter);
  return {{{"nic-without-gpu", Severity::info, enumerate(names),
            fmt::format("no GPU is near {}: probably for storage or management, and not for GPU "
                        "traffic",
                        enumerate(names)),
            "nothing to set: the best mapping gives no PE to " + enumerate(names)},
           std::move(remedies),
           false}};
}

} // namespace shmemctl
