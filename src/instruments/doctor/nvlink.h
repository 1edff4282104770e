// Checks of NVLinks.
#pragma once

#include <string>
#include <vector>

#include "src/model/topo/readers/nvml.h"

namespace shmemctl::doctor {

struct SurveyedGpu {
  NvmlGpu gpu;
  NvmlHealth health;
  /// Its PCI address, or NVML's index if that is unknown: what `nvidia-smi -i` takes.
  std::string name() const;
};

struct NvmlSurvey {
  std::string problem; ///< why NVML could not be queried; "" if it was
  std::string file;    ///< the library
  std::vector<SurveyedGpu> gpus;
};

/// The result of the live machine; queried once per process, at the first call. Never throws.
const NvmlSurvey& live_nvml();

} // namespace shmemctl::doctor
