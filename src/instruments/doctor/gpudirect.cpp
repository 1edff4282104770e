// Checks the prerequisites for NICs to access GPU memory, and for GPUs to access NICs.
#include <algorithm>
#include <charconv>

#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/libraries.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr const char* params_path = "/proc/driver/nvidia/params";
constexpr const char* driver_version_path = "/proc/driver/nvidia/version";
constexpr const char* modprobe_line =
    "echo 'options nvidia NVreg_EnableStreamMemOPs=1 "
    "NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' > /etc/modprobe.d/nvidia-ibgda.conf && "
    "(update-initramfs -u || dracut -f) && reboot";
constexpr std::array<int, 2> first_dma_buf_kernel = {5, 12};

bool wants_ibgda(const Environment& environment) {
  return Options(environment).boolean("IB_ENABLE_IBGDA");
}

/// One path to GPU memory: whether it is available, the evidence, and the fix that would enable it.
struct GpuMemoryPath {
  bool open = false;
  std::string reason, evidence, fix;
};

/// Access through a peer memory client: the version file of nvidia-peermem or nv_mem, or the module
/// nvidia_peermem, as NVSHMEM checks them; or the module nv_peer_mem.
GpuMemoryPath peermem_path(const Sysroot& sysroot) {
  for (const char* folder : {"nvidia-peermem", "nv_mem"}) {
    const std::string path = std::string("/sys/kernel/mm/memory_peers/") + folder + "/version";
    if (const auto version = sysroot.read_line(path))
      return {true, "peer memory client " + *version, file_evidence(path, *version), ""};
  }
  for (const char* module : {"nvidia_peermem", "nv_peer_mem"})
    if (const auto evidence = module_evidence(sysroot, module))
      return {true, std::string(module) + " is loaded", *evidence, ""};
  return {
      false, "nvidia_peermem is not loaded",
      absent("/sys/module/nvidia_peermem") + "; " +
          absent("/sys/kernel/mm/memory_peers/nv_mem/version"),
      "modprobe nvidia-peermem && echo nvidia-peermem > /etc/modules-load.d/nvidia-peermem.conf"};
}

/// The kernel configuration's "y", "m" or "n" (not set); empty if it cannot be read.
std::optional<std::string> kernel_option(const Sysroot& sysroot, const std::string& release,
                                         const std::string& option) {
  for (const std::string& path : {"/boot/config-" + release, "/lib/modules/" + release + "/config",
                                  "/usr/lib/modules/" + release + "/config"}) {
    const std::optional<std::string> text = sysroot.read(path);
    if (text)
      return field_of(*text, option + "=").value_or("n");
  }
  return std::nullopt;
}

std::optional<GpuMemoryPath> asked_dma_buf(const Sysroot& sysroot) {
  if (!sysroot.live() || !live_cuda().initialized() || live_cuda().devices.empty())
    return std::nullopt;
  const std::vector<CudaDevice>& devices = live_cuda().devices;
  if (!std::all_of(devices.begin(), devices.end(),
                   [](const CudaDevice& device) { return device.dma_buf; }))
    return std::nullopt; // the files below explain why
  return GpuMemoryPath{true, "CUDA exports GPU memory as dma-buf",
                       "cuDeviceGetAttribute(DMA_BUF_SUPPORTED): 1 on every GPU", ""};
}

GpuMemoryPath exported_dma_buf(const Sysroot& sysroot) {
  if (const auto asked = asked_dma_buf(sysroot))
    return *asked;
  const std::optional<KernelVersion> kernel = kernel_version(sysroot);
  if (!kernel)
    return {false, "the kernel's version is unknown", absent(osrelease_path),
            "copy /proc/sys/kernel/osrelease into the tree"};
  const std::string kernel_evidence = file_evidence(osrelease_path, kernel->release);
  if (kernel->number() < first_dma_buf_kernel)
    return {false, "RDMA drivers support dma-buf since Linux 5.12", kernel_evidence,
            install_newer_kernel(sysroot)};
  const std::string option = "CONFIG_DMA_SHARED_BUFFER";
  if (kernel_option(sysroot, kernel->release, option) == "n")
    return {false, "the kernel is built without dma-buf",
            kernel_evidence + "; " + option + ": not set", install_newer_kernel(sysroot)};
  const std::optional<std::string> text = sysroot.read(driver_version_path);
  const std::optional<NvidiaVersion> driver = parse_nvidia_version(text.value_or(""));
  if (!driver)
    return {false, "the NVIDIA driver is not loaded", absent(driver_version_path),
            "modprobe nvidia"};
  const std::string driver_evidence =
      file_evidence(driver_version_path, split(*text, '\n').front());
  if (!driver->open_modules)
    return {false, "only NVIDIA's open kernel modules export dma-buf; these are proprietary",
            driver_evidence, install_command(sysroot, "nvidia-open", "nvidia-open") + " && reboot"};
  return {true, "Linux " + kernel->release + " and open kernel modules " + driver->version,
          kernel_evidence + "; " + driver_evidence, ""};
}

/// The result for a libibverbs that does not support dma-buf, judged by the rdma-core version at
/// the end of its file name. Empty if it supports dma-buf, if the name has no version, or if there
/// is no libibverbs, which another check reports.
std::optional<GpuMemoryPath> old_verbs_library(const Sysroot& sysroot) {
  constexpr int first_with_dma_buf = 34;
  const std::optional<LibraryFile> library = find_library(sysroot, {"libibverbs.so.1"});
  const std::vector<std::string> version =
      split(library ? version_in_file_name(library->file).value_or("") : "", '.');
  int release = 0; // the number 44 in "1.14.44.0"
  if (version.size() < 4 ||
      std::from_chars(version[2].data(), version[2].data() + version[2].size(), release).ec !=
          std::errc() ||
      release >= first_with_dma_buf)
    return std::nullopt;
  return GpuMemoryPath{false,
                       "libibverbs has no ibv_reg_dmabuf_mr: it is from rdma-core " + version[2] +
                           ", which has it since 34",
                       library->path + ": is " + library->file,
                       install_command(sysroot, "libibverbs1 ibverbs-providers", "libibverbs")};
}

