// The features of each GPU, and its copies from and to the host, measured in a child process with a
// deadline.
#pragma once

#include <chrono>
#include <string>

#include "src/runtime/cuda/gpu_survey.h"

namespace shmemctl::doctor {

/// Every GPU of this node (CUDA_VISIBLE_DEVICES is ignored). Never throws: failures are in
/// DeviceSurvey::problem.
cuda::DeviceSurvey survey_live_devices(std::chrono::milliseconds deadline);

/// The result of the live machine; queried once per process, at the first call.
const cuda::DeviceSurvey& live_devices();

/// The result of the child process as text, and parsed again; unreadable text is a problem.
std::string to_text(const cuda::DeviceSurvey& survey);
cuda::DeviceSurvey parse_device_survey(const std::string& text);

} // namespace shmemctl::doctor
