#include "src/topo/cpu_layout.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl {

namespace {

const std::string cpu_folder = "/sys/devices/system/cpu";
const std::string node_folder = "/sys/devices/system/node";

/// The number in "cpu12"; nothing for other names.
std::optional<int> numbered(const std::string& name, const std::string& word) {
  if (!starts_with(name, word))
    return std::nullopt;
  const auto number = parse_integer(std::string_view(name).substr(word.size()));
  if (!number || *number < 0 || *number >= max_cpus)
    return std::nullopt;
  return static_cast<int>(*number);
}

CpuSet siblings(const Sysroot& sysroot, int cpu) {
  const std::string topology = cpu_folder + "/cpu" + std::to_string(cpu) + "/topology/";
  for (const char* file : {"core_cpus_list", "thread_siblings_list"})
    if (const auto text = sysroot.read_line(topology + file))
      if (const auto cpus = parse_cpulist(*text); cpus && cpus->contains(cpu))
        return *cpus;
  return {cpu};
}

/// Matches PEs with places (cores or CPUs) by augmenting paths, so that none goes without because
/// an earlier one took the only place that it may have.
class Matching {
public:
  /// @param places by PE, best first
  Matching(std::vector<std::vector<int>> places, std::size_t n_places)
      : places_(std::move(places)), holder_(n_places, -1), place_(places_.size(), -1) {}

  void match(std::size_t pe) {
    std::vector<bool> seen(holder_.size(), false);
    find(pe, seen);
  }
  int place(std::size_t pe) const { return place_[pe]; }

private:
  bool find(std::size_t pe, std::vector<bool>& seen) {
    for (const int place : places_[pe]) // nobody has to move for a free one
      if (holder_[static_cast<std::size_t>(place)] < 0)
        return take(pe, place);
    for (const int place : places_[pe]) {
      const auto at = static_cast<std::size_t>(place);
      if (seen[at])
        continue;
      seen[at] = true;
      if (find(static_cast<std::size_t>(holder_[at]), seen))
        return take(pe, place);
    }
    return false;
  }

  bool take(std::size_t pe, int place) {
    holder_[static_cast<std::size_t>(place)] = static_cast<int>(pe);
    place_[pe] = place;
    return true;
  }

  std::vector<std::vector<int>> places_;
  std::vector<int> holder_, place_;
};

/// Places that a PE may have, those of its NUMA node first.
std::vector<int> choices(const PinWish& wish, const std::vector<CpuSet>& places,
                         const CpuLayout& layout) {
  std::vector<int> order;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!intersection(places[i], wish.allowed).empty())
      order.push_back(static_cast<int>(i));
  std::stable_partition(order.begin(), order.end(), [&](int place) {
    return layout.numa_of(places[static_cast<std::size_t>(place)]) == wish.numa;
  });
  return order;
}

/// The places of PEs that have none yet.
void match_rest(const std::vector<PinWish>& wishes, const std::vector<CpuSet>& places,
                const CpuLayout& layout, std::vector<int>& cpus) {
  std::vector<std::vector<int>> by_pe(wishes.size());
  std::vector<CpuSet> free_places = places;
  for (CpuSet& place : free_places)
    for (const int cpu : cpus)
      if (cpu >= 0 && place.contains(cpu))
        place = {};
  for (std::size_t pe = 0; pe < wishes.size(); ++pe)
    if (cpus[pe] < 0)
      by_pe[pe] = choices(wishes[pe], free_places, layout);
  Matching matching(std::move(by_pe), free_places.size());
  for (std::size_t pe = 0; pe < wishes.size(); ++pe)
    if (cpus[pe] < 0)
      matching.match(pe);
  for (std::size_t pe = 0; pe < wishes.size(); ++pe)
    if (cpus[pe] < 0 && matching.place(pe) >= 0)
      cpus[pe] = intersection(free_places[static_cast<std::size_t>(matching.place(pe))],
                              wishes[pe].allowed)
                     .first();
}

} // namespace

std::optional<int> CpuLayout::numa_of(const CpuSet& cpus) const {
  std::optional<int> node;
  for (const CpuSet::Range& range : cpus.ranges())
    for (int cpu = range.first; cpu <= range.last; ++cpu) {
      const auto found = numa.find(cpu);
      if (found == numa.end() || (node && *node != found->second))
        return std::nullopt;
      node = found->second;
    }
  return node;
}

CpuLayout read_cpu_layout(const Sysroot& sysroot) {
  CpuLayout layout;
  CpuSet seen;
  for (const std::string& name : sysroot.list(cpu_folder)) {
    const auto cpu = numbered(name, "cpu");
    if (!cpu || seen.contains(*cpu))
      continue;
    layout.cores.push_back(siblings(sysroot, *cpu));
    seen.add(layout.cores.back());
  }
  for (const std::string& name : sysroot.list(node_folder))
    if (const auto node = numbered(name, "node"))
      if (const auto text = sysroot.read_line(node_folder + "/" + name + "/cpulist"))
        if (const auto cpus = parse_cpulist(*text))
          for (const int cpu : cpus->cpus())
            layout.numa[cpu] = *node;
  return layout;
}

std::vector<int> plan_cpus(const std::vector<PinWish>& wishes, const CpuLayout& layout) {
  std::vector<int> cpus(wishes.size(), -1);
  // Who may use one core only has no choice.
  for (std::size_t pe = 0; pe < wishes.size(); ++pe)
    for (const CpuSet& core : layout.cores)
      if (!wishes[pe].allowed.empty() &&
          intersection(core, wishes[pe].allowed) == wishes[pe].allowed)
        cpus[pe] = wishes[pe].allowed.first();
  match_rest(wishes, layout.cores, layout, cpus);
  std::vector<CpuSet> threads;
  for (const CpuSet& core : layout.cores)
    for (const int cpu : core.cpus())
      threads.push_back({cpu});
  match_rest(wishes, threads, layout, cpus);
  for (std::size_t pe = 0; pe < wishes.size(); ++pe)
    if (const std::vector<int> allowed = wishes[pe].allowed.cpus();
        cpus[pe] < 0 && !allowed.empty())
      cpus[pe] = allowed[pe % allowed.size()];
  return cpus;
}

std::optional<std::vector<int>> parse_pin_list(const std::string& text) {
  std::vector<int> cpus;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> ends = split(part, '-');
    const auto first = parse_integer(trim(ends.front()));
    const auto last = ends.size() == 2 ? parse_integer(trim(ends.back())) : first;
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last >= max_cpus)
      return std::nullopt;
    if (static_cast<long long>(cpus.size()) + *last - *first >= max_cpus)
      return std::nullopt;
    for (long long cpu = *first; cpu <= *last; ++cpu)
      cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

} // namespace shmemctl
