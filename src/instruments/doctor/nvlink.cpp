// Checks of NVLinks.
#include "src/instruments/doctor/nvlink.h"

#include <algorithm>
#include <map>

#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"

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

namespace {

/// The largest number of links by model name; all GPUs of one model must have this number.
std::map<std::string, int> max_links_by_model(const Node& node) {
  std::map<std::string, int> most;
  for (const Gpu& gpu : node.gpus) {
    int& entry = most[gpu.name.value.value_or("")];
    entry = std::max(entry, nvlink_count(gpu));
  }
  return most;
}

std::string link_status_command(const std::string& gpu) {
  return "nvidia-smi nvlink --status -i " + gpu + " && nvidia-smi nvlink --errorcounters -i " + gpu;
}

/// Used where NVML reports no links, or is not asked: compares GPUs of one model with each other.
CheckResult judge_link_counts(const Node& node) {
  const std::map<std::string, int> most = max_links_by_model(node);
  if (std::all_of(most.begin(), most.end(), [](const auto& entry) { return entry.second == 0; }))
    return skipped("no active NVLink on any GPU: none present, or the source does not report them");
  std::vector<std::string> down;
  std::vector<std::string> counts;
  std::string fix;
  bool cut_off = false;
  for (const Gpu& gpu : node.gpus) {
    const int count = nvlink_count(gpu);
    const int expected = most.at(gpu.name.value.value_or(""));
    counts.push_back("GPU" + std::to_string(gpu.index) + " " + std::to_string(count));
    if (count == expected)
      continue;
    cut_off = cut_off || count == 0;
    down.push_back(gpu_name(node, gpu) + " has " + std::to_string(count) + " of " +
                   std::to_string(expected));
    if (fix.empty())
      fix = link_status_command(
          gpu.pci < 0 ? std::to_string(gpu.index)
                      : to_string(node.pci[static_cast<std::size_t>(gpu.pci)].address));
  }
  const std::string evidence = "active NVLinks: " + join(counts, ", ");
  if (down.empty())
    return passed("all GPUs of a model have the same number of active NVLinks", evidence);
  const std::string reason = "NVLinks are down: " + name_list(down);
  return cut_off ? failed(reason, evidence, fix) : warned(reason, evidence, fix);
}

} // namespace

std::optional<CheckResult> judge_nvlinks(const NvmlSurvey& survey) {
  std::vector<std::string> down;
  std::vector<std::string> counts;
  std::string fix;
  bool cut_off = false;
  for (const SurveyedGpu& each : survey.gpus) {
    const Fact<int>& present = each.gpu.nvlinks_present;
    const Fact<int>& active = each.gpu.nvlinks_active;
    if (!present || !active || *present == 0)
      continue;
    counts.push_back(each.name() + " " + std::to_string(*active) + "/" + std::to_string(*present));
    if (*active >= *present)
      continue;
    down.push_back(each.name() + " has " + std::to_string(*active) + " of " +
                   std::to_string(*present));
    cut_off = cut_off || *active == 0;
    if (fix.empty())
      fix = link_status_command(each.name());
  }
  if (counts.empty())
    return std::nullopt;
  const std::string evidence = "nvmlDeviceGetNvLinkState: active/present: " + name_list(counts);
  if (down.empty())
    return passed("all NVLinks of every GPU are active", evidence);
  const std::string reason = "NVLinks are down: " + name_list(down);
  return cut_off ? failed(reason, evidence, fix) : warned(reason, evidence, fix);
}

CheckResult nvlink_state(const CheckContext& context) {
  const Node& node = context.node;
  if (const auto reason = no_nvidia_gpu(node))
    return skipped(*reason);
  if (context.sysroot.live())
    if (const auto result = judge_nvlinks(live_nvml()))
      return *result;
  return judge_link_counts(node);
}

} // namespace shmemctl::doctor
