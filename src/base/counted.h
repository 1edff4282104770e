// Numbers with their words.
#pragma once

#include <cstddef>
#include <string>

namespace shmemctl {

/// "1 row", "3 rows".
inline std::string counted(std::size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

} // namespace shmemctl
