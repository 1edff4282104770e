#include "src/instruments/doctor/gpu_links.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "build_info.h"
#include "src/base/json_values.h"
#include "src/instruments/doctor/support.h"
#if SHMEMCTL_HAVE_CUDA
#include "src/runtime/cuda/gpu_probe.h"
#endif

namespace shmemctl::doctor {

namespace {

using nlohmann::json;

cuda::LinkSurvey survey_links() {
  cuda::LinkSurvey survey;
#if SHMEMCTL_HAVE_CUDA
  ::unsetenv("CUDA_VISIBLE_DEVICES"); // in the child only, so that every GPU of the node is visible
  if (const auto driver = cuda::Driver::open("libcuda.so.1", survey.problem))
    survey = cuda::survey_links(driver);
#else
  survey.problem = "this binary was built without CUDA";
#endif
  return survey;
}

} // namespace

cuda::LinkSurvey survey_live_links(std::chrono::milliseconds deadline) {
  const ChildOutput answer =
      call_in_child([] { return to_text(survey_links()); }, "copies between GPUs", deadline);
  if (!answer.problem.empty()) {
    cuda::LinkSurvey survey;
    survey.problem = answer.problem;
    return survey;
  }
  return parse_link_survey(answer.text);
}

std::string to_text(const cuda::LinkSurvey& survey) {
  json samples = json::array();
  for (const cuda::LinkSample& sample : survey.samples)
    samples.push_back({sample.source, sample.target, sample.problem, sample.refused, sample.copy_us,
                       sample.wrong});
  const json whole = {survey.problem, survey.gpus, survey.copy_bytes, std::move(samples)};
  return json_line(whole);
}

cuda::LinkSurvey parse_link_survey(const std::string& text) {
  cuda::LinkSurvey survey;
  try {
    const json whole = from_json_line(text);
    survey.problem = whole.at(0).get<std::string>();
    survey.gpus = whole.at(1).get<std::vector<std::string>>();
    survey.copy_bytes = whole.at(2).get<std::uint64_t>();
    const auto ordinal = [&survey](const json& value) {
      const auto number = value.get<std::size_t>();
      if (number >= survey.gpus.size())
        throw std::out_of_range("GPU");
      return static_cast<int>(number);
    };
    for (const json& row : whole.at(3))
      survey.samples.push_back({ordinal(row.at(0)), ordinal(row.at(1)),
                                row.at(2).get<std::string>(), row.at(3).get<std::string>(),
                                row.at(4).get<std::vector<double>>(),
                                row.at(5).get<std::string>()});
  } catch (const std::exception&) {
    survey = {};
    survey.problem = "the probe of GPU-to-GPU links returned no result";
  }
  return survey;
}

} // namespace shmemctl::doctor
