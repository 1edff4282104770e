#include "src/bench/case.h"

namespace shmemctl::bench {

std::vector<CaseEntry> stream_cases() {
  return {};
}

} // namespace shmemctl::bench
