#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

struct LibrarySpec {
  const char* id;
  const char* name;
  const char* file;
  const char* version;
  const char* debian; ///< a part of the command that installs the package
  const char* redhat;
  bool needs_hardware;
};
constexpr LibrarySpec specs[] = {
    {"libcuda", "libcuda.so.1", "libcuda.so.580.65.06", "580.65.06", "libnvidia-compute",
     "nvidia-driver-cuda-libs", true},
    {"libnvidia-ml", "libnvidia-ml.so.1", "libnvidia-ml.so.580.65.06", "580.65.06", "libnvidia-ml1",
     "nvidia-driver-cuda", true},
    {"libibverbs", "libibverbs.so.1", "libibverbs.so.1.14.44.0", "1.14.44.0", "libibverbs1",
     "libibverbs", true},
    {"libmlx5", "libmlx5.so.1", "libmlx5.so.1.24.44.0", "1.24.44.0", "ibverbs-providers",
     "libibverbs", true},
    {"librdmacm", "librdmacm.so.1", "librdmacm.so.1.3.44.0", "1.3.44.0", "librdmacm1", "librdmacm",
     true},
    {"libfabric", "libfabric.so.1", "libfabric.so.1.20.0", "1.20.0", "libfabric1", "libfabric",
     true},
    {"libucp", "libucp.so.0", "libucp.so.0.0.0", "0.0.0", "libucx0", "ucx", true},
    {"libmpi", "libmpi.so.40", "libmpi.so.40.30.4", "40.30.4", "openmpi-bin", "openmpi", false},
    {"libpmix", "libpmix.so.2", "libpmix.so.2.5.2", "2.5.2", "libpmix2", "pmix", false},
    {"liboshmem", "liboshmem.so.40", "liboshmem.so.40.30.2", "40.30.2", "openmpi-bin", "openmpi",
     false},
    {"libgdrapi", "libgdrapi.so.2", "libgdrapi.so.2.4", "2.4", "libgdrapi", "gdrcopy", true},
};

void with_folder(Machine& m, const char* distribution) {
  m.node = healthy_node();
  m.files.directory("/usr/lib/x86_64-linux-gnu");
  m.files.write("/etc/os-release", distribution);
}

Scenarios of_library(const LibrarySpec& spec) {
  const std::string id = spec.id;
  auto present = [spec](Machine& m) {
    with_folder(m, "ID=debian\n");
    const std::string folder = "/usr/lib/x86_64-linux-gnu/";
    m.files.write(folder + spec.file, "");
    m.files.symlink(folder + spec.name, spec.file);
  };
  const CheckStatus missing = spec.needs_hardware ? warning : skipped;
  Scenarios scenarios = {
      {id, "there", present, pass, std::string("/usr/lib/x86_64-linux-gnu/") + spec.file, ""},
      {id, "missing on Debian", [](Machine& m) { with_folder(m, "NAME=x\nID=debian\n"); }, missing,
       std::string(spec.name) + ": in no library folder", std::string("apt-get install -y ")},
      {id, "missing on Ubuntu", [](Machine& m) { with_folder(m, "ID=ubuntu\nID_LIKE=debian\n"); },
       missing, spec.name, spec.debian},
      {id, "missing on Rocky Linux",
       [](Machine& m) { with_folder(m, "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"); },
       missing, spec.name, std::string("dnf install -y ") + spec.redhat},
      {id, "missing on an unknown system", [](Machine& m) { with_folder(m, ""); }, missing,
       spec.name, std::string("# on RHEL: dnf install -y ") + spec.redhat},
      {id, "no library folders in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/usr/lib: not there", ""},
  };
  if (spec.needs_hardware)
    scenarios.push_back({id, "missing, without the hardware",
                         [](Machine& m) {
                           with_folder(m, "ID=debian\n");
                           m.node.gpus.clear();
                           m.node.nics.clear();
                         },
                         skipped, "in no library folder", ""});
  return scenarios;
}

Scenarios places() {
  return {
      {"libibverbs", "in a folder of ld.so.conf.d",
       [](Machine& m) {
         with_folder(m, "ID=debian\n");
         m.files.write("/etc/ld.so.conf.d/ofed.conf", "# OFED\n /opt/ofed/lib \n");
         m.files.write("/opt/ofed/lib/libibverbs.so.1", "");
       },
       pass, "/opt/ofed/lib/libibverbs.so.1", ""},
      {"libmpi", "MPICH",
       [](Machine& m) {
         with_folder(m, "ID=debian\n");
         m.files.write("/usr/lib64/libmpi.so.12.3.0", "");
         m.files.symlink("/usr/lib64/libmpi.so.12", "libmpi.so.12.3.0");
       },
       pass, "/usr/lib64/libmpi.so.12.3.0", ""},
      {"libibverbs", "a link that points nowhere",
       [](Machine& m) {
         with_folder(m, "ID=debian\n");
         m.files.symlink("/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "libibverbs.so.1.14");
       },
       warning, "libibverbs.so.1: in no library folder", "libibverbs1"},
      {"libcuda", "missing beside a loaded driver",
       [](Machine& m) {
         with_folder(m, "ID=ubuntu\n");
         m.files.write("/proc/driver/nvidia/version",
                       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n");
       },
       warning, "libcuda.so.1", "apt-get install -y libnvidia-compute-550 "},
      {"libmlx5", "missing on a node of EFA devices",
       [](Machine& m) {
         with_folder(m, "ID=debian\n");
         for (Nic& nic : m.node.nics)
           nic.driver = known<std::string>("efa", "test");
       },
       skipped, "libmlx5.so.1", ""},
  };
}

} // namespace

Scenarios library_scenarios() {
  Scenarios all = places();
  for (const LibrarySpec& spec : specs) {
    const Scenarios part = of_library(spec);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

} // namespace shmemctl
