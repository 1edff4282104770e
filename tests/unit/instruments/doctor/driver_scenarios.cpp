#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

constexpr const char* open_version =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (builder)\n"
    "GCC version:  gcc version 12.3.0\n";
constexpr const char* proprietary_version =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n";

void with_driver(Machine& m, const char* version) {
  m.node = healthy_node();
  m.files.write("/proc/driver/nvidia/version", version);
}

void with_libcuda(Machine& m, const std::string& folder, const std::string& version) {
  m.files.write(folder + "/libcuda.so." + version, "");
  m.files.symlink(folder + "/libcuda.so.1", "libcuda.so." + version);
}

void with_device_nodes(Machine& m, int gpus) {
  m.node = healthy_node();
  m.files.write("/dev/nvidiactl", "");
  m.files.write("/dev/nvidia-uvm", "");
  m.files.directory("/dev/nvidia-caps");
  for (int i = 0; i < gpus; ++i)
    m.files.write("/dev/nvidia" + std::to_string(i), "");
}

void with_nvswitches(Machine& m) {
  m.node = healthy_node();
  m.node.nvswitches = 4;
  m.files.write("/proc/1/comm", "systemd\n");
}

doctor::CudaProbe started(int driver_version) {
  doctor::CudaProbe probe;
  probe.library = "/usr/lib/libcuda.so.580.65.06";
  probe.driver_version = driver_version;
  probe.init_result = 0;
  return probe;
}

doctor::CudaProbe not_started(int result) {
  doctor::CudaProbe probe = started(13000);
  probe.init_result = result;
  return probe;
}

Scenario cuda(const std::string& name, const doctor::CudaProbe& probe, CheckStatus status,
              const std::string& evidence, const std::string& fix) {
  return {"cuda-driver", name, nullptr, status, evidence, fix, [probe] {
            return doctor::judge_cuda_driver(probe, "13.0");
          }};
}

/// "skipped" stands for a kernel that may be launched.
CheckResult judged_kernels(const doctor::CudaProbe& probe, const char* toolkit_version) {
  return doctor::judge_kernels_of_driver(probe, toolkit_version)
      .value_or(doctor::skipped("the driver runs them"));
}

