#include "src/runtime/same_program.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace shmemctl {

std::optional<OtherProgram> find_other_program(const std::vector<std::string>& programs) {
  std::unordered_map<std::string, std::size_t> count;
  for (const std::string& program : programs)
    ++count[program];
  if (count.size() < 2)
    return std::nullopt;
  // The first one of equals.
  const auto reference = std::max_element(programs.begin(), programs.end(),
                                          [&](const std::string& left, const std::string& right) {
                                            return count[left] < count[right];
                                          });
  const auto other =
      std::find_if(programs.begin(), programs.end(),
                   [&](const std::string& program) { return program != *reference; });
  return OtherProgram{static_cast<int>(other - programs.begin()),
                      static_cast<int>(reference - programs.begin())};
}

} // namespace shmemctl
