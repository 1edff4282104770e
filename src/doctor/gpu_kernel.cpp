// gpu-kernel: each GPU runs a kernel of this binary and keeps what it wrote.
#include <cstdlib>

#include "build_info.h"
#include "kernels/device_probe.h"
#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/child.h"
#include "src/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr std::chrono::seconds kernel_deadline{40};

/// A line per device: "0 ok NAME" or "0 bad NAME: ERROR"; or one line "none WHY".
std::string probe_text() {
  ::unsetenv("CUDA_VISIBLE_DEVICES"); // in the child alone: every GPU of the node is asked
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
  const std::string call = "a kernel that writes 2^20 words, compared word by word";
  std::vector<std::string> bad;
  std::size_t count = 0;
  for (const std::string& line : split(answer, '\n')) {
    if (starts_with(line, "none "))
      return failed("no GPU runs a kernel: " + line.substr(5), call,
                    "run nvidia-smi; check that driver and CUDA of this binary fit");
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
    return failed("the probe answered nothing", call, "run nvidia-smi");
  return passed(std::to_string(count) + (count == 1 ? " GPU runs" : " GPUs run") +
                    " a kernel and keep what it wrote",
                call);
}

CheckResult gpu_kernel(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("only the live machine can run a kernel");
  if (SHMEMCTL_HAVE_CUDA == 0)
    return skipped("this binary was built without CUDA");
  const ChildAnswer answer = ask_child(probe_text, "the CUDA runtime", kernel_deadline);
  if (!answer.problem.empty())
    return failed(answer.problem, "a kernel launch in a child process",
                  "run nvidia-smi; look for Xid errors in dmesg");
  return judge_gpu_kernel(answer.text);
}

} // namespace shmemctl::doctor
