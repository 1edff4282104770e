// Text: trimming, splitting, numbers, plurals, wildcards, nearest spelling.
#include "src/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "src/base/error.h"

namespace shmemctl {

namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

} // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (;;) {
    const std::size_t to = text.find(separator, from);
    parts.emplace_back(text.substr(from, to == std::string_view::npos ? to : to - from));
    if (to == std::string_view::npos)
      return parts;
    from = to + 1;
  }
}

std::vector<std::string> split_blanks(std::string_view text) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && is_blank(text[at]))
      ++at;
    const std::size_t from = at;
    while (at < text.size() && !is_blank(text[at]))
      ++at;
    if (at > from)
      parts.emplace_back(text.substr(from, at - from));
  }
  return parts;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0)
      out += separator;
    out += parts[i];
  }
  return out;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

std::size_t utf8_sequence_length(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto continues = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  if (at >= text.size())
    return 0;
  const unsigned char first = byte(at);
  if (first < 0x80)
    return 1;
  if (first >= 0xc2 && first <= 0xdf)
    return continues(at + 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!continues(at + 1) || !continues(at + 2))
      return 0;
    if ((first == 0xe0 && byte(at + 1) < 0xa0) || (first == 0xed && byte(at + 1) > 0x9f))
      return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!continues(at + 1) || !continues(at + 2) || !continues(at + 3))
      return 0;
    if ((first == 0xf0 && byte(at + 1) < 0x90) || (first == 0xf4 && byte(at + 1) > 0x8f))
      return 0;
    return 4;
  }
  return 0;
}

std::optional<std::size_t> first_non_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_sequence_length(text, at);
    if (length == 0)
      return at;
    at += length;
  }
  return std::nullopt;
}

std::string position_of(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i < offset; ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

std::optional<long long> parse_integer(std::string_view text, int base) {
  if (base == 16 && (starts_with(text, "0x") || starts_with(text, "0X")))
    text.remove_prefix(2);
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() ||
      !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool natural_less(std::string_view left, std::string_view right) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < left.size() && j < right.size()) {
    if (is_digit(left[i]) && is_digit(right[j])) {
      const std::size_t left_from = i;
      const std::size_t right_from = j;
      while (i < left.size() && is_digit(left[i]))
        ++i;
      while (j < right.size() && is_digit(right[j]))
        ++j;
      auto digits = [](std::string_view text) {
        while (text.size() > 1 && text.front() == '0')
          text.remove_prefix(1);
        return text;
      };
      const std::string_view a = digits(left.substr(left_from, i - left_from));
      const std::string_view b = digits(right.substr(right_from, j - right_from));
      if (a != b)
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    } else {
      if (left[i] != right[j])
        return left[i] < right[j];
      ++i;
      ++j;
    }
  }
  if ((left.size() - i) != (right.size() - j))
    return left.size() - i < right.size() - j;
  return left < right;
}

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before_last, last(right.size() + 1), row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j)
    row[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (left[i - 1] != right[j - 1])});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[right.size()];
}

std::optional<std::string> nearest_spelling(std::string_view word,
                                            const std::vector<std::string>& candidates) {
  if (word.size() > 256)
    return std::nullopt;
  // Two different names of one character are never near.
  const std::size_t limit = word.size() < 2 ? 0 : std::clamp<std::size_t>(word.size() / 2, 1, 3);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(lower(word), lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> nearest = nearest_spelling(word, candidates);
  return nearest ? "did you mean " + printable(*nearest) + "? " : "";
}

bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::size_t at = 0, in_pattern = 0, after_star = std::string_view::npos, star_at = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      after_star = ++in_pattern;
      star_at = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == name[at])) {
      ++in_pattern;
      ++at;
    } else if (after_star != std::string_view::npos) {
      in_pattern = after_star;
      at = ++star_at;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*')
    ++in_pattern;
  return in_pattern == pattern.size();
}

} // namespace shmemctl
