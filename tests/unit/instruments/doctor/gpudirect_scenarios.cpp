#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

constexpr const char* module_line = "options nvidia NVreg_EnableStreamMemOPs=1 "
                                    "NVreg_RegistryDwords=\"PeerMappingOverride=1;\"";

void with_params(Machine& m, const std::string& memops, const std::string& registry) {
  m.node = healthy_node();
  m.files.write("/proc/driver/nvidia/params",
                "ResmanDebugLevel: 4294967295\nEnableStreamMemOPs: " + memops +
                    "\nRegistryDwords: \"" + registry + "\"\nRegistryDwordsPerDevice: \"\"\n");
}

void with_kernel(Machine& m, const std::string& release) {
  m.node = healthy_node();
  m.files.write("/proc/sys/kernel/osrelease", release + "\n");
}

void with_open_modules(Machine& m) {
  with_kernel(m, "6.8.0-45-generic");
  m.files.write("/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n");
}

void with_proprietary_modules(Machine& m) {
  with_kernel(m, "6.8.0-45-generic");
  m.files.write("/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\n");
}

void with_verbs(Machine& m, const std::string& version) {
  with_open_modules(m);
  m.files.write("/usr/lib64/libibverbs.so." + version, "");
  m.files.symlink("/usr/lib64/libibverbs.so.1", "libibverbs.so." + version);
}

void with_gdrcopy(Machine& m) {
  m.node = healthy_node();
  m.files.write("/sys/module/gdrdrv/version", "2.4\n");
  m.files.write("/dev/gdrdrv", "");
  m.files.write("/usr/lib64/libgdrapi.so.2.4", "");
  m.files.symlink("/usr/lib64/libgdrapi.so.2", "libgdrapi.so.2.4");
}

