// Whether the GPUs' memory and clocks are fit for work, by NVML.
#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/support.h"

namespace shmemctl::doctor {

namespace {

/// Names of the GPUs that something is so of.
template <class Predicate>
std::vector<std::string> gpus_where(const NvmlSurvey& survey, Predicate predicate) {
  std::vector<std::string> names;
  for (const SurveyedGpu& each : survey.gpus)
    if (predicate(each.health))
      names.push_back(each.name());
  return names;
}

bool tells_anything(const NvmlHealth& health) {
  return health.uncorrected_ecc_errors || health.remapped_rows || health.retired_pages_pending;
}

std::string reset_command(const std::vector<std::string>& gpus) {
  return "nvidia-smi --gpu-reset -i " + join(gpus, ",") + "  # with no process on them";
}

/// The worst trouble first; nothing if NVML has seen none.
std::optional<CheckResult> memory_trouble(const NvmlSurvey& survey) {
  const auto failed_rows = gpus_where(survey, [](const NvmlHealth& health) {
    return health.remapped_rows && (*health.remapped_rows).failed;
  });
  if (!failed_rows.empty())
    return failed("memory rows could not be remapped, replace " + name_list(failed_rows),
                  "nvmlDeviceGetRemappedRows: failure on " + name_list(failed_rows),
                  "nvidia-smi -q -d ROW_REMAPPER -i " + join(failed_rows, ","));
  const auto pending_rows = gpus_where(survey, [](const NvmlHealth& health) {
    return health.remapped_rows && (*health.remapped_rows).pending;
  });
  if (!pending_rows.empty())
    return warned("bad memory rows wait for a reset to be remapped on " + name_list(pending_rows),
                  "nvmlDeviceGetRemappedRows: pending on " + name_list(pending_rows),
                  reset_command(pending_rows));
  const auto pending_pages = gpus_where(survey, [](const NvmlHealth& health) {
    return health.retired_pages_pending.value.value_or(false);
  });
  if (!pending_pages.empty())
    return warned("bad memory pages wait for a reset to be retired on " + name_list(pending_pages),
                  "nvmlDeviceGetRetiredPagesPendingStatus: pending on " + name_list(pending_pages),
                  reset_command(pending_pages));
  const auto with_errors = gpus_where(survey, [](const NvmlHealth& health) {
    return health.uncorrected_ecc_errors.value.value_or(0) != 0;
  });
  if (!with_errors.empty())
    return warned("uncorrected memory errors since the driver was loaded on " +
                      name_list(with_errors),
                  "nvmlDeviceGetTotalEccErrors: uncorrected on " + name_list(with_errors),
                  reset_command(with_errors));
  return std::nullopt;
}

std::optional<CheckResult> throttling(const NvmlSurvey& survey) {
  std::vector<std::string> held_back;
  for (const SurveyedGpu& each : survey.gpus) {
    const auto words = throttle_words(each.health.throttle_reasons.value.value_or(0));
    if (!words.empty())
      held_back.push_back(each.name() + " (" + join(words, ", ") + ")");
  }
  if (held_back.empty())
    return std::nullopt;
  return warned("heat or power hold back " + name_list(held_back),
                "nvmlDeviceGetCurrentClocksThrottleReasons: " + name_list(held_back),
                "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE");
}

} // namespace

CheckResult judge_gpu_health(const NvmlSurvey& survey) {
  if (!survey.problem.empty())
    return warned("NVML cannot be asked about the GPUs' health", survey.problem, "nvidia-smi -q");
  if (const auto trouble = memory_trouble(survey))
    return *trouble;
  if (const auto trouble = throttling(survey))
    return *trouble;
  const auto telling = gpus_where(survey, tells_anything);
  if (telling.empty())
    return skipped("these GPUs do not count memory errors", "NVML: " + survey.file);
  return passed("no uncorrected memory errors, nothing waits for a reset",
                "nvmlDeviceGetTotalEccErrors, nvmlDeviceGetRemappedRows: none on " +
                    name_list(telling));
}

CheckResult gpu_health(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("a copied tree cannot be asked: needs the live machine");
  return judge_gpu_health(live_nvml());
}

} // namespace shmemctl::doctor
