#include "src/base/folded_names.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t longest_number = 9; ///< longer runs of digits are text: serial numbers
constexpr std::size_t max_ranges = 16;    ///< in one pair of brackets

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The parts of a name: text, number, text, number, ..., text.
struct Parts {
  std::vector<std::string> texts = {""};
  std::vector<std::string> numbers;
};

Parts parts_of(const std::string& name) {
  Parts parts;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_decimal_digit(name[end]))
      ++end;
    if (end > at && end - at <= longest_number) {
      parts.numbers.push_back(name.substr(at, end - at));
      parts.texts.emplace_back();
      at = end;
      continue;
    }
    end = std::max(end, at + 1);
    parts.texts.back() += name.substr(at, end - at);
    at = end;
  }
  return parts;
}

std::string name_with(const Parts& parts, int varying, const std::string& number) {
  std::string name = parts.texts.front();
  for (std::size_t i = 0; i < parts.numbers.size(); ++i)
    name += (static_cast<int>(i) == varying ? number : parts.numbers[i]) + parts.texts[i + 1];
  return name;
}

/// Whether `next` is the number after `number`, written in the same way.
bool follows(const std::string& number, const std::string& next) {
  if (parse_integer(next).value_or(-1) != parse_integer(number).value_or(-1) + 1)
    return false;
  return number.size() == next.size() || (number.front() != '0' && next.front() != '0');
}

/// "001-120,130"
std::string brackets_of(std::vector<std::string> numbers) {
  std::sort(numbers.begin(), numbers.end(), [](const std::string& a, const std::string& b) {
    return std::pair(parse_integer(a), a.size()) < std::pair(parse_integer(b), b.size());
  });
  std::vector<std::string> ranges;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && follows(numbers[last], numbers[last + 1]))
      ++last;
    ranges.push_back(last == first ? numbers[first] : numbers[first] + "-" + numbers[last]);
    first = last + 1;
  }
  if (ranges.size() > max_ranges) {
    const std::size_t more = ranges.size() - max_ranges;
    ranges.resize(max_ranges);
    return join(ranges, ",") + ",+" + std::to_string(more);
  }
  return join(ranges, ",");
}

/// The numbers in which members of a family of texts differ from one another.
std::vector<int> varying_numbers(const std::vector<Parts>& members) {
  std::vector<int> varying;
  for (std::size_t i = 0; i < members.front().numbers.size(); ++i)
    if (std::any_of(members.begin(), members.end(), [&](const Parts& member) {
          return member.numbers[i] != members.front().numbers[i];
        }))
      varying.push_back(static_cast<int>(i));
  return varying;
}

} // namespace

std::vector<std::string> folded_names(const std::vector<std::string>& names) {
  std::map<std::vector<std::string>, std::size_t> by_texts;
  std::vector<std::vector<Parts>> families;
  std::set<std::string> known;
  for (const std::string& name : names) {
    if (!known.insert(name).second)
      continue;
    Parts parts = parts_of(name);
    const auto found = by_texts.emplace(parts.texts, families.size());
    if (found.second)
      families.emplace_back();
    families[found.first->second].push_back(std::move(parts));
  }
  std::vector<std::string> folded;
  for (const std::vector<Parts>& members : families) {
    const std::vector<int> varying = varying_numbers(members);
    if (varying.empty()) {
      folded.push_back(name_with(members.front(), -1, ""));
      continue;
    }
    // The last varying number is folded; names that differ in other numbers are separate.
    const int counted_number = varying.back();
    std::vector<std::pair<std::string, std::vector<std::string>>> groups;
    std::map<std::string, std::size_t> group_of;
    for (const Parts& member : members) {
      const std::string rest = name_with(member, counted_number, std::string(1, '\0'));
      const auto found = group_of.emplace(rest, groups.size());
      if (found.second)
        groups.emplace_back(rest, std::vector<std::string>());
      groups[found.first->second].second.push_back(
          member.numbers[static_cast<std::size_t>(counted_number)]);
    }
    for (const auto& [rest, numbers] : groups) {
      const std::size_t at = rest.find('\0');
      const std::string inner =
          numbers.size() == 1 ? numbers.front() : "[" + brackets_of(numbers) + "]";
      folded.push_back(rest.substr(0, at) + inner + rest.substr(at + 1));
    }
  }
  return folded;
}

std::string fold_names(const std::vector<std::string>& names) {
  return join(folded_names(names), ", ");
}

std::string fold_numbers(std::vector<int> numbers, std::size_t max_shown) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> ranges;
  std::size_t left_out = 0;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    if (ranges.size() < max_shown)
      ranges.push_back(std::to_string(numbers[first]) +
                       (last == first ? "" : "-" + std::to_string(numbers[last])));
    else
      left_out += last + 1 - first;
    first = last + 1;
  }
  return join(ranges, ",") + (left_out > 0 ? " and " + std::to_string(left_out) + " more" : "");
}

} // namespace shmemctl
