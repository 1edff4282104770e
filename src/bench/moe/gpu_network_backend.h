// What the GPU backends have in common whose kernels reach some PEs by a network.
#pragma once

#include "src/bench/moe/gpu_backend_class.h"

namespace shmemctl::moe {

class NetworkGpuBackend : public GpuBackend {
public:
  using GpuBackend::GpuBackend;
  /// Of what can be set, these kernels have the SMs alone.
  Settings settings(Direction direction) const override {
    return only_sms(GpuBackend::settings(direction));
  }
  std::string cannot_use(Direction direction, const Settings& wanted) const override {
    const std::string unknown = unknown_setting(wanted, settings(direction));
    return unknown.empty() ? GpuBackend::cannot_use(direction, wanted) : unknown;
  }
  std::vector<Settings> candidates(Direction direction) const override {
    std::vector<Settings> all;
    for (const Settings& one : GpuBackend::candidates(direction))
      if (all.empty() || all.back().sms != one.sms)
        all.push_back(only_sms(one));
    return all;
  }

protected:
  int sms(Direction direction) const { return *settings(direction).sms; }
  /// What is sent from may still be read when a call is over here: so it is filled once. A row that
  /// is not packed is then seen in the first call, or where routings change.
  void fill_sent(const std::vector<const GpuPart*>& parts) { poison_parts(parts); }

private:
  static Settings only_sms(const Settings& settings) {
    Settings only;
    only.sms = settings.sms;
    return only;
  }
};

} // namespace shmemctl::moe
