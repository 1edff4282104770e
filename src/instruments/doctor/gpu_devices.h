// The features of each GPU and the speed of its copies from and to the host, measured in a child
// process with a deadline.
#pragma once

#include <chrono>
#include <string>

#include "src/runtime/cuda/gpu_survey.h"

namespace shmemctl::doctor {

/// Surveys every GPU of this node (CUDA_VISIBLE_DEVICES is ignored). Never throws: failures are in
/// DeviceSurvey::problem.
cuda::DeviceSurvey survey_live_devices(std::chrono::milliseconds deadline);

/// The result for the live machine. Only the first call in a process measures it.
const cuda::DeviceSurvey& live_devices();

/// Writes the child's result as text, and parses such text. If the text cannot be parsed, the
/// result is a `problem`.
std::string to_text(const cuda::DeviceSurvey& survey);
cuda::DeviceSurvey parse_device_survey(const std::string& text);

} // namespace shmemctl::doctor
