#include "src/hotspots/counter_text.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t most_lines = 4096;
constexpr std::uint64_t largest_count = std::numeric_limits<std::int64_t>::max();

CounterText no_value(std::string problem) {
  return {std::nullopt, std::move(problem)};
}

/// Names as drivers write them: ethtool's own are up to 32 characters.
bool is_counter_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c < 127; });
}

} // namespace

CounterText parse_counter_text(std::string_view text) {
  text = trim(text);
  if (text.empty())
    return no_value("is empty");
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size();
  if (whole && error == std::errc() && value <= largest_count)
    return {value, ""};
  const std::string shown = "reads \"" + printable(std::string(text.substr(0, 40)), 40) + "\"";
  if (whole && value == std::numeric_limits<std::uint64_t>::max())
    return no_value(shown + ", which is -1: the driver does not count this");
  return no_value(shown + (whole ? ", more than any count" : ""));
}

std::vector<NamedCounter> parse_ethtool_text(std::string_view text) {
  std::vector<NamedCounter> counters;
  std::set<std::string_view> seen;
  for (std::size_t line = 0; line < most_lines && !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = whole.rfind(':');
    if (colon == std::string_view::npos)
      continue;
    const std::string_view name = trim(whole.substr(0, colon));
    const std::string_view value = trim(whole.substr(colon + 1));
    if (!is_counter_name(name) || value.empty() || !seen.insert(name).second)
      continue;
    counters.push_back({std::string(name), parse_counter_text(value)});
  }
  return counters;
}

} // namespace shmemctl
