// Whether this run's emulated devices carry out operations in any order that the specification
// allows: the variable SHMEMCTL_EMULATED_HCA_PLACEMENT=any, as the tool's own processes have it.
#pragma once

#include <cstdlib>
#include <cstring>

namespace shmemctl::test {

inline bool any_placement() {
  const char* const wanted = std::getenv("SHMEMCTL_EMULATED_HCA_PLACEMENT");
  return wanted && std::strcmp(wanted, "any") == 0;
}
/// The option's text.
inline const char* placement_text() {
  return any_placement() ? "any" : "ordered";
}

} // namespace shmemctl::test
