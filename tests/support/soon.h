// Deadlines of tests: long enough for a busy machine, so that who misses one hangs.
#pragma once

#include <chrono>
#include <string>

#include "src/base/deadline.h"

namespace shmemctl {

inline Deadline soon(double span_s = 60) {
  return Deadline::after(std::chrono::duration<double>(span_s));
}
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace shmemctl
