#include <fmt/format.h>
#include <utility>

#include "tests/support/elf_image.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

constexpr const char* software_site = "/opt/venv/lib/python3.12/site-packages/";

std::string library_bytes(const std::vector<std::string>& texts, const std::string& soname = "",
                          const std::vector<std::string>& defined = {},
                          const std::string& needs_of_mlx5 = "") {
  fake::ElfImage image;
  image.soname = soname;
  image.texts = texts;
  image.defined = defined;
  if (!needs_of_mlx5.empty())
    image.needed = {{"libmlx5.so.1", {needs_of_mlx5}}};
  return image.bytes();
}

void add_nccl(Machine& m, const std::string& folder, const std::string& version) {
  m.node = healthy_node();
  m.files.write(folder + "/libnccl.so." + version, library_bytes({"NCCL version " + version}));
  m.files.symlink(folder + "/libnccl.so.2", "libnccl.so." + version);
  m.files.symlink(folder + "/libnccl.so", "libnccl.so.2");
}

std::function<void(Machine&)> two_nccls(const std::string& first, const std::string& system) {
  return [=](Machine& m) {
    add_nccl(m, "/opt/nccl/lib", first);
    add_nccl(m, "/usr/lib/x86_64-linux-gnu", system);
    m.environment["LD_LIBRARY_PATH"] = "/opt/nccl/lib:relative:/gone";
  };
}

void add_package(Machine& m, const std::string& name, const std::string& version,
                 const std::string& metadata = "", const std::string& record = "") {
  const std::string folder = fmt::format("{}{}-{}.dist-info/", software_site, name, version);
  m.files.write(folder + "METADATA", "Metadata-Version: 2.1\n" + metadata);
  m.files.write(folder + "RECORD", record);
}

/// PyTorch of CUDA 12.8 with NCCL and NVSHMEM in an environment.
void add_environment(Machine& m, const std::string& nccl, const std::string& nccl_file) {
  m.node = healthy_node();
  m.python = "/opt/venv";
  m.files.write(std::string(software_site) + "torch/version.py",
                "from typing import Optional\n__version__ = '2.8.0+cu128'\n"
                "cuda: Optional[str] = '12.8'\n");
  add_package(m, "torch", "2.8.0+cu128",
              "Requires-Dist: nvidia-nccl-cu12==2.27.3; platform_system == \"Linux\"\n"
              "Requires-Dist: nvidia-nvshmem-cu12==3.4.5; platform_system == \"Linux\"\n");
  add_package(m, "vllm", "0.11.0", "Requires-Dist: torch==2.8.0\n");
  add_package(m, "nvidia_nccl_cu12", nccl, "", "nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n");
  m.files.write(std::string(software_site) + "nvidia/nccl/lib/libnccl.so.2",
                library_bytes({"NCCL version " + nccl_file + "+cuda12.8"}));
  add_package(m, "nvidia_nvshmem_cu12", "3.4.5", "",
              "nvidia/nvshmem/lib/libnvshmem_host.so.3,sha256=x,1\n");
  m.files.write(std::string(software_site) + "nvidia/nvshmem/lib/libnvshmem_host.so.3",
                library_bytes({"NVSHMEM v3.4.5"}));
}

std::function<void(Machine&)> deep_ep_of(const std::string& release) {
  return [=](Machine& m) {
    add_environment(m, "2.27.3", "2.27.3");
    m.files.write(std::string(software_site) + "deep_ep_cpp.cpython-312-x86_64-linux-gnu.so",
                  library_bytes({"NVSHMEM v" + release, "nvshmemi_ibgda_device_state_d"}));
  };
}

std::function<void(Machine&)> mlx5_up_to(const std::string& last) {
  return [=](Machine& m) {
    m.node = healthy_node();
    m.files.write("/usr/lib64/libmlx5.so.1",
                  library_bytes({}, "libmlx5.so.1", {"MLX5_1.0", "MLX5_1.24", last}));
    m.files.write("/usr/lib64/libnccl.so.2",
                  library_bytes({"NCCL version 2.28.9", "MLX5_1.24", "MLX5_1.25"}));
  };
}

