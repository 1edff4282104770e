// The speed of copies between this node's GPUs, measured in a child process with a deadline.
#pragma once

#include <chrono>
#include <string>

#include "src/runtime/cuda/gpu_survey.h"

namespace shmemctl::doctor {

/// Measures every ordered pair of this node's GPUs (CUDA_VISIBLE_DEVICES is ignored). Never throws:
/// failures are in LinkSurvey::problem.
cuda::LinkSurvey survey_live_links(std::chrono::milliseconds deadline);

/// Writes the child's result as text, and parses such text. If the text cannot be parsed, the
/// result is a `problem`.
std::string to_text(const cuda::LinkSurvey& survey);
cuda::LinkSurvey parse_link_survey(const std::string& text);

} // namespace shmemctl::doctor
