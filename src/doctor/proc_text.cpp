#include "src/doctor/proc_text.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "src/base/text.h"

namespace shmemctl::doctor {

namespace {

constexpr std::size_t max_version_parts = 4;

/// Calls `use` for each line; stops when it returns true.
template <class Use>
void for_each_line(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (use(text.substr(0, end)))
      return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// "unlimited" gives an empty optional inside; nothing for other words that are no number.
std::optional<std::optional<std::uint64_t>> limit_value(const std::string& word) {
  if (word == "unlimited")
    return std::optional<std::uint64_t>{};
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    return std::nullopt;
  return std::optional<std::uint64_t>{value};
}

} // namespace

std::vector<int> version_numbers(std::string_view text) {
  std::vector<int> numbers;
  while (numbers.size() < max_version_parts) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0)
      break;
    numbers.push_back(value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!starts_with(text, "."))
      break;
    text.remove_prefix(1);
  }
  return numbers;
}

std::optional<std::string> field_of(std::string_view text, std::string_view key) {
  std::optional<std::string> value;
  for_each_line(text, [&](std::string_view line) {
    if (!starts_with(line, key))
      return false;
    value = std::string(trim(line.substr(key.size())));
    return true;
  });
  return value;
}

std::optional<Limit> find_limit(std::string_view limits, std::string_view name) {
  const std::optional<std::string> row = field_of(limits, name);
  const std::vector<std::string> words = split_blanks(row.value_or(""));
  if (words.size() < 2)
    return std::nullopt;
  const auto soft = limit_value(words[0]);
  const auto hard = limit_value(words[1]);
  if (!soft || !hard)
    return std::nullopt;
  return Limit{*soft, *hard, join(words, " ")};
}

std::optional<Mount> find_mount(std::string_view mounts, std::string_view mount_point) {
  std::optional<Mount> found;
  for_each_line(mounts, [&](std::string_view line) {
    const std::vector<std::string> words = split_blanks(line);
    if (words.size() >= 4 && words[1] == mount_point)
      found = Mount{words[2], words[3]};
    return false;
  });
  return found;
}

std::optional<std::uint64_t> mount_size_bytes(std::string_view options) {
  for (const std::string& option : split(options, ',')) {
    if (!starts_with(option, "size="))
      continue;
    std::uint64_t value = 0;
    const char* const from = option.data() + 5;
    const char* const to = option.data() + option.size();
    const auto [end, error] = std::from_chars(from, to, value);
    if (error != std::errc())
      return std::nullopt;
    const std::string unit = lower(std::string_view(end, static_cast<std::size_t>(to - end)));
    const int shift = unit.empty()  ? 0
                      : unit == "k" ? 10
                      : unit == "m" ? 20
                      : unit == "g" ? 30
                                    : -1;
    if (shift < 0 || value > std::numeric_limits<std::uint64_t>::max() >> shift)
      return std::nullopt;
    return value << shift;
  }
  return std::nullopt;
}

std::optional<NvidiaVersion> parse_nvidia_version(std::string_view text) {
  const std::optional<std::string> line = field_of(text, "NVRM version:");
  if (!line)
    return std::nullopt;
  for (const std::string& word : split_blanks(*line)) {
    const std::vector<int> numbers = version_numbers(word);
    if (numbers.size() >= 2)
      return NvidiaVersion{word, line->find("Open Kernel Module") != std::string::npos};
  }
  return std::nullopt;
}

std::optional<long long> registry_dword(std::string_view params, std::string_view key) {
  std::optional<std::string> list = field_of(params, "RegistryDwords:");
  if (!list)
    return std::nullopt;
  std::erase(*list, '"');
  std::optional<long long> value;
  for (const std::string& entry : split(*list, ';')) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || lower(trim(entry.substr(0, equals))) != lower(key))
      continue;
    const std::string word(trim(std::string_view(entry).substr(equals + 1)));
    value = parse_integer(word, starts_with(lower(word), "0x") ? 16 : 10);
  }
  return value;
}

std::optional<std::string> selected_word(std::string_view text) {
  const std::size_t from = text.find('[');
  const std::size_t to = text.find(']', from == std::string_view::npos ? 0 : from);
  if (from == std::string_view::npos || to == std::string_view::npos)
    return std::nullopt;
  return std::string(text.substr(from + 1, to - from - 1));
}

} // namespace shmemctl::doctor
