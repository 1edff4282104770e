// The NVIDIA kernel driver and CUDA's user-mode driver.
#include <unistd.h>

#include "build_info.h"
#include "src/base/cuda_release.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/libraries.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr const char* proc_version_path = "/proc/driver/nvidia/version";
constexpr const char* module_version_path = "/sys/module/nvidia/version";

CheckResult driver_not_loaded(const CheckContext& context) {
  if (context.sysroot.exists("/sys/module/nouveau"))
    return failed("the GPUs are bound to nouveau, not to the NVIDIA driver",
                  "/sys/module/nouveau: there; " + absent(proc_version_path),
                  "echo 'blacklist nouveau' > /etc/modprobe.d/blacklist-nouveau.conf && "
                  "(update-initramfs -u || dracut -f) && reboot");
  return failed("the NVIDIA driver is not loaded",
                absent(proc_version_path) + "; " + absent(module_version_path),
                "modprobe nvidia || " +
                    install_command(context.sysroot, "nvidia-open", "nvidia-open"));
}

/// The result for a user-mode library of another version than the kernel module's, unless it is
/// from a CUDA forward compatibility package, in a folder "compat".
std::optional<CheckResult> library_mismatch(const Sysroot& sysroot, const std::string& version,
                                            const std::string& evidence) {
  const std::optional<LibraryFile> library = find_library(sysroot, {"libcuda.so.1"});
  if (!library || library->file.find("/compat/") != std::string::npos)
    return std::nullopt;
  const std::optional<std::string> library_version = version_in_file_name(library->file);
  if (!library_version || version_numbers(*library_version).size() < 2 ||
      *library_version == version)
    return std::nullopt;
  return failed("the loaded kernel module is " + version + ", the installed library is " +
                    *library_version + ": CUDA and NVML refuse this combination",
                evidence + "; " + library->path + ": is " + library->file,
                "rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nvidia; modprobe nvidia "
                "|| reboot");
}

/// The result for a cuInit that failed: what its error means, and the fix.
CheckResult init_failure(const CudaProbe& probe, const std::string& evidence) {
  const int result = *probe.init_result;
  const std::string reason = "CUDA does not initialize: " + cuda_error_name(result);
  switch (result) {
  case 802: // the NVSwitch fabric is not configured yet
    return failed(reason + ": the fabric manager is not ready", evidence,
                  "systemctl restart nvidia-fabricmanager && nvidia-smi -q | grep -A3 Fabric");
  case 803:
    return failed(reason + ": kernel module and library versions differ", evidence,
                  "rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe nvidia || reboot");
  case 804:
    return failed(reason + ": the CUDA compatibility package does not support these GPUs", evidence,
                  "echo $LD_LIBRARY_PATH; ldconfig -p | grep libcuda  # remove the compat folder");
  case 100:
    return failed(reason + ": the driver shows no device to this process", evidence,
                  "ls -l /dev/nvidia*  # in a container: docker run --gpus all");
  default:
    return failed(reason, evidence, "dmesg | grep -i -E 'nvrm|xid' | tail -n 20");
  }
}

std::optional<std::string> unusable_device(const Sysroot& sysroot, const std::string& path) {
  if (!sysroot.exists(path))
    return absent(path);
  if (sysroot.live() && ::access(path.c_str(), R_OK | W_OK) != 0)
    return path + ": no permission to read and write";
  return std::nullopt;
}

} // namespace

CheckResult nvidia_driver(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  const Sysroot& sysroot = context.sysroot;
  std::string version;
  std::string evidence;
  std::string flavour;
  const std::optional<std::string> text = sysroot.read(proc_version_path);
  if (const auto parsed = parse_nvidia_version(text.value_or(""))) {
    version = parsed->version;
    flavour = parsed->open_modules ? ", open kernel modules" : ", proprietary kernel modules";
    evidence = file_evidence(proc_version_path, split(*text, '\n').front());
  } else if (const auto line = sysroot.read_line(module_version_path)) {
    version = *line;
    evidence = file_evidence(module_version_path, *line);
  } else {
    return driver_not_loaded(context);
  }
  if (const auto mismatch = library_mismatch(sysroot, version, evidence))
    return *mismatch;
  return passed("NVIDIA driver " + version + flavour, evidence);
}

namespace {

/// 13000 for "13.0"; 0 for "none".
int toolkit_number(const std::string& toolkit_version) {
  const std::vector<int> numbers = version_numbers(toolkit_version);
  return numbers.size() < 2 ? 0 : numbers[0] * 1000 + numbers[1] * 10;
}

} // namespace

