#include "src/instruments/doctor/checks.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

/// Two GPUs and two EFA devices.
void with_efa(Machine& m) {
  m.node = healthy_node();
  for (Nic& nic : m.node.nics)
    nic.driver = known<std::string>("efa", "test");
}

void with_gdrcopy(Machine& m) {
  m.files.write("/sys/module/gdrdrv/version", "2.4\n");
  m.files.write("/dev/gdrdrv", "");
  m.files.write("/usr/lib64/libgdrapi.so.2.4", "");
  m.files.symlink("/usr/lib64/libgdrapi.so.2", "libgdrapi.so.2.4");
}

std::function<CheckResult()> provider(const doctor::ExpectedProvider& expected,
                                      const fabric::ProviderPresence& presence) {
  return [=] { return doctor::judge_libfabric_provider(expected, presence); };
}

Scenarios providers() {
  const std::string id = "libfabric-provider";
  const doctor::ExpectedProvider efa{"efa", "there are EFA devices", true};
  const doctor::ExpectedProvider verbs{"verbs", "there are RDMA devices", false};
  const fabric::ProviderPresence found{
      "libfabric 1.17 (/lib/libfabric.so.1)", "efa", {"rdmap0s8", "rdmap1s8"}, "", ""};
  const fabric::ProviderPresence none{"libfabric 1.17 (/lib/libfabric.so.1)",
                                      "",
                                      {},
                                      "it has no usable provider: efa: No data available",
                                      "name an available provider"};
  const fabric::ProviderPresence no_library{
      "", "", {}, "libfabric cannot be opened: no such file", "install libfabric1"};
  const auto nothing = [](Machine&) {};
  return {
      {id, "there", nothing, pass, "efa with rdmap0s8, rdmap1s8", "", provider(efa, found)},
      {id, "not there, and nothing else can use the NICs", nothing, fail, "there are EFA devices",
       "name an available provider", provider(efa, none)},
      {id, "not there, and other transports can", nothing, warning, "libfabric 1.17",
       "name an available provider", provider(verbs, none)},
      {id, "no library", nothing, fail, "efa, because", "install libfabric1",
       provider(efa, no_library)},
      {id, "a copied tree", with_efa, skipped, "", ""},
  };
}

Scenarios environments() {
  const std::string id = "libfabric-environment";
  return {
      {id, "nothing set", with_efa, pass, "FI_EFA_USE_DEVICE_RDMA is not set", ""},
      {id, "set as needed",
       [](Machine& m) {
         with_efa(m);
         m.environment["FI_EFA_USE_DEVICE_RDMA"] = "1";
       },
       pass, "FI_EFA_USE_DEVICE_RDMA: 1", ""},
      {id, "device RDMA switched off",
       [](Machine& m) {
         with_efa(m);
         m.environment["FI_EFA_USE_DEVICE_RDMA"] = "0";
       },
       fail, "FI_EFA_USE_DEVICE_RDMA: 0", "export FI_EFA_USE_DEVICE_RDMA=1"},
      {id, "shared memory between PEs of a node",
       [](Machine& m) {
         with_efa(m);
         m.environment["FI_EFA_ENABLE_SHM_TRANSFER"] = "1";
       },
       warning, "FI_EFA_ENABLE_SHM_TRANSFER: 1", "export FI_EFA_ENABLE_SHM_TRANSFER=0"},
      {id, "rules of EFA by option",
       [](Machine& m) {
         m.node = node_without_rdma();
         m.environment["SHMEMCTL_LIBFABRIC_PROFILE"] = "efa";
         m.environment["FI_EFA_USE_DEVICE_RDMA"] = "0";
       },
       fail, "SHMEMCTL_LIBFABRIC_PROFILE requests it", "export FI_EFA_USE_DEVICE_RDMA=1"},
      {id, "NVSHMEM's variable",
       [](Machine& m) {
         m.node = node_without_rdma();
         m.environment["NVSHMEM_LIBFABRIC_PROVIDER"] = "cxi";
         m.environment["FI_CXI_OPTIMIZED_MRS"] = "1";
       },
       warning, "NVSHMEM_LIBFABRIC_PROVIDER requests it", "export FI_CXI_OPTIMIZED_MRS=0"},
      {id, "verbs, with a size of its own",
       [](Machine& m) {
         m.node = healthy_node();
         m.environment["FI_UNIVERSE_SIZE"] = "1000";
       },
       pass, "FI_UNIVERSE_SIZE: 1000", ""},
      {id, "TCP needs none", [](Machine& m) { m.node = node_without_rdma(); }, skipped, "", ""},
      {id, "a provider without rules",
       [](Machine& m) {
         m.node = healthy_node();
         m.environment["SHMEMCTL_LIBFABRIC_PROVIDER"] = "sockets";
       },
       skipped, "", ""},
  };
}

Scenarios gdrcopies() {
  const std::string id = "libfabric-gdrcopy";
  return {
      {id, "EFA with GDRCopy",
       [](Machine& m) {
         with_efa(m);
         with_gdrcopy(m);
       },
       pass, "/usr/lib64/libgdrapi.so.2.4", ""},
      {id, "EFA without GDRCopy", with_efa, fail, "/sys/module/gdrdrv: not there",
       "modprobe gdrdrv"},
      {id, "EFA without its library",
       [](Machine& m) {
         with_efa(m);
         with_gdrcopy(m);
         m.files.remove("/usr/lib64/libgdrapi.so.2");
       },
       fail, "libgdrapi.so.2: in no library folder", "install"},
      {id, "EFA without GPUs",
       [](Machine& m) {
         with_efa(m);
         m.node.gpus.clear();
       },
       skipped, "", ""},
      {id, "another provider", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
  };
}

} // namespace

Scenarios libfabric_scenarios() {
  Scenarios all;
  for (const Scenarios& part : {providers(), environments(), gdrcopies()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
