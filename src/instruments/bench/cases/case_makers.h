// How the cases of the table (src/instruments/bench/case_table.cpp) are made: each defines its
// maker, and its row names it.
#pragma once

#include <memory>

#include "src/instruments/bench/case.h"

/// Defines what makes a case: MAKER(put_by_host) of a row calls it.
/// @param ... its class over Case
#define SHMEMCTL_CASE(maker, ...)                                                                  \
  std::unique_ptr<Case> maker(const Point& point) {                                                \
    return std::make_unique<__VA_ARGS__>(point);                                                   \
  }                                                                                                \
  std::unique_ptr<Case> maker(const Point& point)

/// The same for a case whose buffers are in a heap, or registered: then `make_registered` makes it.
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