std::optional<CheckResult> judge_kernels_of_driver(const CudaProbe& probe,
                                                   const std::string& toolkit_version) {
  const int toolkit = toolkit_number(toolkit_version);
  const std::string why = why_no_kernels(probe.driver_version.value_or(toolkit), toolkit);
  if (why.empty())
    return std::nullopt;
  return failed("no GPU runs this binary's kernels: " + why,
                probe.library + ": cuDriverGetVersion says " +
                    cuda_version_text(*probe.driver_version),
                install_newer_driver(toolkit));
}

CheckResult judge_cuda_driver(const CudaProbe& probe, const std::string& toolkit_version) {
  if (probe.library_unusable)
    return failed("CUDA's driver library libcuda.so.1 cannot be used", probe.problem,
                  "ldconfig -p | grep libcuda.so.1  # if it lists none: install the libraries of "
                  "the NVIDIA driver; in a container, docker run --gpus all");
  if (!probe.problem.empty())
    return failed("the CUDA driver does not respond", probe.problem,
                  "ldconfig -p | grep libcuda.so.1; nvidia-smi");
  const std::string version =
      probe.driver_version ? cuda_version_text(*probe.driver_version) : "an unknown version";
  const std::string evidence = probe.library + ": cuDriverGetVersion says " + version +
                               ", cuInit returned " + std::to_string(*probe.init_result) + " (" +
                               cuda_error_name(*probe.init_result) + ")";
  if (!probe.initialized())
    return init_failure(probe, evidence);
  const std::vector<int> toolkit = version_numbers(toolkit_version);
  if (toolkit.size() < 2 || !probe.driver_version)
    return passed("the driver supports CUDA " + version + "; this binary is built without CUDA",
                  evidence);
  const std::vector<int> driver = version_numbers(version);
  const std::string upgrade = install_newer_driver(toolkit_number(toolkit_version));
  if (driver[0] < toolkit[0])
    return failed("the driver supports CUDA " + version + ", but this binary is built with CUDA " +
                      toolkit_version + ": its kernels need a driver of branch " +
                      oldest_driver_branch(toolkit[0]) + " or newer",
                  evidence, upgrade);
  if (driver < toolkit)
    return warned("the driver supports CUDA " + version + ", this binary is built with CUDA " +
                      toolkit_version +
                      ": it runs, except on GPUs newer than those it was compiled for",
                  evidence, upgrade);
  return passed("the driver supports CUDA " + version + "; this binary is built with CUDA " +
                    toolkit_version + ", whose kernels need a driver of branch " +
                    oldest_driver_branch(toolkit[0]) + " or newer",
                evidence);
}

CheckResult cuda_driver(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("needs the live machine: the system root is a copy");
  return judge_cuda_driver(live_cuda(), SHMEMCTL_CUDA_VERSION);
}

CheckResult nvidia_devices(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  const Sysroot& sysroot = context.sysroot;
  if (!has_device_nodes(sysroot))
    return skipped("the copied tree has no device nodes", absent("/dev"));
  const auto container = container_evidence(sysroot, context.environment);
  const std::string fix = container
                              ? "docker run --gpus all"
                              : "nvidia-modprobe -u -c 0 && nvidia-smi -L && ls -l /dev/nvidia*";
  std::vector<std::string> problems;
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm"})
    if (const auto problem = unusable_device(sysroot, path))
      problems.push_back(*problem);
  std::size_t usable = 0;
  for (const std::string& name : sysroot.list("/dev")) {
    if (!starts_with(name, "nvidia") || !parse_integer(name.substr(6)))
      continue;
    if (const auto problem = unusable_device(sysroot, "/dev/" + name))
      problems.push_back(*problem);
    else
      ++usable;
  }
  std::size_t gpus = 0;
  for (const Gpu& gpu : context.node.gpus)
    gpus += gpu.vendor == "nvidia" ? 1 : 0;
  const std::string count =
      std::to_string(usable) + " of " + std::to_string(gpus) + " GPUs have a device node";
  if (!problems.empty() || usable == 0)
    return failed("NVIDIA device nodes are missing or not accessible to this user; " + count,
                  problems.empty() ? "/dev: no nvidia0, nvidia1, ..." : name_list(problems), fix);
  if (usable < gpus)
    return warned("only " + count, "/dev: " + std::to_string(usable) + " nodes nvidia<N>", fix);
  return passed(count + " that can be opened", "/dev/nvidiactl, /dev/nvidia-uvm: there");
}

} // namespace shmemctl::doctor
