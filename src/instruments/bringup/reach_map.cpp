#include "src/instruments/bringup/reach_map.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl {

namespace {

TransportReach& named(std::vector<TransportReach>& all, const std::string& name, int n_pes) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&name](const TransportReach& t) { return t.name == name; });
  if (found != all.end())
    return *found;
  TransportReach fresh;
  fresh.name = name;
  fresh.n_pes = n_pes;
  const std::size_t cells = static_cast<std::size_t>(n_pes) * static_cast<std::size_t>(n_pes);
  fresh.capabilities.assign(cells, 0);
  fresh.reason.assign(cells, -1);
  all.push_back(std::move(fresh));
  return all.back();
}

int reason_index(TransportReach& transport, const std::string& reason) {
  if (reason.empty())
    return -1;
  const auto found = std::find(transport.reasons.begin(), transport.reasons.end(), reason);
  const auto index = static_cast<int>(found - transport.reasons.begin());
  if (found == transport.reasons.end())
    transport.reasons.push_back(reason);
  return index;
}

bool is_whole(const ReachRow& row, int n_pes) {
  const auto targets = static_cast<std::size_t>(n_pes);
  return row.capabilities.size() == targets && row.reason.size() == targets &&
         std::all_of(row.reason.begin(), row.reason.end(),
                     [&row](int index) { return index < static_cast<int>(row.reasons.size()); });
}

void merge_row(TransportReach& transport, int source, const ReachRow& row) {
  std::vector<int> here;
  here.reserve(row.reasons.size());
  for (const std::string& reason : row.reasons)
    here.push_back(reason_index(transport, reason));
  for (int target = 0; target < transport.n_pes; ++target) {
    const std::size_t at = transport.index(source, target);
    const int index = row.reason[static_cast<std::size_t>(target)];
    transport.capabilities[at] = row.capabilities[static_cast<std::size_t>(target)];
    transport.reason[at] = index < 0 ? -1 : here[static_cast<std::size_t>(index)];
  }
}

} // namespace

std::string TransportReach::why(int source, int target) const {
  const int at = reason[index(source, target)];
  return at < 0 ? "" : reasons[static_cast<std::size_t>(at)];
}

bool TransportReach::reaches_anything() const {
  return std::any_of(capabilities.begin(), capabilities.end(),
                     [](unsigned mask) { return mask != 0; });
}

void ReachRow::add(unsigned can, const std::string& why) {
  const auto found = std::find(reasons.begin(), reasons.end(), why);
  capabilities.push_back(can);
  reason.push_back(static_cast<int>(found - reasons.begin()));
  if (found == reasons.end())
    reasons.push_back(why);
}

void serialize(Archive& archive, ReachRow& row) {
  archive(row.name, row.capabilities, row.reason, row.reasons);
}

std::string reach_message(const std::vector<TransportEntry>& transports) {
  std::vector<ReachRow> rows;
  for (const TransportEntry& entry : transports) {
    ReachRow& row = rows.emplace_back(entry.transport->name());
    for (const Reach& reach : entry.reach)
      row.add(reach.capabilities, reach.reason);
  }
  return to_bytes(rows);
}

std::vector<TransportReach> merge_reach(const std::vector<std::string>& messages) {
  const auto n_pes = static_cast<int>(messages.size());
  std::vector<TransportReach> all;
  for (std::size_t pe = 0; pe < messages.size(); ++pe)
    for (const ReachRow& row : value_of_pe<std::vector<ReachRow>>(messages[pe], pe, "transports")) {
      if (!is_whole(row, n_pes))
        throw malformed_message(pe, "transports");
      merge_row(named(all, row.name, n_pes), static_cast<int>(pe), row);
    }
  return all;
}

std::vector<PePair> unreachable_pairs(const std::vector<TransportReach>& transports, int n_pes) {
  std::vector<PePair> pairs;
  for (int source = 0; source < n_pes; ++source)
    for (int target = 0; target < n_pes; ++target)
      if ((source != target || n_pes == 1) && // alone, a PE has nobody else to show it by
          std::none_of(transports.begin(), transports.end(), [&](const TransportReach& transport) {
            return transport.from(source, target) != 0;
          }))
        pairs.emplace_back(source, target);
  return pairs;
}

std::string pair_list(const std::vector<PePair>& pairs) {
  constexpr std::size_t max_pairs = 12;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(pairs.size(), max_pairs); ++i)
    names.push_back(std::to_string(pairs[i].first) + ">" + std::to_string(pairs[i].second));
  return join(names, ", ") + (pairs.size() > max_pairs
                                  ? " and " + std::to_string(pairs.size() - max_pairs) + " more"
                                  : "");
}

} // namespace shmemctl
