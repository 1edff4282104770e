// Macros that define the makers of the cases in the table (src/instruments/bench/case_table.cpp),
// and makers that are shared. A row of the table refers to a maker by its name.
#pragma once

#include <memory>

#include "src/instruments/bench/case.h"

/// Defines the maker of a case, which MAKER(maker) in a row of the table calls.
/// @param ... the class of the case, derived from Case
#define SHMEMCTL_CASE(maker, ...)                                                                  \
  std::unique_ptr<Case> maker(const Point& point) {                                                \
    return std::make_unique<__VA_ARGS__>(point);                                                   \
  }                                                                                                \
  std::unique_ptr<Case> maker(const Point& point)

/// As SHMEMCTL_CASE, for a case whose buffers are in a heap or registered. `make_registered` makes
/// the latter.
#define SHMEMCTL_CASE_BY_MEMORY(maker, OnHeap, make_registered)                                    \
  std::unique_ptr<Case> maker(const Point& point) {                                                \
    if (point.launch.memory == MemoryKind::registered)                                             \
      return make_registered(point);                                                               \
    return std::make_unique<OnHeap>(point);                                                        \
  }                                                                                                \
  std::unique_ptr<Case> maker(const Point& point)

namespace shmemctl::bench {

/// Puts and gets between registered buffers (registered.cpp).
std::unique_ptr<Case> registered_put_by_host(const Point& point);
std::unique_ptr<Case> registered_put_latency_by_host(const Point& point);
std::unique_ptr<Case> registered_get_by_host(const Point& point);
std::unique_ptr<Case> registered_get_latency_by_host(const Point& point);

} // namespace shmemctl::bench