Scenarios kernel_driver() {
  const std::string id = "nvidia-driver";
  return {
      {id, "open modules", [](Machine& m) { with_driver(m, open_version); }, pass,
       "/proc/driver/nvidia/version: NVRM version: NVIDIA UNIX Open Kernel Module", ""},
      {id, "only the module's version",
       [](Machine& m) {
         m.node = healthy_node();
         m.files.write("/sys/module/nvidia/version", "550.54.15\n");
       },
       pass, "/sys/module/nvidia/version: 550.54.15", ""},
      {id, "library of the same version",
       [](Machine& m) {
         with_driver(m, proprietary_version);
         with_libcuda(m, "/usr/lib/x86_64-linux-gnu", "550.54.15");
       },
       pass, "550.54.15", ""},
      {id, "library of another version",
       [](Machine& m) {
         with_driver(m, proprietary_version);
         with_libcuda(m, "/usr/lib/x86_64-linux-gnu", "535.104.05");
       },
       fail, "libcuda.so.535.104.05", "modprobe nvidia"},
      {id, "forward compatibility library of another version",
       [](Machine& m) {
         with_driver(m, proprietary_version);
         m.files.write("/etc/ld.so.conf.d/cuda.conf", "# CUDA\n/usr/local/cuda/compat\n");
         with_libcuda(m, "/usr/local/cuda/compat", "580.65.06");
       },
       pass, "550.54.15", ""},
      {id, "not loaded", [](Machine& m) { m.node = healthy_node(); }, fail,
       "/sys/module/nvidia/version: not there", "modprobe nvidia"},
      {id, "nouveau in its place",
       [](Machine& m) {
         m.node = healthy_node();
         m.files.directory("/sys/module/nouveau");
       },
       fail, "/sys/module/nouveau: there", "blacklist nouveau"},
      {id, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
      {id, "an AMD GPU",
       [](Machine& m) {
         m.node = healthy_node();
         for (Gpu& gpu : m.node.gpus)
           gpu.vendor = "amd";
       },
       skipped, "", ""},
  };
}

Scenarios cuda_driver() {
  doctor::CudaProbe lost;
  lost.problem = "cuInit did not return within 20000 ms";
  doctor::CudaProbe missing;
  missing.problem = "libcuda.so.1: cannot open shared object file: No such file or directory";
  missing.library_unusable = true;
  return {
      cuda("same version", started(13000), pass, "cuDriverGetVersion says 13.0", ""),
      cuda("newer driver", started(13010), pass, "cuInit returned 0 (CUDA_SUCCESS)", ""),
      cuda("older major version", started(12080), fail, "cuDriverGetVersion says 12.8",
           "cuda-compat-13-0"),
      {"cuda-driver", "older minor version", nullptr, warning, "says 13.0", "cuda-compat-13-1",
       [] { return doctor::judge_cuda_driver(started(13000), "13.1"); }},
      {"cuda-driver", "binary without CUDA", nullptr, pass, "says 12.8", "",
       [] { return doctor::judge_cuda_driver(started(12080), "none"); }},
      {"gpu-kernel", "a driver of an older major version", nullptr, fail,
       "cuDriverGetVersion says 12.4", "cuda-compat-13-0",
       [] { return judged_kernels(started(12040), "13.0"); }},
      {"gpu-kernel", "a driver of an older minor version", nullptr, skipped, "", "",
       [] { return judged_kernels(started(13000), "13.1"); }},
      {"gpu-kernel", "a driver whose version is unknown", nullptr, skipped, "", "",
       [] { return judged_kernels(doctor::CudaProbe{}, "13.0"); }},
      cuda("fabric not ready", not_started(802), fail, "CUDA_ERROR_SYSTEM_NOT_READY",
           "nvidia-fabricmanager"),
      cuda("versions differ", not_started(803), fail, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
           "modprobe nvidia"),
      cuda("compat package", not_started(804), fail, "cuInit returned 804", "compat"),
      cuda("no device", not_started(100), fail, "CUDA_ERROR_NO_DEVICE", "--gpus all"),
      cuda("some other error", not_started(999), fail, "CUDA_ERROR_UNKNOWN", "dmesg"),
      cuda("no answer", lost, fail, "did not return within", "nvidia-smi"),
      cuda("no library", missing, fail, "No such file", "install the libraries"),
      {"cuda-driver", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "",
       ""},
      {"cuda-driver", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

Scenarios devices() {
  const std::string id = "nvidia-devices";
  return {
      {id, "a node per GPU", [](Machine& m) { with_device_nodes(m, 2); }, pass, "/dev/nvidiactl",
       ""},
      {id, "fewer nodes than GPUs", [](Machine& m) { with_device_nodes(m, 1); }, warning,
       "/dev: 1 nodes", "nvidia-modprobe"},
      {id, "no GPU's node", [](Machine& m) { with_device_nodes(m, 0); }, fail, "/dev: no nvidia0",
       "nvidia-modprobe"},
      {id, "no nvidia-uvm",
       [](Machine& m) {
         with_device_nodes(m, 2);
         m.files.remove("/dev/nvidia-uvm");
       },
       fail, "/dev/nvidia-uvm: not there", "nvidia-modprobe -u"},
      {id, "in a container",
       [](Machine& m) {
         with_device_nodes(m, 0);
         m.files.write("/.dockerenv", "");
       },
       fail, "/dev", "docker run --gpus all"},
      {id, "no /dev in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/dev: not there", ""},
      {id, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

Scenarios daemons() {
  const std::string fm = "fabric-manager";
  const std::string pd = "nvidia-persistence";
  return {
      {fm, "runs",
       [](Machine& m) {
         with_nvswitches(m);
         m.files.write("/proc/1234/comm", "nv-fabricmanage\n"); // the kernel keeps 15 characters
       },
       pass, "/proc/1234/comm: nv-fabricmanage", ""},
      {fm, "does not run", with_nvswitches, fail, "no nv-fabricmanager; 4 NVSwitch",
       "systemctl enable --now nvidia-fabricmanager"},
      {fm, "hidden by a container",
       [](Machine& m) {
         with_nvswitches(m);
         m.files.write("/.dockerenv", "");
       },
       skipped, "no nv-fabricmanager", ""},
      {fm, "NVSwitches of the host of a VM",
       [](Machine& m) {
         with_nvswitches(m);
         m.node.nvswitches = 0;
         m.node.gpus[0].links[0].target = LinkTarget::nvswitch;
       },
       skipped, "", ""},
      {fm, "no processes in the copy",
       [](Machine& m) {
         m.node = healthy_node();
         m.node.nvswitches = 4;
       },
       skipped, "/proc/1/comm: not there", ""},
      {fm, "no NVSwitch", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
      {fm, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},

      {pd, "runs",
       [](Machine& m) {
         m.node = healthy_node();
         m.files.write("/proc/77/comm", "nvidia-persiste\n");
       },
       pass, "/proc/77/comm", ""},
      {pd, "its socket in a container",
       [](Machine& m) {
         m.node = healthy_node();
         m.files.write("/run/nvidia-persistenced/socket", "");
       },
       pass, "/run/nvidia-persistenced/socket: there", ""},
      {pd, "does not run",
       [](Machine& m) {
         m.node = healthy_node();
         m.files.write("/proc/1/comm", "systemd\n");
       },
       warning, "no nvidia-persistenced", "systemctl enable --now nvidia-persistenced"},
      {pd, "no processes in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/proc/1/comm: not there", ""},
      {pd, "hidden by a container",
       [](Machine& m) {
         m.node = healthy_node();
         m.files.write("/run/.containerenv", "");
       },
       skipped, "", ""},
      {pd, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

} // namespace

Scenarios driver_scenarios() {
  Scenarios all;
  for (const Scenarios& part : {kernel_driver(), cuda_driver(), devices(), daemons()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
