#include "src/instruments/bringup/reach_map.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl {

namespace {

TransportReach& named(std::vector<TransportReach>& all, const std::string& name, int n_pes) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&name](const TransportReach& t) { return t.name == name; });
  return found != all.end() ? *found : all.emplace_back(name, n_pes);
}

bool is_whole(const ReachRow& row, int n_pes) {
  std::uint64_t targets = 0;
  for (const auto& [count, way] : row.runs) {
    if (count == 0 || way >= row.ways.size())
      return false;
    targets += count;
  }
  return targets == static_cast<std::uint64_t>(n_pes);
}

} // namespace

void ReachRow::add(unsigned can, const std::string& why) {
  const auto [way, is_new] =
      index_.try_emplace({can, why}, static_cast<std::uint32_t>(ways.size()));
  if (is_new)
    ways.push_back(way->first);
  if (!runs.empty() && runs.back().second == way->second)
    ++runs.back().first;
  else
    runs.emplace_back(1, way->second);
}

void serialize(Archive& archive, ReachRow& row) {
  archive(row.name, row.ways, row.runs);
}

void TransportReach::set_row(int source, const ReachRow& row) {
  std::vector<std::size_t> here;
  here.reserve(row.ways.size());
  for (const ReachWay& way : row.ways) {
    const auto [known, is_new] = index_.try_emplace(way, ways_.size());
    if (is_new)
      ways_.push_back(way);
    here.push_back(known->second);
  }
  std::vector<Run>& runs = rows_[static_cast<std::size_t>(source)];
  runs.clear();
  int end = 0;
  for (const auto& [count, way] : row.runs) {
    end += static_cast<int>(count);
    runs.push_back({end, here[way]});
  }
}

const TransportReach::Run* TransportReach::run_of(int source, int target) const {
  const std::vector<Run>& runs = rows_[static_cast<std::size_t>(source)];
  const auto run = std::upper_bound(runs.begin(), runs.end(), target,
                                    [](int pe, const Run& each) { return pe < each.end; });
  return run == runs.end() ? nullptr : &*run;
}

unsigned TransportReach::from(int source, int target) const {
  const Run* const run = run_of(source, target);
  return run ? ways_[run->way].first : 0;
}

std::string TransportReach::why(int source, int target) const {
  const Run* const run = run_of(source, target);
  return run ? ways_[run->way].second : "";
}

int TransportReach::end_of_run(int source, int target) const {
  const Run* const run = run_of(source, target);
  return run ? run->end : n_pes;
}

bool TransportReach::reaches_anything() const {
  return std::any_of(ways_.begin(), ways_.end(),
                     [](const ReachWay& way) { return way.first != 0; });
}

std::size_t TransportReach::count_pairs(unsigned capabilities) const {
  std::size_t pairs = 0;
  for (const std::vector<Run>& runs : rows_) {
    int begin = 0;
    for (const Run& run : runs) {
      if ((ways_[run.way].first & capabilities) != 0)
        pairs += static_cast<std::size_t>(run.end - begin);
      begin = run.end;
    }
  }
  return pairs;
}

std::size_t TransportReach::run_count() const {
  std::size_t count = 0;
  for (const std::vector<Run>& runs : rows_)
    count += runs.size();
  return count;
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
      named(all, row.name, n_pes).set_row(static_cast<int>(pe), row);
    }
  return all;
}

std::vector<PePair> unreachable_pairs(const std::vector<TransportReach>& transports, int n_pes) {
  std::vector<PePair> pairs;
  for (int source = 0; source < n_pes; ++source)
    for (int target = 0; target < n_pes;) {
      const auto reaches =
          std::find_if(transports.begin(), transports.end(), [&](const TransportReach& transport) {
            return transport.from(source, target) != 0;
          });
      if (reaches != transports.end()) {
        target = reaches->end_of_run(source, target);
        continue;
      }
      // A job of one PE has no other pair that could show that the PE is unreachable.
      if (source != target || n_pes == 1)
        pairs.emplace_back(source, target);
      ++target;
    }
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
