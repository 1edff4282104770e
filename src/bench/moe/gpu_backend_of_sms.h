// A GPU backend whose kernels have one setting.
#pragma once

#include "src/bench/moe/gpu_backend_class.h"

namespace shmemctl::moe {

/// Kernels that have one setting, their SMs.
class GpuBackendOfSms : public GpuBackend {
public:
  using GpuBackend::GpuBackend;
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

private:
  static Settings only_sms(const Settings& settings) {
    Settings only;
    only.sms = settings.sms;
    return only;
  }
};

} // namespace shmemctl::moe
