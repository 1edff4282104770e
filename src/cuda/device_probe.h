// Tries what the runtime needs of each GPU, in one process and without the runtime.
#pragma once

#include <memory>

#include "src/cuda/device_survey.h"
#include "src/cuda/driver.h"

namespace shmemctl::cuda {

struct DevicePlan {
  std::size_t copy_bytes = std::size_t{64} << 20; ///< between page-locked memory and the GPU's
  int rounds = 5;                                 ///< after one that is not counted
};

/// One GPU after the other: opens it, shares a piece of its memory both ways, copies to it and
/// back, and compares. Does not throw: see DeviceSample::problem.
DeviceSurvey survey_devices(const std::shared_ptr<const Driver>& driver,
                            const DevicePlan& plan = {});

} // namespace shmemctl::cuda
