// What NVML reports about the GPUs of this node, for the checks of GPUs and NVLinks.
#pragma once

#include <string>
#include <vector>

#include "src/model/topo/readers/nvml.h"

namespace shmemctl::doctor {

struct SurveyedGpu {
  NvmlGpu gpu;
  NvmlHealth health;
  /// The GPU's PCI address or, if that is unknown, its NVML index: a valid argument of `nvidia-smi
  /// -i`.
  std::string name() const;
};

struct NvmlSurvey {
  std::string problem; ///< why NVML could not be queried; "" on success
  std::string file;    ///< the library
  std::vector<SurveyedGpu> gpus;
};

/// The result for the live machine. Only the first call in a process queries NVML. Never throws.
const NvmlSurvey& live_nvml();

} // namespace shmemctl::doctor
