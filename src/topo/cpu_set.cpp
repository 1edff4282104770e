#include "src/topo/cpu_set.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

#include "src/base/text.h"

namespace shmemctl {

std::optional<CpuSet> parse_cpu_set(std::string_view text) {
  CpuSet cpus;
  if (trim(text).empty())
    return cpus;
  for (const std::string& part : split(trim(text), ',')) {
    const std::vector<std::string> ends = split(part, '-');
    const auto first = parse_integer(ends.front());
    const auto last = parse_integer(ends.back());
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last >= max_cpus)
      return std::nullopt;
    // A list that repeats itself must not grow beyond what it can name.
    if (cpus.size() > std::size_t{4} * max_cpus)
      return std::nullopt;
    for (long long cpu = *first; cpu <= *last; ++cpu)
      cpus.push_back(static_cast<int>(cpu));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string format_cpu_set(const CpuSet& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1)
      ++last;
    text += text.empty() ? "" : ",";
    text += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return text;
}

std::optional<CpuSet> parse_hwloc_bitmap(std::string_view text) {
  // Leading zero words are allowed, but not without end.
  if (std::count(text.begin(), text.end(), ',') > max_cpus / 8)
    return std::nullopt;
  const std::vector<std::string> words = split(text, ',');
  CpuSet cpus;
  for (std::size_t word = 0; word < words.size(); ++word) { // from the lowest, which comes last
    const std::string& digits = words[words.size() - 1 - word];
    if (digits.empty() && words.size() > 1)
      continue;
    const auto value = digits.size() > 10 ? std::nullopt : parse_integer(digits, 16);
    if (!value || *value < 0 || *value > 0xffffffffLL)
      return std::nullopt;
    if (*value != 0 && word >= static_cast<std::size_t>(max_cpus) / 32)
      return std::nullopt;
    for (int bit = 0; bit < 32; ++bit)
      if ((static_cast<std::uint64_t>(*value) >> bit & 1) != 0)
        cpus.push_back(static_cast<int>(word) * 32 + bit);
  }
  return cpus;
}

std::string format_hwloc_bitmap(const CpuSet& cpus) {
  if (cpus.empty())
    return "0x0";
  std::vector<std::uint32_t> words(static_cast<std::size_t>(cpus.back()) / 32 + 1);
  for (const int cpu : cpus)
    words[static_cast<std::size_t>(cpu) / 32] |= std::uint32_t{1} << (cpu % 32);
  std::string text;
  for (std::size_t i = words.size(); i-- > 0;)
    text += fmt::format("{}0x{:08x}", text.empty() ? "" : ",", words[i]);
  return text;
}

} // namespace shmemctl
