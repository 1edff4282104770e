// Deadlines of tests: long enough for a busy machine, so that a test that misses one hangs.
#pragma once

#include <chrono>

#include "src/base/deadline.h"

namespace shmemctl::test {

inline Deadline soon(double span_s = 60) {
  return Deadline::after(std::chrono::duration<double>(span_s));
}

} // namespace shmemctl::test
