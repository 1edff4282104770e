#include "src/base/units.h"

#include <array>
#include <cmath>

#include "src/base/text.h"

namespace shmemctl {

std::optional<std::uint64_t> parse_size_bytes(std::string_view text) {
  text = trim(text);
  if (ends_with(text, "iB"))
    text.remove_suffix(2);
  else if (!text.empty() && (text.back() == 'B' || text.back() == 'b'))
    text.remove_suffix(1);
  double factor = 1;
  if (!text.empty()) {
    static constexpr std::string_view letters = "KMGT";
    const char last = text.back() >= 'a' ? static_cast<char>(text.back() - 'a' + 'A') : text.back();
    const std::size_t power = letters.find(last);
    if (power != std::string_view::npos) {
      factor = std::pow(1024.0, static_cast<double>(power + 1));
      text.remove_suffix(1);
    }
  }
  if (factor == 1) { // integers stay exact past 2^53
    const std::optional<long long> bytes = parse_integer(text);
    if (!bytes || *bytes < 0)
      return std::nullopt;
    return static_cast<std::uint64_t>(*bytes);
  }
  const std::optional<double> number = parse_number(text);
  if (!number || *number < 0 || *number * factor >= 9.2e18)
    return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(*number * factor));
}

std::optional<double> parse_duration_s(std::string_view text) {
  text = trim(text);
  double factor = 1;
  if (ends_with(text, "ms")) {
    factor = 1e-3;
    text.remove_suffix(2);
  } else if (!text.empty()) {
    static constexpr std::string_view letters = "smhd";
    static constexpr std::array<double, letters.size()> seconds = {1, 60, 3600, 86400};
    if (const std::size_t unit = letters.find(text.back()); unit != std::string_view::npos) {
      factor = seconds.at(unit);
      text.remove_suffix(1);
    }
  }
  const std::optional<double> number = parse_number(text);
  if (!number || *number < 0 || !std::isfinite(*number * factor))
    return std::nullopt;
  return *number * factor;
}

std::string format_size_bytes(std::uint64_t size_bytes) {
  static constexpr std::array<const char*, 5> letters = {"", "K", "M", "G", "T"};
  std::size_t power = 0;
  while (size_bytes != 0 && size_bytes % 1024 == 0 && power + 1 < letters.size()) {
    size_bytes /= 1024;
    ++power;
  }
  return std::to_string(size_bytes) + letters[power];
}

double pcie_bandwidth_GBps(double speed_GTps, int width) {
  double efficiency = 128.0 / 130.0;
  if (speed_GTps <= 5.0)
    efficiency = 0.8;
  else if (speed_GTps >= 64.0)
    efficiency = 242.0 / 256.0;
  return speed_GTps * efficiency * width / 8.0;
}

std::optional<double> parse_link_speed_GTps(std::string_view text) {
  text = trim(text);
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || !starts_with(trim(text.substr(blank)), "GT/s"))
    return std::nullopt;
  const std::optional<double> speed = parse_number(text.substr(0, blank));
  return speed && *speed > 0 && *speed < 10000 ? speed : std::nullopt;
}

} // namespace shmemctl
