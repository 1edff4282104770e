#include "src/instruments/doctor/gpu_devices.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "build_info.h"
#include "src/base/json_values.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"
#include "src/model/topo/pcie.h"
#if SHMEMCTL_HAVE_CUDA
#include "src/runtime/cuda/gpu_probe.h"
#endif

namespace shmemctl::doctor {

namespace {

using nlohmann::json;

constexpr std::chrono::seconds survey_deadline{
    40}; // eight GPUs without persistence mode take ten seconds
/// A copy slower than this share of the PCIe link's rate gives a warning. Healthy links reach 80 to
/// 90%, with memory of another NUMA node two thirds.
constexpr double low_share = 0.5;

cuda::DeviceSurvey survey_devices() {
  cuda::DeviceSurvey survey;
#if SHMEMCTL_HAVE_CUDA
  ::unsetenv("CUDA_VISIBLE_DEVICES"); // in the child only, so that every GPU of the node is visible
  if (const auto driver = cuda::Driver::open("libcuda.so.1", survey.problem))
    survey = cuda::survey_devices(driver);
#else
  survey.problem = "this binary was built without CUDA";
#endif
  return survey;
}

/// "GPU 0 (0000:1b:00.0)".
std::string name_of(const cuda::DeviceSurvey& survey, std::size_t device) {
  return "GPU " + std::to_string(device) + " (" + survey.devices[device].pci_address + ")";
}

/// The result if the survey failed, so that nothing can be judged; empty otherwise.
std::optional<CheckResult> unanswered(const cuda::DeviceSurvey& survey) {
  if (!survey.problem.empty())
    return failed("the GPU probe failed: " + survey.problem, "CUDA driver calls in a child process",
                  "run nvidia-smi; look for Xid errors in dmesg");
  if (survey.devices.empty())
    return failed("the driver shows no GPU", "cuDeviceGetCount: 0", "run nvidia-smi");
  for (std::size_t i = 0; i < survey.devices.size(); ++i)
    if (!survey.devices[i].problem.empty())
      return failed(name_of(survey, i) + " cannot be used: " + survey.devices[i].problem,
                    "a context, memory and copies of each GPU",
                    "look at dmesg for Xid errors of that GPU; nvidia-smi -q -d COMPUTE,ECC");
  return std::nullopt;
}

std::string abilities_text(const cuda::DeviceSample& device) {
  std::vector<std::string> has, lacks;
  const auto add = [&](bool there, const char* what) { (there ? has : lacks).push_back(what); };
  add(device.no_descriptors.empty(), "POSIX file descriptor export");
  add(device.no_ipc_handles.empty(), "IPC handles");
  add(device.fabric_handles, "fabric handles");
  add(device.cooperative_launch, "cooperative launches");
  add(device.stream_operations, "64-bit stream memory operations");
  add(device.unified_addressing, "unified addressing");
  add(device.host_atomics, "native atomics on host memory");
  return join(has, ", ") + (lacks.empty() ? "" : "; no " + join(lacks, ", no "));
}

double median_GBps(std::vector<double> times_us, std::uint64_t copy_bytes) {
  std::sort(times_us.begin(), times_us.end());
  return times_us.empty() ? 0
                          : static_cast<double>(copy_bytes) / times_us[times_us.size() / 2] * 1e-3;
}

std::optional<PcieRate> declared(const Node& node, const std::string& pci_address) {
  const auto wanted = parse_pci_address(pci_address);
  for (const Gpu& gpu : node.gpus)
    if (wanted && gpu.pci >= 0 && node.pci[static_cast<std::size_t>(gpu.pci)].address == *wanted)
      return pcie_rate(node.pci[static_cast<std::size_t>(gpu.pci)].link);
  return std::nullopt;
}

/// The result if nothing can be measured on this machine; empty otherwise.
std::optional<CheckResult> not_here(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("needs the live machine: the system root is a copy");
  if (SHMEMCTL_HAVE_CUDA == 0)
    return skipped("this binary was built without CUDA");
  return std::nullopt;
}

} // namespace

CheckResult judge_gpu_abilities(const cuda::DeviceSurvey& survey) {
  if (const auto trouble = unanswered(survey))
    return *trouble;
  std::vector<std::string> evidence, unshared, fixed, standing;
  for (std::size_t i = 0; i < survey.devices.size(); ++i) {
    const cuda::DeviceSample& device = survey.devices[i];
    evidence.push_back("GPU " + std::to_string(i) + ": " + abilities_text(device));
    if (!device.no_descriptors.empty())
      (device.no_ipc_handles.empty() ? fixed : unshared)
          .push_back(name_of(survey, i) + ": " + device.no_descriptors);
    if (!device.cooperative_launch)
      standing.push_back(name_of(survey, i));
  }
  const std::string all = join(evidence, "; ");
  const std::string fix = "run the driver of branch 525 or newer, and containers with the GPU's "
                          "device nodes (docker run --gpus all)";
  if (!unshared.empty())
    return failed("PEs cannot share the memory of " + join(unshared, "; "), all, fix);
  if (!fixed.empty())
    return warned("only SHMEMCTL_HEAP=ipc is possible, and such a heap cannot grow: " +
                      join(fixed, "; "),
                  all, fix);
  if (!standing.empty())
    return warned("cooperative launch is not supported on " + name_list(standing), all,
                  "use a GPU of compute capability 6.0 or newer, without MPS");
  return passed("GPU memory can be shared with other processes, cooperative launch works", all);
}

CheckResult judge_gpu_copies(const cuda::DeviceSurvey& survey, const Node& node) {
  if (const auto trouble = unanswered(survey))
    return *trouble;
  std::vector<std::string> evidence, wrong, slow;
  for (std::size_t i = 0; i < survey.devices.size(); ++i) {
    const cuda::DeviceSample& device = survey.devices[i];
    if (!device.wrong.empty())
      wrong.push_back(name_of(survey, i) + ": " + device.wrong);
    const double to_device = median_GBps(device.to_device_us, survey.copy_bytes);
    const double to_host = median_GBps(device.to_host_us, survey.copy_bytes);
    const auto link = declared(node, device.pci_address);
    evidence.push_back(fmt::format("GPU {}: {:.1f} GB/s to it, {:.1f} back ({})", i, to_device,
                                   to_host,
                                   link ? fmt::format("{}: {:.1f}", link->text, link->rate_GBps)
                                        : "its PCIe link is not known"));
    if (link && std::min(to_device, to_host) < low_share * link->rate_GBps)
      slow.push_back(name_of(survey, i));
  }
  const std::string all = join(evidence, "; ");
  if (!wrong.empty())
    return failed("data copied to a GPU and back differs: " + join(wrong, "; "), all,
                  "reset the GPU (nvidia-smi --gpu-reset), or replace it");
  if (!slow.empty())
    return warned(
        "host-device copies reach less than half of the PCIe link rate on " + name_list(slow), all,
        "shmemctl doctor --only pcie; run on the GPU's NUMA node (numactl -N); check with "
        "nvidia-smi for other processes that copy");
  return passed("host-device copies reach half of the PCIe link rate, and the data verify", all);
}

CheckResult gpu_abilities(const CheckContext& context) {
  if (const auto result = not_here(context))
    return *result;
  return judge_gpu_abilities(live_devices());
}

CheckResult gpu_copies(const CheckContext& context) {
  if (const auto result = not_here(context))
    return *result;
  return judge_gpu_copies(live_devices(), context.node);
}

cuda::DeviceSurvey survey_live_devices(std::chrono::milliseconds deadline) {
  const ChildOutput answer =
      call_in_child([] { return to_text(survey_devices()); }, "the CUDA driver", deadline);
  if (!answer.problem.empty()) {
    cuda::DeviceSurvey survey;
    survey.problem = answer.problem;
    return survey;
  }
  return parse_device_survey(answer.text);
}

const cuda::DeviceSurvey& live_devices() {
  static const cuda::DeviceSurvey survey = survey_live_devices(survey_deadline);
  return survey;
}

std::string to_text(const cuda::DeviceSurvey& survey) {
  json devices = json::array();
  for (const cuda::DeviceSample& each : survey.devices)
    devices.push_back({each.pci_address, each.name, each.problem, each.no_descriptors,
                       each.no_ipc_handles, each.cooperative_launch, each.stream_operations,
                       each.fabric_handles, each.unified_addressing, each.to_device_us,
                       each.to_host_us, each.wrong, each.host_atomics});
  const json whole = {survey.problem, survey.copy_bytes, std::move(devices)};
  return json_line(whole);
}

cuda::DeviceSurvey parse_device_survey(const std::string& text) {
  cuda::DeviceSurvey survey;
  try {
    const json whole = from_json_line(text);
    survey.problem = whole.at(0).get<std::string>();
    survey.copy_bytes = whole.at(1).get<std::uint64_t>();
    for (const json& row : whole.at(2)) {
      cuda::DeviceSample device;
      row.at(0).get_to(device.pci_address);
      row.at(1).get_to(device.name);
      row.at(2).get_to(device.problem);
      row.at(3).get_to(device.no_descriptors);
      row.at(4).get_to(device.no_ipc_handles);
      row.at(5).get_to(device.cooperative_launch);
      row.at(6).get_to(device.stream_operations);
      row.at(7).get_to(device.fabric_handles);
      row.at(8).get_to(device.unified_addressing);
      row.at(9).get_to(device.to_device_us);
      row.at(10).get_to(device.to_host_us);
      row.at(11).get_to(device.wrong);
      row.at(12).get_to(device.host_atomics);
      survey.devices.push_back(std::move(device));
    }
  } catch (const std::exception&) {
    survey = {};
    survey.problem = "the GPU probe returned no result";
  }
  return survey;
}

} // namespace shmemctl::doctor
