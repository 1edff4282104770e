#include "src/doctor/nvml_survey.h"

namespace shmemctl::doctor {

namespace {

NvmlSurvey ask_nvml() {
  NvmlSurvey survey;
  const std::optional<Nvml> nvml = Nvml::open(Nvml::default_library, survey.problem);
  if (!nvml)
    return survey;
  survey.problem.clear();
  survey.file = nvml->file();
  const Fact<int> count = nvml->device_count();
  if (!count) {
    survey.problem = count.origin;
    return survey;
  }
  for (int index = 0; index < *count; ++index)
    survey.gpus.push_back({nvml->gpu(index), nvml->health(index)});
  return survey;
}

} // namespace

std::string SurveyedGpu::name() const {
  return gpu.address ? to_string(*gpu.address) : std::to_string(gpu.index);
}

const NvmlSurvey& live_nvml() {
  static const NvmlSurvey survey = ask_nvml();
  return survey;
}

} // namespace shmemctl::doctor
