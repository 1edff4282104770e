#include "src/model/topo/advice/wording.h"

#include <cmath>
#include <fmt/format.h>

#include "src/base/error.h"

namespace shmemctl {

std::string nic_name(const Node& node, int nic) {
  return printable(node.nics[static_cast<std::size_t>(nic)].name, 64);
}

std::string port_name(const Node& node, int nic, int port) {
  return nic_name(node, nic) + "/" + std::to_string(port);
}

std::string enumerate(const std::vector<std::string>& names, std::size_t limit) {
  std::string text;
  const std::size_t shown = names.size() > limit ? limit : names.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == shown && shown == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + names[i];
  }
  if (shown < names.size())
    text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string numbered(const std::string& what, std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text = what;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    if (end - i < 3)
      end = i + 1;
    text += fmt::format("{}{}", i == 0 ? " " : ", ", numbers[i]);
    if (end - i >= 3)
      text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

const char* is_or_are(std::size_t count) {
  return count == 1 ? "is" : "are";
}

std::string bandwidth_share(double sharers) {
  constexpr double rounding = 1e-6;
  if (std::abs(sharers - 2) < rounding)
    return "half the bandwidth";
  if (std::abs(sharers - std::round(sharers)) < rounding)
    return fmt::format("1/{:.0f} of the bandwidth", sharers);
  return fmt::format("{:.0f}% of the bandwidth", 100 / sharers);
}

void sort_findings(Findings& findings) {
  sort_by_severity(findings, [](const Finding& finding) -> const Finding& { return finding; });
}

} // namespace shmemctl