std::function<void(Machine&)> toolkit(const std::string& release, const std::string& driver) {
  return [=](Machine& m) {
    add_environment(m, "2.27.3", "2.27.3");
    m.environment["CUDA_HOME"] = "/usr/local/cuda";
    m.files.write("/usr/local/cuda/version.json",
                  "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"" + release + "\"}}");
    m.files.write("/proc/driver/nvidia/version",
                  "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " + driver +
                      "  Release\n");
  };
}

std::function<void(Machine&)> modules(const std::string& list) {
  return [=](Machine& m) {
    m.node = healthy_node();
    m.environment["LOADEDMODULES"] = list;
  };
}

void nothing_installed(Machine& m) {
  m.node = healthy_node();
}

Scenarios loader_scenarios() {
  const std::string id = "software-loader";
  return {
      {id, "one NCCL", [](Machine& m) { add_nccl(m, "/usr/lib64", "2.27.3"); }, pass,
       "libnccl.so.2 is /usr/lib64/libnccl.so.2.27.3", ""},
      {id, "a newer one first", two_nccls("2.27.3", "2.21.5"), pass,
       "libnccl.so.2 (/opt/nccl/lib/libnccl.so.2 comes first)", ""},
      {id, "the same release twice", two_nccls("2.27.3", "2.27.3"), pass, "libnccl.so.2", ""},
      {id, "an older one first", two_nccls("2.21.5", "2.27.3"), warning,
       "LD_LIBRARY_PATH, then the loader's cache: libnccl.so.2",
       "put /usr/lib/x86_64-linux-gnu before /opt/nccl/lib"},
      {id, "a module's older MPI",
       [](Machine& m) {
         m.node = healthy_node();
         m.environment["LD_LIBRARY_PATH"] = "/opt/ompi/lib";
         m.files.write("/opt/ompi/lib/libmpi.so.40", library_bytes({"4.1.6"}));
         m.files.write("/usr/lib64/libmpi.so.40", library_bytes({"5.0.1"}));
       },
       pass, "libmpi.so.40", ""},
      {id, "two releases of NVSHMEM",
       [](Machine& m) {
         m.node = healthy_node();
         m.files.write("/etc/ld.so.conf.d/nvshmem.conf", "/opt/nvshmem/lib\n");
         m.files.write("/opt/nvshmem/lib/libnvshmem_host.so.3", library_bytes({"NVSHMEM v3.6.5"}));
         m.files.write("/usr/lib64/libnvshmem_host.so.3", library_bytes({"NVSHMEM v3.4.5"}));
       },
       warning, "libnvshmem_host.so.3", "remove /opt/nvshmem/lib/libnvshmem_host.so.3"},
      {id, "nothing installed", nothing_installed, skipped, "/etc/ld.so.cache: none", ""},
  };
}

Scenarios python_scenarios() {
  const std::string id = "software-python";
  return {
      {id, "what PyTorch needs", [](Machine& m) { add_environment(m, "2.27.3", "2.27.3"); }, pass,
       "nvidia-nccl-cu12 2.27.3", ""},
      {id, "the environment that is active",
       [](Machine& m) {
         add_environment(m, "2.27.3", "2.27.3");
         m.environment["VIRTUAL_ENV"] = std::exchange(m.python, "");
       },
       pass, "/opt/venv/lib/python3.12/site-packages", ""},
      {id, "another version than PyTorch needs",
       [](Machine& m) { add_environment(m, "2.28.9", "2.28.9"); }, warning,
       "nvidia-nccl-cu12 2.28.9", "pip install nvidia-nccl-cu12==2.27.3"},
      {id, "a file of another release than its package",
       [](Machine& m) { add_environment(m, "2.27.3", "2.28.9"); }, warning,
       "nvidia-nccl-cu12 2.27.3", "--force-reinstall --no-deps nvidia-nccl-cu12==2.27.3"},
      {id, "two wheels of one library",
       [](Machine& m) {
         add_environment(m, "2.27.3", "2.27.3");
         add_package(m, "nvidia_nccl_cu13", "2.27.3", "",
                     "nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n");
       },
       warning, "nvidia-nccl-cu13 2.27.3",
       "pip uninstall -y nvidia-nccl-cu12 nvidia-nccl-cu13 && pip install nvidia-nccl-cu12"},
      {id, "a wheel for another CUDA",
       [](Machine& m) {
         add_environment(m, "2.27.3", "2.27.3");
         add_package(m, "nvidia_nvshmem_cu13", "3.4.5");
       },
       warning, "nvidia-nvshmem-cu13 3.4.5", "pip install nvidia-nvshmem-cu12"},
      {id, "an environment without such packages",
       [](Machine& m) {
         m.python = "/opt/venv";
         add_package(m, "requests", "2.32.0");
       },
       skipped, "--python: /opt/venv", ""},
      {id, "no environment", nothing_installed, skipped, "VIRTUAL_ENV: not set", "--python"},
  };
}

