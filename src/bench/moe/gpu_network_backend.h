// What the GPU backends have in common whose kernels reach some PEs by a network.
#pragma once

#include "src/bench/moe/gpu_backend_class.h"

namespace shmemctl::moe {

class NetworkGpuBackend : public GpuBackend {
public:
  using GpuBackend::GpuBackend;

protected:
  int sms(Direction direction) const { return *settings(direction).sms; }
  /// What is sent from may still be read when a call is over here: so it is filled once. A row that
  /// is not packed is then seen in the first call, or where routings change.
  void fill_sent(const std::vector<const GpuPart*>& parts) { poison_parts(parts); }
};

} // namespace shmemctl::moe
