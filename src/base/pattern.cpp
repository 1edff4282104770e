#include "src/base/pattern.h"

namespace shmemctl {

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