Scenarios version_scenarios() {
  const std::string id = "software-versions";
  return {
      {id, "DeepEP of the same NVSHMEM", deep_ep_of("3.4.5"), pass, "libnvshmem_host.so.3 (3.4.5)",
       ""},
      {id, "DeepEP of a newer NVSHMEM", deep_ep_of("3.6.5"), fail, "deep_ep_cpp",
       "rebuild deep_ep_cpp"},
      {id, "libmlx5 with what NCCL asks for", mlx5_up_to("MLX5_1.25"), pass, "libmlx5.so.1", ""},
      {id, "an older libmlx5, which NCCL asks at run time", mlx5_up_to("MLX5_1.23"), pass,
       "asks at run time for MLX5_1.25 of libmlx5.so.1", ""},
      {id, "an older libmlx5, which a plugin is linked with",
       [](Machine& m) {
         mlx5_up_to("MLX5_1.23")(m);
         m.files.write("/usr/lib64/nvshmem_transport_ibgda.so.3",
                       library_bytes({"NVSHMEM v3.4.5"}, "", {}, "MLX5_1.25"));
       },
       fail, "nvshmem_transport_ibgda.so.3", "install a newer rdma-core"},
      {id, "nothing installed", nothing_installed, skipped, "/etc/ld.so.cache: none", ""},
  };
}

Scenarios toolkit_scenarios() {
  const std::string cuda = "software-cuda", loaded = "software-modules";
  return {
      {cuda, "that of PyTorch", toolkit("12.6.3", "550.54.15"), pass, "version.json: cuda 12.6.3",
       ""},
      {cuda, "another major release than PyTorch's", toolkit("13.0.1", "580.65.06"), warning,
       "torch/version.py: 12.8", "export CUDA_HOME=/usr/local/cuda-12.8"},
      {cuda, "a driver that is too old",
       [](Machine& m) {
         toolkit("13.0.1", "550.54.15")(m);
         m.python = "";
       },
       warning, "/proc/driver/nvidia/version: 550.54.15", "branch 580"},
      {cuda, "the header alone",
       [](Machine& m) {
         m.environment["CUDA_PATH"] = "/opt/cuda";
         m.files.write("/opt/cuda/include/cuda.h", "#pragma once\n#define CUDA_VERSION 12040\n");
       },
       pass, "cuda.h: CUDA_VERSION 12040", ""},
      {cuda, "not in the copy", [](Machine& m) { m.environment["CUDA_HOME"] = "/opt/cuda"; },
       skipped, "CUDA_HOME=/opt/cuda", ""},
      {cuda, "not set", nothing_installed, skipped, "CUDA_HOME, CUDA_PATH: not set", ""},

      {loaded, "one of each",
       modules("gcc/13.2:CUDA/12.4.0:NCCL/2.21.5-GCCcore-13.2.0-CUDA-12.4.0:mpi/openmpi/5.0.3"),
       pass, "LOADEDMODULES: gcc/13.2", ""},
      {loaded, "two MPIs", modules("cuda/12.4:openmpi/5.0.3:hpcx/2.19"), warning, "hpcx/2.19",
       "module unload openmpi/5.0.3"},
      {loaded, "a library for another CUDA",
       modules("CUDA/12.4.0:NCCL/2.18.3-GCCcore-12.3.0-CUDA-11.8.0"), warning, "NCCL/2.18.3",
       "module swap NCCL/2.18.3-GCCcore-12.3.0-CUDA-11.8.0"},
      {loaded, "a compiler only", modules("gcc/13.2"), skipped, "LOADEDMODULES: gcc/13.2", ""},
      {loaded, "none", nothing_installed, skipped, "LOADEDMODULES: not set", ""},
  };
}

} // namespace

Scenarios software_scenarios() {
  Scenarios all = loader_scenarios();
  for (const Scenarios& part : {python_scenarios(), version_scenarios(), toolkit_scenarios()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
