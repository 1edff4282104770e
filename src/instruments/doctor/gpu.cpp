// Checks of GPUs.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <set>

#include "build_info.h"
#include "kernels/device_probe.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"
#include "src/model/topo/distance.h"

namespace shmemctl::doctor {

namespace {

constexpr const char* driver_gpus_path = "/proc/driver/nvidia/gpus";

} // namespace

CheckResult gpus_visible(const CheckContext& context) {
  const Node& node = context.node;
  if (const auto reason = no_nvidia_gpu(node))
    return skipped(*reason);
  if (!context.sysroot.exists(driver_gpus_path))
    return skipped("the NVIDIA driver is not loaded: see nvidia-driver", absent(driver_gpus_path));
  std::set<PciAddress> of_driver;
  for (const std::string& name : context.sysroot.list(driver_gpus_path))
    if (const auto address = parse_pci_address(name))
      of_driver.insert(*address);
  std::vector<std::string> missing;
  std::vector<std::string> lent; // passed through to a virtual machine, or bound to another driver
  std::string evidence = std::string(driver_gpus_path) + ": " + std::to_string(of_driver.size()) +
                         " GPUs; PCI: " + std::to_string(node.gpus.size());
  for (const Gpu& gpu : node.gpus) {
    if (gpu.vendor != "nvidia" || gpu.pci < 0)
      continue;
    const PciAddress& address = node.pci[static_cast<std::size_t>(gpu.pci)].address;
    if (of_driver.count(address) != 0)
      continue;
    const std::string driver_path = sysfs_path(address) + "/driver";
    const auto driver = link_target(context.sysroot, driver_path);
    const std::string bound = driver ? driver->substr(driver->rfind('/') + 1) : "none";
    if (bound != "nvidia" && bound != "none") {
      lent.push_back(gpu_name(node, gpu));
      evidence += "; " + file_evidence(driver_path, bound);
    } else {
      missing.push_back(gpu_name(node, gpu));
    }
  }
  if (!missing.empty() && container_evidence(context.sysroot, context.environment))
    return warned("the driver shows this container fewer GPUs than PCI has: without " +
                      name_list(missing),
                  evidence, "docker run --gpus all");
  if (!missing.empty())
    return failed("the driver does not see " + name_list(missing), evidence,
                  "dmesg | grep -i -E 'nvrm|xid' | tail -n 20; nvidia-smi -L");
  if (!lent.empty())
    return warned(
        "another driver is bound to " + name_list(lent), evidence,
        "for d in /sys/bus/pci/devices/*/driver; do readlink -f $d; done | sort | uniq -c");
  return passed("the driver sees every GPU", evidence);
}

namespace {

using DevicePairs = std::vector<std::pair<std::size_t, std::size_t>>;

/// The pairs for which either direction of the matrix is false.
DevicePairs pairs_without(const std::vector<std::vector<bool>>& matrix) {
  DevicePairs pairs;
  for (std::size_t from = 0; from < matrix.size(); ++from)
    for (std::size_t to = from + 1; to < matrix[from].size(); ++to)
      if (!matrix[from][to] || to >= matrix.size() || from >= matrix[to].size() ||
          !matrix[to][from])
        pairs.emplace_back(from, to);
  return pairs;
}

std::string names_of(const DevicePairs& pairs) {
  std::vector<std::string> names;
  for (const auto& [from, to] : pairs)
    names.push_back(std::to_string(from) + "-" + std::to_string(to));
  return name_list(names);
}

/// The position of a CUDA device in Node::gpus; -1 if it is unknown.
int gpu_of(const CudaDevice& device, const Node& node) {
  for (std::size_t i = 0; i < node.gpus.size(); ++i)
    if (const int pci = node.gpus[i].pci;
        pci >= 0 && device.address == node.pci[static_cast<std::size_t>(pci)].address)
      return static_cast<int>(i);
  return -1;
}

bool joined_by_nvlink(const CudaProbe& probe, std::size_t from, std::size_t to, const Node& node) {
  if (std::max(from, to) >= probe.devices.size())
    return false;
  const int left = gpu_of(probe.devices[from], node), right = gpu_of(probe.devices[to], node);
  return left >= 0 && right >= 0 && distance(node, left, right).path == PathClass::nvlink;
}

} // namespace

CheckResult judge_gpu_p2p(const CudaProbe& probe, const Node& node) {
  if (!probe.initialized())
    return skipped("CUDA does not initialize: see cuda-driver", probe.problem);
  const std::size_t count = probe.devices.size();
  if (count < 2)
    return skipped("fewer than two GPUs", "cuDeviceGetCount: " + std::to_string(count));
  const DevicePairs apart = pairs_without(probe.peers);
  const std::string pairs = std::to_string(count * (count - 1) / 2) + " pairs";
  if (apart.empty()) {
    const std::string can = "cuDeviceCanAccessPeer: yes for all " + pairs;
    const DevicePairs without = pairs_without(probe.atomics);
    if (!without.empty())
      return warned("the links of " + std::to_string(without.size()) + " of " + pairs +
                        " have no native atomics: " + names_of(without) +
                        "; kernels on these GPUs reach each other through a network only",
                    can + "; cuDeviceGetP2PAttribute: NATIVE_ATOMIC_SUPPORTED 0 for CUDA devices " +
                        names_of(without),
                    "nvidia-smi topo -p2p a");
    return passed("every GPU can access every other GPU's memory",
                  probe.atomics.empty() ? can : can + ", with native atomics");
  }
  const std::string reason = std::to_string(apart.size()) + " of " + pairs +
                             " cannot access each other's memory: " + names_of(apart);
  const std::string evidence = "cuDeviceCanAccessPeer: 0 for CUDA devices " + names_of(apart);
  const std::string fix = "nvidia-smi topo -p2p r  # then see pcie-acs and iommu";
  const bool nvlinks = std::any_of(apart.begin(), apart.end(), [&](const auto& pair) {
    return joined_by_nvlink(probe, pair.first, pair.second, node);
  });
  return nvlinks ? failed(reason, evidence, fix) : warned(reason, evidence, fix);
}

CheckResult gpu_p2p(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("needs the live machine: the system root is a copy");
  if (context.node.gpus.size() < 2)
    return skipped("only one GPU on this node");
  return judge_gpu_p2p(live_cuda(), context.node);
}

namespace {

/// Names of the GPUs that satisfy a predicate.
template <class Predicate>
std::vector<std::string> gpus_where(const NvmlSurvey& survey, Predicate predicate) {
  std::vector<std::string> names;
  for (const SurveyedGpu& each : survey.gpus)
    if (predicate(each.health))
      names.push_back(each.name());
  return names;
}

bool is_useful(const NvmlHealth& health) {
  return health.uncorrected_ecc_errors || health.remapped_rows || health.retired_pages_pending;
}

std::string reset_command(const std::vector<std::string>& gpus) {
  return "nvidia-smi --gpu-reset -i " + join(gpus, ",") + "  # with no process on them";
}

/// The most severe problem of GPU memory; empty if NVML reports none.
std::optional<CheckResult> memory_trouble(const NvmlSurvey& survey) {
  const auto failed_rows = gpus_where(survey, [](const NvmlHealth& health) {
    return health.remapped_rows && (*health.remapped_rows).failed;
  });
  if (!failed_rows.empty())
    return failed("row remapping failed, replace " + name_list(failed_rows),
                  "nvmlDeviceGetRemappedRows: failure on " + name_list(failed_rows),
                  "nvidia-smi -q -d ROW_REMAPPER -i " + join(failed_rows, ","));
  const auto pending_rows = gpus_where(survey, [](const NvmlHealth& health) {
    return health.remapped_rows && (*health.remapped_rows).pending;
  });
  if (!pending_rows.empty())
    return warned("row remapping is pending a GPU reset on " + name_list(pending_rows),
                  "nvmlDeviceGetRemappedRows: pending on " + name_list(pending_rows),
                  reset_command(pending_rows));
  const auto pending_pages = gpus_where(survey, [](const NvmlHealth& health) {
    return health.retired_pages_pending.value.value_or(false);
  });
  if (!pending_pages.empty())
    return warned("page retirement is pending a GPU reset on " + name_list(pending_pages),
                  "nvmlDeviceGetRetiredPagesPendingStatus: pending on " + name_list(pending_pages),
                  reset_command(pending_pages));
  const auto with_errors = gpus_where(survey, [](const NvmlHealth& health) {
    return health.uncorrected_ecc_errors.value.value_or(0) != 0;
  });
  if (!with_errors.empty())
    return warned("uncorrected ECC errors since the driver was loaded on " + name_list(with_errors),
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
  return warned("clocks are throttled by temperature or power on " + name_list(held_back),
                "nvmlDeviceGetCurrentClocksThrottleReasons: " + name_list(held_back),
                "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE");
}

} // namespace

CheckResult judge_gpu_health(const NvmlSurvey& survey) {
  if (!survey.problem.empty())
    return warned("NVML does not report GPU health", survey.problem, "nvidia-smi -q");
  if (const auto trouble = memory_trouble(survey))
    return *trouble;
  if (const auto trouble = throttling(survey))
    return *trouble;
  const auto useful = gpus_where(survey, is_useful);
  if (useful.empty())
    return skipped("these GPUs have no ECC counters", "NVML: " + survey.file);
  return passed("no uncorrected ECC errors, no pending remapping or page retirement",
                "nvmlDeviceGetTotalEccErrors, nvmlDeviceGetRemappedRows: none on " +
                    name_list(useful));
}

CheckResult gpu_health(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("needs the live machine: the system root is a copy");
  return judge_gpu_health(live_nvml());
}

namespace {

struct NamedClock {
  const char* name;
  const NvmlClock& clock;
};

/// "SM 345 of 1980 MHz, application clock 1410 (default 1980)"; "" if the maximum is unknown.
std::string clock_text(const NamedClock& at) {
  const NvmlClock& clock = at.clock;
  if (!clock.max_MHz)
    return {};
  std::string text =
      fmt::format("{} {} of {} MHz", at.name, clock.now_MHz ? std::to_string(*clock.now_MHz) : "?",
                  *clock.max_MHz);
  if (clock.application_MHz && clock.default_MHz)
    text += fmt::format(", application clock {} (default {})", *clock.application_MHz,
                        *clock.default_MHz);
  return text;
}

/// An application clock that is set below the GPU's default: "SM 1200 in place of 1980 MHz"; "" if
/// there is none.
std::string lowered_clock(const NamedClock& at) {
  const auto& application = at.clock.application_MHz;
  const auto& unset = at.clock.default_MHz;
  return application && unset && *application < *unset
             ? fmt::format("{} {} in place of {} MHz", at.name, *application, *unset)
             : std::string();
}

/// The current SM clock of a GPU that a setting holds below its full clock; "" if none does. The
/// full clock is the default clock if the GPU has one, because some GPUs always run below their
/// maximum.
std::string held_clock(const NvmlHealth& health) {
  const NvmlClock& clock = health.sm_clock;
  const Fact<unsigned>& full = clock.default_MHz ? clock.default_MHz : clock.max_MHz;
  if (!are_clocks_held_by_setting(health.throttle_reasons.value.value_or(0)) || !clock.now_MHz ||
      !full || *clock.now_MHz >= *full)
    return {};
  return fmt::format("{} of {} MHz", *clock.now_MHz, *full);
}

/// GPUs of the same model whose application clocks differ: "NVIDIA H100 (0000:13:00.0 1980,
/// 0000:23:00.0 1755)".
std::vector<std::string> unequal_clocks(const NvmlSurvey& survey) {
  std::map<std::string, std::map<std::string, unsigned>> by_model;
  for (const SurveyedGpu& each : survey.gpus)
    if (each.health.sm_clock.application_MHz)
      by_model[each.gpu.name.value.value_or("GPU")][each.name()] =
          *each.health.sm_clock.application_MHz;
  std::vector<std::string> unequal;
  for (const auto& model : by_model) {
    std::set<unsigned> clocks;
    std::vector<std::string> gpus;
    for (const auto& gpu : model.second) {
      clocks.insert(gpu.second);
      gpus.push_back(gpu.first + " " + std::to_string(gpu.second));
    }
    if (clocks.size() > 1)
      unequal.push_back(model.first + " (" + name_list(gpus) + ")");
  }
  return unequal;
}

} // namespace

CheckResult judge_gpu_clocks(const NvmlSurvey& survey) {
  if (!survey.problem.empty())
    return skipped("NVML does not report clocks: see gpu-health", survey.problem);
  std::vector<std::string> evidence, lowered, held, of_setting, of_lock;
  for (const SurveyedGpu& each : survey.gpus) {
    std::vector<std::string> texts;
    bool is_lowered = false;
    for (const NamedClock& at :
         {NamedClock{"SM", each.health.sm_clock}, NamedClock{"memory", each.health.memory_clock}}) {
      if (std::string text = clock_text(at); !text.empty())
        texts.push_back(std::move(text));
      if (const std::string text = lowered_clock(at); !text.empty()) {
        lowered.push_back(each.name() + " " + text);
        is_lowered = true;
      }
    }
    if (!texts.empty())
      evidence.push_back(each.name() + " " + join(texts, "; "));
    if (is_lowered)
      of_setting.push_back(each.name());
    else if (const std::string text = held_clock(each.health); !text.empty()) {
      held.push_back(each.name() + " " + text);
      of_lock.push_back(each.name());
    }
  }
  if (evidence.empty())
    return skipped("the driver does not report the clocks of these GPUs", "NVML: " + survey.file);
  const std::string all = "NVML: " + name_list(evidence);
  if (!lowered.empty())
    return warned("application clocks are below the default: " + name_list(lowered), all,
                  "nvidia-smi -i " + join(of_setting, ",") + " --reset-applications-clocks");
  if (!held.empty())
    return warned("a setting holds the clocks of running kernels down: " + name_list(held), all,
                  "nvidia-smi -i " + join(of_lock, ",") + " --reset-gpu-clocks");
  if (const std::vector<std::string> unequal = unequal_clocks(survey); !unequal.empty())
    return warned("GPUs of one model have different application clocks: " + name_list(unequal), all,
                  "nvidia-smi --reset-applications-clocks");
  return passed("no setting lowers the clocks of the GPUs", all);
}

CheckResult gpu_clocks(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("needs the live machine: the system root is a copy");
  return judge_gpu_clocks(live_nvml());
}

namespace {

constexpr std::chrono::seconds kernel_deadline{40};

/// A line per device: "0 ok NAME" or "0 bad NAME: ERROR"; or one line "none WHY".
std::string probe_text() {
  ::unsetenv("CUDA_VISIBLE_DEVICES"); // in the child only, so that every GPU of the node is visible
  std::string why;
  const std::vector<DeviceProbe> probes = probe_devices(why);
  if (probes.empty())
    return "none " + why + "\n";
  std::string text;
  for (const DeviceProbe& probe : probes)
    text += std::to_string(probe.device) + (probe.passed ? " ok " : " bad ") + probe.name +
            (probe.passed ? "" : ": " + probe.error) + "\n";
  return text;
}

} // namespace

CheckResult judge_gpu_kernel(const std::string& answer) {
  const std::string call = "a kernel that writes 2^20 words, verified on the host";
  std::vector<std::string> bad;
  std::size_t count = 0;
  for (const std::string& line : split(answer, '\n')) {
    if (starts_with(line, "none "))
      return failed("no GPU runs a kernel: " + line.substr(5), call,
                    "run nvidia-smi; check that the driver supports this binary's CUDA version");
    const std::vector<std::string> words = split_blanks(line);
    if (words.size() < 2)
      continue;
    ++count;
    if (words[1] == "bad")
      bad.push_back("GPU " + line);
  }
  if (!bad.empty())
    return failed(join(bad, "; "), call, "reset the GPU (nvidia-smi --gpu-reset), or replace it");
  if (count == 0)
    return failed("the probe returned no result", call, "run nvidia-smi");
  return passed(std::to_string(count) + (count == 1 ? " GPU runs" : " GPUs run") +
                    " a kernel, and the results verify",
                call);
}

CheckResult gpu_kernel(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("only the live machine can run a kernel");
  if (SHMEMCTL_HAVE_CUDA == 0)
    return skipped("this binary was built without CUDA");
  if (const auto refused = judge_kernels_of_driver(live_cuda(), SHMEMCTL_CUDA_VERSION))
    return *refused;
  const ChildOutput answer = call_in_child(probe_text, "the CUDA runtime", kernel_deadline);
  if (!answer.problem.empty())
    return failed(answer.problem, "a kernel launch in a child process",
                  "run nvidia-smi; look for Xid errors in dmesg");
  return judge_gpu_kernel(answer.text);
}

} // namespace shmemctl::doctor
