// Probes each GPU and measures copies between GPUs, in one process and without the runtime.
#pragma once

#include <memory>

#include "src/runtime/cuda/driver.h"
#include "src/runtime/cuda/gpu_survey.h"

namespace shmemctl::cuda {

struct DevicePlan {
  std::size_t copy_bytes = std::size_t{64} << 20; ///< between page-locked memory and GPU memory
  int rounds = 5;                                 ///< measured rounds, after one warm-up round
};

/// Probes one GPU after the other: opens it, exports an allocation as descriptor and as IPC handle,
/// copies data to it and back, and compares. Does not throw: see DeviceSample::problem.
DeviceSurvey survey_devices(const std::shared_ptr<const Driver>& driver,
                            const DevicePlan& plan = {});

// Measures copies between the GPUs of this node, in one process and without the runtime.

struct LinkPlan {
  /// A multiple of 2 MiB; each GPU allocates twice as much.
  std::size_t copy_bytes = std::size_t{32} << 20;
  int copies = 8; ///< copies between two clock reads, without a pause
  int rounds = 5; ///< measured rounds, after one warm-up round
};

/// Measures every ordered pair of visible GPUs, one after the other: the source's copy engine
/// writes to memory of the target that is mapped for the source, like memory of the symmetric heap.
/// Then the target reads all bytes back, and they are compared. Does not throw: see
/// LinkSample::problem and refused.
LinkSurvey survey_links(const std::shared_ptr<const Driver>& driver, const LinkPlan& plan = {});

} // namespace shmemctl::cuda
