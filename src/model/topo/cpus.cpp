// Sets of CPUs and the layout of a node's CPUs.
#include "src/model/topo/cpus.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr int word_bits = 32;

std::optional<int> parse_cpu(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  const std::optional<long long> number = parse_integer(text);
  if (!number || *number >= max_cpus)
    return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<std::uint32_t> parse_word(std::string_view digits) {
  if (digits.empty() || digits.size() > word_bits / 4 ||
      digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
    return std::nullopt;
  return static_cast<std::uint32_t>(*parse_integer(digits, 16));
}

/// The set in a list of words, the highest first, each of which `parse` converts to bits.
template <class Parse>
std::optional<CpuSet> set_of_words(std::string_view text, Parse parse) {
  // Leading zero words are allowed, up to a limit.
  if (std::count(text.begin(), text.end(), ',') > max_cpus / 8)
    return std::nullopt;
  const std::vector<std::string> words = split(text, ',');
  CpuSet cpus;
  for (std::size_t i = 0; i < words.size(); ++i) { // from the lowest, which is last
    const std::optional<std::uint32_t> bits = parse(words[words.size() - 1 - i]);
    if (!bits || (*bits != 0 && i >= max_cpus / word_bits))
      return std::nullopt;
    for (int bit = 0; bit < word_bits; ++bit)
      if ((*bits >> bit & 1U) != 0)
        cpus.add(static_cast<int>(i) * word_bits + bit);
  }
  return cpus;
}

/// The set as words of 32 CPUs, the lowest first; at least one word.
std::vector<std::uint32_t> hex_words(const CpuSet& cpus) {
  const int last = cpus.empty() ? 0 : cpus.last();
  std::vector<std::uint32_t> words(static_cast<std::size_t>(last / word_bits) + 1);
  for (const int cpu : cpus.cpus())
    words[static_cast<std::size_t>(cpu / word_bits)] |= std::uint32_t{1} << cpu % word_bits;
  return words;
}

std::string format_words(const CpuSet& cpus, const char* prefix) {
  const std::vector<std::uint32_t> words = hex_words(cpus);
  std::string text;
  for (std::size_t i = words.size(); i-- > 0;)
    text += fmt::format("{}{}{:08x}", text.empty() ? "" : ",", prefix, words[i]);
  return text;
}

} // namespace

CpuSet::CpuSet(std::initializer_list<int> cpus) {
  for (const int cpu : cpus)
    add(cpu);
}

void CpuSet::add(int first, int last) {
  Range added{std::max(first, 0), std::min(last, max_cpus - 1)};
  if (added.first > added.last)
    return;
  // Merges ranges that overlap or touch it.
  const auto begin = std::partition_point(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.last + 1 < added.first;
  });
  const auto end = std::partition_point(
      begin, ranges_.end(), [&](const Range& range) { return range.first <= added.last + 1; });
  if (begin == end) {
    ranges_.insert(begin, added);
    return;
  }
  begin->first = std::min(begin->first, added.first);
  begin->last = std::max((end - 1)->last, added.last);
  ranges_.erase(begin + 1, end);
}

void CpuSet::add(const CpuSet& other) {
  for (const Range& range : other.ranges_)
    add(range.first, range.last);
}

bool CpuSet::contains(int cpu) const {
  const auto range =
      std::partition_point(ranges_.begin(), ranges_.end(),
                           [cpu](const Range& candidate) { return candidate.last < cpu; });
  return range != ranges_.end() && range->first <= cpu;
}

std::vector<int> CpuSet::cpus() const {
  std::vector<int> cpus;
  for (const Range& range : ranges_)
    for (int cpu = range.first; cpu <= range.last; ++cpu)
      cpus.push_back(cpu);
  return cpus;
}

CpuSet intersection(const CpuSet& left, const CpuSet& right) {
  CpuSet both;
  auto a = left.ranges().begin();
  auto b = right.ranges().begin();
  while (a != left.ranges().end() && b != right.ranges().end()) {
    both.add(std::max(a->first, b->first), std::min(a->last, b->last));
    if (a->last < b->last)
      ++a;
    else
      ++b;
  }
  return both;
}

