// The facts about the job and this PE's ports that all parts of ibdevx or ibgda use.
#pragma once

#include <memory>
#include <vector>

#include "src/base/error.h"
#include "transports/mlx5/hca.h"
#include "transports/rc/job.h"

namespace shmemctl::mlx5 {

class EmulatedHca;

/// A port of this PE.
struct Port {
  std::unique_ptr<Hca> hca;
  EmulatedHca* emulated = nullptr; ///< the same HCA if it is emulated, else nullptr

  const HcaInfo& info() const { return hca->info(); }
};

struct JobView : rc::Job {
  using rc::Job::Job;
  using rc::Job::where;

  std::vector<Port> ports; ///< best first

  /// This PE and a port, for error messages.
  Where where(const Port& port) const { return where(port.info().device, port.info().port); }
};

} // namespace shmemctl::mlx5
