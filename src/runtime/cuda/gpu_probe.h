// Probes each GPU and measures copies between GPUs, in one process and without the runtime.
#pragma once

#include <memory>

#include "src/runtime/cuda/driver.h"
#include "src/runtime/cuda/gpu_survey.h"

namespace shmemctl::cuda {

struct DevicePlan {
  std::size_t copy_bytes = std::size_t{64} << 20; ///< between page-locked memory and the GPU's
  int rounds = 5;                                 ///< counted rounds; one more goes before them
};

/// One GPU after the other: opens it, exports an allocation as descriptor and as IPC handle, copies
/// to it and back, and compares. Does not throw: see DeviceSample::problem.
DeviceSurvey survey_devices(const std::shared_ptr<const Driver>& driver,
                            const DevicePlan& plan = {});

// Measures copies between the GPUs of this node, in one process and without the runtime.

struct LinkPlan {
  /// A multiple of 2 MiB; each GPU allocates twice as much.
  std::size_t copy_bytes = std::size_t{32} << 20;
  int copies = 8; ///< back to back between two clock reads
  int rounds = 5; ///< counted rounds; one more goes before them
};

/// Every ordered pair of visible GPUs, one after the other: the source's copy engine writes into
/// memory of the target that is mapped for the source, as the symmetric heap's is. Then all bytes
/// are read back by the target and compared. Does not throw: see LinkSample::problem and refused.
LinkSurvey survey_links(const std::shared_ptr<const Driver>& driver, const LinkPlan& plan = {});

} // namespace shmemctl::cuda
