// What counter files and recorded `ethtool -S` texts say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// One counter as text says it: a value, or in words why it is none.
struct CounterText {
  std::optional<std::uint64_t> value; ///< at most 2^63 - 1
  std::string problem;                ///< "reads \"N/A (no PMA)\""; "" if there is a value
};

/// A counter file's content: one whole number, with blanks around it. Any bytes give a value or a
/// problem. Negative numbers and those from 2^63 on (-1 as drivers print it) are no counts.
CounterText parse_counter_text(std::string_view text);

struct NamedCounter {
  std::string name;
  CounterText text;
};
/// Lines "name: value" as `ethtool -S` prints them; lines of another form are passed over, and of a
/// name that comes twice the first counts. At most 4096 lines are read.
std::vector<NamedCounter> parse_ethtool_text(std::string_view text);

} // namespace shmemctl
