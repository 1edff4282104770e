#include "src/bringup/reach_map.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/json_values.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

Error bad_text(std::size_t pe) {
  return {ExitCode::unavailable, "PE " + std::to_string(pe), "read its transports",
          "malformed message", "run the same version of shmemctl on all hosts"};
}

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

void merge_row(TransportReach& transport, int source, const json& row) {
  const auto& capabilities = row.at("capabilities");
  const auto& indices = row.at("reason");
  const auto reasons = row.at("reasons").get<std::vector<std::string>>();
  std::vector<int> here;
  here.reserve(reasons.size());
  for (const std::string& reason : reasons)
    here.push_back(reason_index(transport, reason));
  for (int target = 0; target < transport.n_pes; ++target) {
    const std::size_t at = transport.index(source, target);
    transport.capabilities[at] =
        require_whole_number<unsigned>(capabilities.at(static_cast<std::size_t>(target)));
    const int index = require_whole_number<int>(indices.at(static_cast<std::size_t>(target)));
    transport.reason[at] = index < 0 ? -1 : here.at(static_cast<std::size_t>(index));
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

std::string reach_text(const std::vector<TransportEntry>& transports) {
  json list = json::array();
  for (const TransportEntry& reachable : transports) {
    std::vector<std::string> reasons;
    json capabilities = json::array(), indices = json::array();
    for (const Reach& reach : reachable.reach) {
      capabilities.push_back(reach.capabilities);
      auto found = std::find(reasons.begin(), reasons.end(), reach.reason);
      indices.push_back(found - reasons.begin());
      if (found == reasons.end())
        reasons.push_back(reach.reason);
    }
    list.push_back({{"name", reachable.transport->name()},
                    {"capabilities", capabilities},
                    {"reason", indices},
                    {"reasons", reasons}});
  }
  return json_line(list);
}

std::vector<TransportReach> merge_reach(const std::vector<std::string>& texts) {
  std::vector<TransportReach> all;
  for (std::size_t pe = 0; pe < texts.size(); ++pe) {
    try {
      for (const json& row : from_json_line(texts[pe]))
        merge_row(named(all, row.at("name").get<std::string>(), static_cast<int>(texts.size())),
                  static_cast<int>(pe), row);
    } catch (const std::exception&) { // of the JSON library, or an index out of range
      throw bad_text(pe);
    }
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
  constexpr std::size_t most = 12;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(pairs.size(), most); ++i)
    names.push_back(std::to_string(pairs[i].first) + ">" + std::to_string(pairs[i].second));
  return join(names, ", ") +
         (pairs.size() > most ? " and " + std::to_string(pairs.size() - most) + " more" : "");
}

} // namespace shmemctl