GpuMemoryPath dma_buf_path(const Sysroot& sysroot) {
  GpuMemoryPath gpu_path = exported_dma_buf(sysroot);
  if (gpu_path.open)
    if (std::optional<GpuMemoryPath> old = old_verbs_library(sysroot))
      return *old;
  return gpu_path;
}

/// An unavailable path is less severe if the other path is available.
CheckResult judge_path(const GpuMemoryPath& gpu_path, const GpuMemoryPath& other,
                       const std::string& other_name) {
  if (gpu_path.open)
    return passed(gpu_path.reason, gpu_path.evidence);
  if (other.open)
    return skipped(gpu_path.reason + "; not needed, because " + other_name + " is available",
                   gpu_path.evidence + "; " + other.evidence);
  return warned(gpu_path.reason, gpu_path.evidence, gpu_path.fix);
}

} // namespace

CheckResult peer_mapping_override(const CheckContext& context) {
  if (const auto reason = no_gpu_or_rdma(context.node))
    return skipped(*reason);
  const std::optional<std::string> params = context.sysroot.read(params_path);
  if (!params)
    return skipped("the NVIDIA driver does not show its parameters", absent(params_path));
  const std::string registry = field_of(*params, "RegistryDwords:").value_or("absent");
  const std::string memops = field_of(*params, "EnableStreamMemOPs:").value_or("absent");
  const std::string evidence = std::string(params_path) + ": " +
                               file_evidence("RegistryDwords", registry) + ", " +
                               file_evidence("EnableStreamMemOPs", memops);
  if (registry_dword(*params, "PeerMappingOverride") == 1) {
    if (memops == "0")
      return warned("PeerMappingOverride is set, but stream memory operations, which NVSHMEM also "
                    "requires for IBGDA, are off",
                    evidence, modprobe_line);
    return passed("the GPU may write to a NIC's doorbell (IBGDA)", evidence);
  }
  const std::string reason =
      "PeerMappingOverride is not set: the GPU cannot ring a NIC's doorbell, "
      "and IBGDA silently falls back to a CPU proxy thread";
  if (wants_ibgda(context.environment))
    return failed(reason, evidence + "; environment: NVSHMEM_IB_ENABLE_IBGDA requests IBGDA",
                  modprobe_line);
  return warned(reason, evidence, modprobe_line);
}

CheckResult nvidia_peermem(const CheckContext& context) {
  if (const auto reason = no_gpu_or_rdma(context.node))
    return skipped(*reason);
  return judge_path(peermem_path(context.sysroot), dma_buf_path(context.sysroot), "dma-buf");
}

CheckResult dma_buf(const CheckContext& context) {
  if (const auto reason = no_gpu_or_rdma(context.node))
    return skipped(*reason);
  return judge_path(dma_buf_path(context.sysroot), peermem_path(context.sysroot), "nvidia_peermem");
}

CheckResult gpudirect_rdma(const CheckContext& context) {
  if (const auto reason = no_gpu_or_rdma(context.node))
    return skipped(*reason);
  const GpuMemoryPath buffer = dma_buf_path(context.sysroot);
  const GpuMemoryPath peermem = peermem_path(context.sysroot);
  if (buffer.open)
    return passed("NICs reach GPU memory through dma-buf", buffer.evidence);
  if (peermem.open)
    return passed("NICs reach GPU memory through a peer memory client", peermem.evidence);
  return failed("NICs cannot reach GPU memory: neither dma-buf nor nvidia_peermem is available",
                buffer.evidence + "; " + peermem.evidence, peermem.fix);
}

CheckResult gdrcopy(const CheckContext& context) {
  if (const auto reason = no_gpu_or_rdma(context.node))
    return skipped(*reason);
  const Sysroot& sysroot = context.sysroot;
  const auto module = module_evidence(sysroot, "gdrdrv");
  const auto library = find_library(sysroot, {"libgdrapi.so.2"});
  const bool device = sysroot.exists("/dev/gdrdrv") || !has_device_nodes(sysroot);
  std::vector<std::string> missing;
  if (!module)
    missing.push_back(absent("/sys/module/gdrdrv"));
  if (!device)
    missing.push_back(absent("/dev/gdrdrv"));
  if (!library)
    missing.push_back("libgdrapi.so.2: in no library folder");
  if (missing.empty())
    return passed("the CPU reads and writes GPU memory through GDRCopy",
                  *module + "; " + library->path + ": is " + library->file);
  const std::string install =
      install_command(sysroot, "gdrdrv-dkms libgdrapi", "gdrcopy gdrcopy-kmod");
  std::string fix = "modprobe gdrdrv || " + install;
  if (module && !device)
    fix = container_evidence(sysroot, context.environment)
              ? "docker run --device=/dev/gdrdrv"
              : "mknod -m 666 /dev/gdrdrv c $(awk '$2==\"gdrdrv\"{print $1}' /proc/devices) 0";
  return warned("GDRCopy is incomplete: staged atomics and small copies use slower paths",
                join(missing, "; "), fix);
}

} // namespace shmemctl::doctor
