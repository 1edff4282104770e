#include "src/topo/cpu_mask.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_cpus = 65536;
constexpr std::size_t word_bits = 32;

std::string list_of(const std::vector<bool>& cpus) {
  std::vector<std::string> ranges;
  for (std::size_t from = 0; from < cpus.size(); ++from) {
    if (!cpus[from])
      continue;
    std::size_t to = from;
    while (to + 1 < cpus.size() && cpus[to + 1])
      ++to;
    ranges.push_back(from == to ? std::to_string(from)
                                : std::to_string(from) + "-" + std::to_string(to));
    from = to;
  }
  return join(ranges, ",");
}

} // namespace

std::optional<std::string> cpulist_of_mask(const std::string& mask) {
  if (mask.size() > (word_bits / 4 + 1) * (max_cpus / word_bits))
    return std::nullopt;
  const std::vector<std::string> words = split(mask, ',');
  std::vector<bool> cpus(words.size() * word_bits);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[words.size() - 1 - i];
    if (word.empty() || word.size() > word_bits / 4 ||
        word.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      return std::nullopt;
    const auto bits = static_cast<std::uint32_t>(*parse_integer(word, 16));
    for (std::size_t bit = 0; bit < word_bits; ++bit)
      cpus[i * word_bits + bit] = (bits >> bit & 1U) != 0;
  }
  return list_of(cpus);
}

std::optional<std::string> mask_of_cpulist(const std::string& cpulist) {
  std::vector<std::uint32_t> words(1);
  for (const std::string& range : split(cpulist, ',')) {
    const std::size_t dash = range.find('-');
    const std::optional<long long> from = parse_integer(range.substr(0, dash));
    const std::optional<long long> to =
        dash == std::string::npos ? from : parse_integer(range.substr(dash + 1));
    if (!from || !to || *from < 0 || *to < *from || *to >= static_cast<long long>(max_cpus))
      return std::nullopt;
    words.resize(std::max(words.size(), static_cast<std::size_t>(*to) / word_bits + 1));
    for (auto cpu = static_cast<std::size_t>(*from); cpu <= static_cast<std::size_t>(*to); ++cpu)
      words[cpu / word_bits] |= 1U << cpu % word_bits;
  }
  std::vector<std::string> texts;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    char text[16];
    std::snprintf(text, sizeof text, "%08x", *word);
    texts.emplace_back(text);
  }
  return join(texts, ",");
}

} // namespace shmemctl
