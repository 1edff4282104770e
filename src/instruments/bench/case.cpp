#include "src/instruments/bench/case.h"

namespace shmemctl::bench {

const char* to_string(Metric metric) {
  switch (metric) {
  case Metric::latency:
    return "latency";
  case Metric::bandwidth:
    return "bandwidth";
  case Metric::rate:
    return "rate";
  }
  return "unknown";
}

const char* to_string(Traffic traffic) {
  switch (traffic) {
  case Traffic::pair:
    return "pair";
  case Traffic::pairs:
    return "pairs";
  case Traffic::all_to_all:
    return "all-to-all";
  case Traffic::collective:
    return "collective";
  case Traffic::local:
    return "local";
  }
  return "unknown";
}

const char* to_string(Direction direction) {
  return direction == Direction::uni ? "uni" : "bi";
}

} // namespace shmemctl::bench
