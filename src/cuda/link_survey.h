// How quickly the GPUs of a node copy to each other: what was measured. No CUDA header: builds
// without CUDA have this too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shmemctl::cuda {

/// One ordered pair of GPUs: the source writes into the target's memory.
struct LinkSample {
  int source = 0, target = 0;  ///< CUDA's ordinals
  std::string problem;         ///< why the pair could not be looked at; "" if it could
  std::string refused;         ///< why the source cannot reach the target's memory; "" if it can
  std::vector<double> copy_us; ///< time of one copy, by round; empty if none was made
  std::string wrong;           ///< the first byte that did not arrive; "" if all did
};

struct LinkSurvey {
  std::string problem;           ///< why nothing was measured: one clause; "" if it was
  std::vector<std::string> gpus; ///< PCI addresses by ordinal: "0000:1b:00.0"
  std::uint64_t copy_bytes = 0;
  std::vector<LinkSample> samples;
};

} // namespace shmemctl::cuda
