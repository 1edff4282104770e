#include "src/doctor/checks.h"
#include "tests/unit/doctor/scenario.h"

namespace shmemctl {

namespace {

constexpr CheckStatus pass = CheckStatus::pass, warning = CheckStatus::warning,
                      fail = CheckStatus::fail, skipped = CheckStatus::skipped;

void with_gpus_of_driver(Machine& m, int count) {
  m.node = healthy_node();
  m.files.directory("/proc/driver/nvidia/gpus");
  for (int i = 0; i < count; ++i)
    m.files.write(std::string("/proc/driver/nvidia/gpus/") + gpu_address[i] + "/information", "");
}

doctor::CudaProbe probe_of(std::vector<std::vector<bool>> peers) {
  doctor::CudaProbe probe;
  probe.init_result = 0;
  probe.devices.resize(peers.size());
  probe.peers = std::move(peers);
  return probe;
}

Scenario p2p(const std::string& name, const doctor::CudaProbe& probe, bool nvlinks,
             CheckStatus status, const std::string& evidence, const std::string& fix) {
  return {"gpu-p2p", name, nullptr, status, evidence, fix,
          [probe, nvlinks] { return doctor::judge_gpu_p2p(probe, nvlinks); }};
}

Scenario health(const std::string& name, const std::vector<doctor::GpuHealth>& gpus,
                CheckStatus status, const std::string& evidence, const std::string& fix) {
  return {"gpu-health", name, nullptr, status, evidence, fix,
          [gpus] { return doctor::judge_gpu_health(gpus); }};
}

doctor::GpuHealth well(const char* address) {
  return {address, 0, false, false, false};
}

Scenarios visible() {
  const std::string id = "gpus-visible";
  return {
      {id, "all of them", [](Machine& m) { with_gpus_of_driver(m, 2); }, pass,
       "/proc/driver/nvidia/gpus: 2 GPUs; PCI: 2", ""},
      {id, "one has fallen off the bus", [](Machine& m) { with_gpus_of_driver(m, 1); }, fail,
       "/proc/driver/nvidia/gpus: 1 GPUs; PCI: 2", "xid"},
      {id, "one is not given to the container",
       [](Machine& m) {
         with_gpus_of_driver(m, 1);
         m.files.write("/.dockerenv", "");
       },
       warning, "1 GPUs; PCI: 2", "docker run --gpus all"},
      {id, "one is lent to a virtual machine",
       [](Machine& m) {
         with_gpus_of_driver(m, 1);
         m.files.symlink(std::string("/sys/bus/pci/devices/") + gpu_address[1] + "/driver",
                         "../../../bus/pci/drivers/vfio-pci");
       },
       warning, "/driver: vfio-pci", "readlink"},
      {id, "no driver", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/proc/driver/nvidia/gpus: not there", ""},
      {id, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

Scenarios links() {
  const std::string id = "nvlink-state";
  return {
      {id, "the same on all", [](Machine& m) { m.node = healthy_node(); }, pass,
       "active NVLinks: GPU0 18, GPU1 18", ""},
      {id, "one GPU has fewer",
       [](Machine& m) {
         m.node = healthy_node();
         m.node.gpus[1].links[0].count = 17;
       },
       warning, "GPU0 18, GPU1 17", "nvidia-smi nvlink --status -i 0000:23:00.0"},
      {id, "one GPU is cut off",
       [](Machine& m) {
         m.node = healthy_node();
         m.node.gpus[0].links.clear();
       },
       fail, "GPU0 0, GPU1 18", "nvidia-smi nvlink --status -i 0000:13:00.0"},
      {id, "another model may have fewer",
       [](Machine& m) {
         m.node = healthy_node();
         m.node.gpus[1].name = known<std::string>("NVIDIA L4", "test");
         m.node.gpus[1].links.clear();
       },
       pass, "GPU0 18, GPU1 0", ""},
      {id, "no NVLink",
       [](Machine& m) {
         m.node = healthy_node();
         for (Gpu& gpu : m.node.gpus)
           gpu.links.clear();
       },
       skipped, "", ""},
      {id, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

Scenarios peers() {
  doctor::CudaProbe broken;
  broken.init_result = 802;
  return {
      p2p("every pair", probe_of({{false, true}, {true, false}}), true, pass,
          "cuDeviceCanAccessPeer: yes for all 1 pairs", ""),
      p2p("one direction only", probe_of({{false, true}, {false, false}}), true, fail,
          "0 for CUDA devices 0-1", "nvidia-smi topo -p2p r"),
      p2p("not over PCIe", probe_of({{false, false}, {false, false}}), false, warning,
          "0 for CUDA devices 0-1", "pcie-acs"),
      p2p("a row is missing", probe_of({{false, true, true}, {true, false, true}}), true, fail,
          "0-2, 1-2", "nvidia-smi topo"),
      p2p("one GPU", probe_of({{false}}), false, skipped, "cuDeviceGetCount: 1", ""),
      p2p("CUDA does not start", broken, true, skipped, "", ""),
      {"gpu-p2p", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
      {"gpu-p2p", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

Scenarios healths() {
  doctor::GpuHealth worn = well("0000:23:00.0");
  worn.remapping_failed = true;
  doctor::GpuHealth pending = well("0000:23:00.0");
  pending.remapping_pending = true;
  doctor::GpuHealth retiring = well("0000:23:00.0");
  retiring.retirement_pending = true;
  doctor::GpuHealth errors = well("0000:23:00.0");
  errors.uncorrected_errors = 3;
  return {
      health("all well", {well("0000:13:00.0"), well("0000:23:00.0")}, pass,
             "0000:13:00.0, 0000:23:00.0", ""),
      health("no spare rows left", {well("0000:13:00.0"), worn}, fail,
             "nvmlDeviceGetRemappedRows: failure on 0000:23:00.0", "0000:23:00.0"),
      health("remapping waits for a reset", {pending}, warning,
             "nvmlDeviceGetRemappedRows: pending on 0000:23:00.0",
             "nvidia-smi --gpu-reset -i 0000:23:00.0"),
      health("retirement waits for a reset", {retiring}, warning,
             "nvmlDeviceGetRetiredPagesPendingStatus: pending on 0000:23:00.0",
             "nvidia-smi --gpu-reset -i 0000:23:00.0"),
      health("uncorrected errors since the last reset", {errors}, warning,
             "nvmlDeviceGetTotalEccErrors: 3 uncorrected on 0000:23:00.0",
             "nvidia-smi --gpu-reset -i 0000:23:00.0"),
      health("GPUs that count nothing", {{"0000:13:00.0", {}, {}, {}, {}}}, skipped, "NVML", ""),
      {"gpu-health", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
      {"gpu-health", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

} // namespace

Scenarios gpu_scenarios() {
  Scenarios all;
  for (const Scenarios& part : {visible(), links(), peers(), healths()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