Scenarios peer_mapping() {
  const std::string id = "peer-mapping-override";
  return {
      {id, "set", [](Machine& m) { with_params(m, "1", "PeerMappingOverride=1;"); }, pass,
       "PeerMappingOverride=1", ""},
      {id, "set among others, in hexadecimal",
       [](Machine& m) { with_params(m, "1", "RmFoo=3; PeerMappingOverride=0x1"); }, pass,
       "/proc/driver/nvidia/params: RegistryDwords", ""},
      {id, "not set", [](Machine& m) { with_params(m, "1", ""); }, warning,
       "/proc/driver/nvidia/params: RegistryDwords", module_line},
      {id, "set to 0", [](Machine& m) { with_params(m, "1", "PeerMappingOverride=0"); }, warning,
       "PeerMappingOverride=0", module_line},
      {id, "a key that only ends like it",
       [](Machine& m) { with_params(m, "1", "NoPeerMappingOverride=1"); }, warning,
       "NoPeerMappingOverride=1", module_line},
      {id, "not set, and IBGDA asked for",
       [](Machine& m) {
         with_params(m, "1", "");
         m.environment["NVSHMEM_IB_ENABLE_IBGDA"] = "1";
       },
       fail, "NVSHMEM_IB_ENABLE_IBGDA", module_line},
      {id, "no stream memory operations",
       [](Machine& m) { with_params(m, "0", "PeerMappingOverride=1;"); }, warning,
       "EnableStreamMemOPs: 0", module_line},
      {id, "no driver", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/proc/driver/nvidia/params: not there", ""},
      {id, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
      {id, "no RDMA", [](Machine& m) { m.node = node_without_rdma(); }, skipped, "", ""},
  };
}

Scenarios ways() {
  auto with_peermem = [](Machine& m) {
    with_proprietary_modules(m);
    m.files.write("/sys/module/nvidia_peermem/version", "550.54.15\n");
  };
  auto with_nv_peer_mem = [](Machine& m) {
    with_proprietary_modules(m);
    m.files.write("/sys/kernel/mm/memory_peers/nv_mem/version", "1.3\n");
  };
  auto without_gpus = [](Machine& m) { m.node = node_without_gpus(); };
  auto without_rdma = [](Machine& m) { m.node = node_without_rdma(); };
  return {
      {"nvidia-peermem", "loaded", with_peermem, pass, "/sys/module/nvidia_peermem/version", ""},
      {"nvidia-peermem", "nv_peer_mem", with_nv_peer_mem, pass,
       "/sys/kernel/mm/memory_peers/nv_mem/version: 1.3", ""},
      {"nvidia-peermem", "in /proc/modules only",
       [](Machine& m) {
         with_proprietary_modules(m);
         m.files.write("/proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia_peermem 16384 0 - "
                                        "Live 0x0\n");
       },
       pass, "/proc/modules: nvidia_peermem 16384", ""},
      {"nvidia-peermem", "not loaded", with_proprietary_modules, warning,
       "/sys/module/nvidia_peermem: not there", "modprobe nvidia-peermem"},
      {"nvidia-peermem", "not loaded, but dma-buf", with_open_modules, skipped,
       "/proc/sys/kernel/osrelease: 6.8.0", ""},
      {"nvidia-peermem", "no GPU", without_gpus, skipped, "", ""},
      {"nvidia-peermem", "no RDMA", without_rdma, skipped, "", ""},

      {"dma-buf", "open modules", with_open_modules, pass, "Open Kernel Module", ""},
      {"dma-buf", "kernel configured for it",
       [](Machine& m) {
         with_open_modules(m);
         m.files.write("/boot/config-6.8.0-45-generic", "CONFIG_DMA_SHARED_BUFFER=y\n");
       },
       pass, "6.8.0-45-generic", ""},
      {"dma-buf", "kernel without it",
       [](Machine& m) {
         with_open_modules(m);
         m.files.write("/boot/config-6.8.0-45-generic", "# CONFIG_DMA_SHARED_BUFFER is not set\n");
       },
       warning, "CONFIG_DMA_SHARED_BUFFER: not set", "linux-image"},
      {"dma-buf", "old kernel",
       [](Machine& m) {
         with_open_modules(m);
         m.files.write("/proc/sys/kernel/osrelease", "5.10.0-28-amd64\n");
       },
       warning, "/proc/sys/kernel/osrelease: 5.10.0", "install"},
      {"dma-buf", "proprietary modules", with_proprietary_modules, warning,
       "NVIDIA UNIX x86_64 Kernel Module  550.54.15", "nvidia-open"},
      {"dma-buf", "libibverbs with ibv_reg_dmabuf_mr",
       [](Machine& m) { with_verbs(m, "1.12.34.0"); }, pass, "Open Kernel Module", ""},
      {"dma-buf", "libibverbs of a version that its name does not tell",
       [](Machine& m) { with_verbs(m, "1.odd"); }, pass, "Open Kernel Module", ""},
      {"dma-buf", "libibverbs without ibv_reg_dmabuf_mr",
       [](Machine& m) { with_verbs(m, "1.11.32.0"); }, warning,
       "/usr/lib64/libibverbs.so.1: is /usr/lib64/libibverbs.so.1.11.32.0", "libibverbs"},
      {"gpudirect-rdma", "libibverbs without ibv_reg_dmabuf_mr, and no nvidia_peermem",
       [](Machine& m) { with_verbs(m, "1.11.32.0"); }, fail, "libibverbs.so.1.11.32.0",
       "modprobe nvidia-peermem"},
      {"dma-buf", "no driver", [](Machine& m) { with_kernel(m, "6.8.0"); }, warning,
       "/proc/driver/nvidia/version: not there", "modprobe nvidia"},
      {"dma-buf", "not available, but nvidia_peermem", with_peermem, skipped,
       "/sys/module/nvidia_peermem", ""},
      {"dma-buf", "no GPU", without_gpus, skipped, "", ""},

      {"gpudirect-rdma", "dma-buf", with_open_modules, pass, "Open Kernel Module", ""},
      {"gpudirect-rdma", "nvidia_peermem", with_peermem, pass, "/sys/module/nvidia_peermem", ""},
      {"gpudirect-rdma", "neither", with_proprietary_modules, fail,
       "/sys/module/nvidia_peermem: not there", "modprobe nvidia-peermem"},
      {"gpudirect-rdma", "no GPU", without_gpus, skipped, "", ""},
      {"gpudirect-rdma", "no RDMA", without_rdma, skipped, "", ""},
  };
}

Scenarios gdrcopy() {
  const std::string id = "gdrcopy";
  return {
      {id, "complete", with_gdrcopy, pass, "/usr/lib64/libgdrapi.so.2.4", ""},
      {id, "nothing of it", [](Machine& m) { m.node = healthy_node(); }, warning,
       "/sys/module/gdrdrv: not there", "modprobe gdrdrv"},
      {id, "no library",
       [](Machine& m) {
         with_gdrcopy(m);
         m.files.remove("/usr/lib64/libgdrapi.so.2");
         m.files.write("/etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
       },
       warning, "libgdrapi.so.2: in no library folder", "dnf install -y gdrcopy"},
      {id, "no device node",
       [](Machine& m) {
         with_gdrcopy(m);
         m.files.remove("/dev/gdrdrv");
       },
       warning, "/dev/gdrdrv: not there", "mknod -m 666 /dev/gdrdrv"},
      {id, "no device node in the container",
       [](Machine& m) {
         with_gdrcopy(m);
         m.files.remove("/dev/gdrdrv");
         m.files.write("/proc/1/cgroup", "0::/kubepods/besteffort/pod1\n");
       },
       warning, "/dev/gdrdrv: not there", "--device=/dev/gdrdrv"},
      {id, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

} // namespace

Scenarios gpudirect_scenarios() {
  Scenarios all;
  for (const Scenarios& part : {peer_mapping(), ways(), gdrcopy()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
