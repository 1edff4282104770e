// What each GPU can do, and its copies from and to the host, found in a child process with a
// deadline.
#pragma once

#include <chrono>
#include <string>

#include "src/cuda/gpu_survey.h"

namespace shmemctl::doctor {

/// Every GPU of this node (CUDA_VISIBLE_DEVICES is ignored). Never throws: what hinders it is
/// DeviceSurvey::problem.
cuda::DeviceSurvey survey_live_devices(std::chrono::milliseconds deadline);

/// The live machine's answer; asked once per process, at the first call.
const cuda::DeviceSurvey& live_devices();

/// The child's answer, and back; what cannot be read is a problem.
std::string to_text(const cuda::DeviceSurvey& survey);
cuda::DeviceSurvey parse_device_survey(const std::string& text);

} // namespace shmemctl::doctor
