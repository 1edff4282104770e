// The speed of copies between this node's GPUs, measured in a child process with a deadline.
#pragma once

#include <chrono>
#include <string>

#include "src/runtime/cuda/gpu_survey.h"

namespace shmemctl::doctor {

/// Every ordered pair of this node's GPUs (CUDA_VISIBLE_DEVICES is ignored). Never throws: failures
/// are in LinkSurvey::problem.
cuda::LinkSurvey survey_live_links(std::chrono::milliseconds deadline);

/// The result of the child process as text, and parsed again; unreadable text is a problem.
std::string to_text(const cuda::LinkSurvey& survey);
cuda::LinkSurvey parse_link_survey(const std::string& text);

} // namespace shmemctl::doctor