std::optional<CpuSet> parse_cpulist(std::string_view text) {
  CpuSet cpus;
  const std::string_view list = trim(text);
  if (list.empty())
    return cpus;
  // A list with repetitions may be longer than the number of CPUs, up to a limit.
  if (std::count(list.begin(), list.end(), ',') > std::ptrdiff_t{4} * max_cpus)
    return std::nullopt;
  for (const std::string& part : split(list, ',')) {
    const std::string_view range = part;
    const std::size_t dash = range.find('-');
    const std::optional<int> first = parse_cpu(range.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : parse_cpu(range.substr(dash + 1));
    if (!first || !last || *first > *last)
      return std::nullopt;
    cpus.add(*first, *last);
  }
  return cpus;
}

std::string format_cpulist(const CpuSet& cpus) {
  std::string text;
  for (const CpuSet::Range& range : cpus.ranges()) {
    text += (text.empty() ? "" : ",") + std::to_string(range.first);
    if (range.last != range.first)
      text += "-" + std::to_string(range.last);
  }
  return text;
}

std::optional<CpuSet> parse_cpumap(std::string_view text) {
  return set_of_words(trim(text), parse_word);
}

std::string format_cpumap(const CpuSet& cpus) {
  return format_words(cpus, "");
}

std::optional<CpuSet> parse_hwloc_bitmap(std::string_view text) {
  if (text.empty())
    return std::nullopt;
  const bool one_word = text.find(',') == std::string_view::npos;
  return set_of_words(text, [one_word](std::string_view word) {
    if (word.empty() && !one_word)
      return std::optional<std::uint32_t>(0);
    return parse_word(starts_with(word, "0x") ? word.substr(2) : word);
  });
}

std::string format_hwloc_bitmap(const CpuSet& cpus) {
  return cpus.empty() ? "0x0" : format_words(cpus, "0x");
}

namespace {

const std::string cpu_folder = "/sys/devices/system/cpu";
const std::string node_folder = "/sys/devices/system/node";

/// The number in "cpu12"; empty for other names.
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

/// Matches PEs with slots (cores or CPUs) by augmenting paths, so that no PE is left without a slot
/// because an earlier PE took the only one that it may use.
class Matching {
public:
  /// @param slots by PE, best first
  Matching(std::vector<std::vector<int>> slots, std::size_t n_slots)
      : slots_(std::move(slots)), holder_(n_slots, -1), slot_(slots_.size(), -1) {}

  void match(std::size_t pe) {
    std::vector<bool> seen(holder_.size(), false);
    find(pe, seen);
  }
  int slot(std::size_t pe) const { return slot_[pe]; }

private:
  bool find(std::size_t pe, std::vector<bool>& seen) {
    for (const int slot : slots_[pe]) // a free slot needs no reassignment
      if (holder_[static_cast<std::size_t>(slot)] < 0)
        return take(pe, slot);
    for (const int slot : slots_[pe]) {
      const auto at = static_cast<std::size_t>(slot);
      if (seen[at])
        continue;
      seen[at] = true;
      if (find(static_cast<std::size_t>(holder_[at]), seen))
        return take(pe, slot);
    }
    return false;
  }

  bool take(std::size_t pe, int slot) {
    holder_[static_cast<std::size_t>(slot)] = static_cast<int>(pe);
    slot_[pe] = slot;
    return true;
  }

  std::vector<std::vector<int>> slots_;
  std::vector<int> holder_, slot_;
};

/// The slots that a PE may use, those of its NUMA node first.
std::vector<int> choices(const PinRequest& request, const std::vector<CpuSet>& slots,
                         const CpuLayout& layout) {
  std::vector<int> order;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!intersection(slots[i], request.allowed).empty())
      order.push_back(static_cast<int>(i));
  std::stable_partition(order.begin(), order.end(), [&](int slot) {
    return layout.numa_of(slots[static_cast<std::size_t>(slot)]) == request.numa;
  });
  return order;
}

/// Slots for PEs that have none yet.
void match_rest(const std::vector<PinRequest>& requests, const std::vector<CpuSet>& slots,
                const CpuLayout& layout, std::vector<int>& cpus) {
  std::vector<std::vector<int>> by_pe(requests.size());
  std::vector<CpuSet> free_slots = slots;
  for (CpuSet& slot : free_slots)
    for (const int cpu : cpus)
      if (cpu >= 0 && slot.contains(cpu))
        slot = {};
  for (std::size_t pe = 0; pe < requests.size(); ++pe)
    if (cpus[pe] < 0)
      by_pe[pe] = choices(requests[pe], free_slots, layout);
  Matching matching(std::move(by_pe), free_slots.size());
  for (std::size_t pe = 0; pe < requests.size(); ++pe)
    if (cpus[pe] < 0)
      matching.match(pe);
  for (std::size_t pe = 0; pe < requests.size(); ++pe)
    if (cpus[pe] < 0 && matching.slot(pe) >= 0)
      cpus[pe] = intersection(free_slots[static_cast<std::size_t>(matching.slot(pe))],
                              requests[pe].allowed)
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

std::vector<int> plan_cpus(const std::vector<PinRequest>& requests, const CpuLayout& layout) {
  std::vector<int> cpus(requests.size(), -1);
  // A PE that may use a single core has no choice.
  for (std::size_t pe = 0; pe < requests.size(); ++pe)
    for (const CpuSet& core : layout.cores)
      if (!requests[pe].allowed.empty() &&
          intersection(core, requests[pe].allowed) == requests[pe].allowed)
        cpus[pe] = requests[pe].allowed.first();
  match_rest(requests, layout.cores, layout, cpus);
  std::vector<CpuSet> threads;
  for (const CpuSet& core : layout.cores)
    for (const int cpu : core.cpus())
      threads.push_back({cpu});
  match_rest(requests, threads, layout, cpus);
  for (std::size_t pe = 0; pe < requests.size(); ++pe)
    if (const std::vector<int> allowed = requests[pe].allowed.cpus();
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
