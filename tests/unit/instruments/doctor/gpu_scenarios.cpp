#include "src/instruments/doctor/checks.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

void with_gpus_of_driver(Machine& m, int count) {
  m.node = healthy_node();
  m.files.directory("/proc/driver/nvidia/gpus");
  for (int i = 0; i < count; ++i)
    m.files.write(std::string("/proc/driver/nvidia/gpus/") + gpu_address[i] + "/information", "");
}

constexpr const char* peer_address[] = {gpu_address[0], gpu_address[1], "0000:24:00.0"};

/// A node of three GPUs, of which NVLinks join the first two, and the third if `all`.
Node node_of_peers(bool any, bool all) {
  Node node = healthy_node();
  node.gpus.push_back(node.gpus.back());
  node.gpus.back().index = 2;
  node.gpus.back().pci = node.nics.back().pci;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const GpuLink link = node.gpus[i].links.front();
    node.gpus[i].links.clear();
    for (std::size_t to = 0; to < node.gpus.size(); ++to)
      if (to != i && (all || (any && i < 2 && to < 2))) {
        node.gpus[i].links.push_back(link);
        node.gpus[i].links.back().target_address = parse_pci_address(peer_address[to]);
      }
  }
  return node;
}

doctor::CudaProbe probe_of(std::vector<std::vector<bool>> peers,
                           std::vector<std::vector<bool>> atomics = {}) {
  doctor::CudaProbe probe;
  probe.init_result = 0;
  probe.devices.resize(peers.empty() ? 0 : peers.front().size());
  for (std::size_t i = 0; i < probe.devices.size(); ++i)
    probe.devices[i].address = parse_pci_address(peer_address[i]);
  probe.peers = std::move(peers);
  probe.atomics = std::move(atomics);
  return probe;
}

enum class Nvlinks { none, first_pair, all };

Scenario p2p(const std::string& name, const doctor::CudaProbe& probe, Nvlinks nvlinks,
             CheckStatus status, const std::string& evidence, const std::string& fix) {
  return {"gpu-p2p", name, nullptr, status, evidence, fix, [probe, nvlinks] {
            return doctor::judge_gpu_p2p(
                probe, node_of_peers(nvlinks != Nvlinks::none, nvlinks == Nvlinks::all));
          }};
}

doctor::SurveyedGpu surveyed(const char* address) {
  doctor::SurveyedGpu each;
  each.gpu.address = known(parse_pci_address(address).value(), "test");
  each.gpu.nvlinks_present = known(18, "test");
  each.gpu.nvlinks_active = known(18, "test");
  each.health.uncorrected_ecc_errors = known<std::uint64_t>(0, "test");
  each.health.remapped_rows = known(NvmlRemappedRows{}, "test");
  each.health.persistence_mode = known(true, "test");
  each.health.throttle_reasons = known<std::uint64_t>(1, "test"); // idle
  each.gpu.name = known<std::string>("NVIDIA H100 80GB HBM3", "test");
  each.health.sm_clock = {known(345U, "test"), known(1980U, "test"), known(1980U, "test"),
                          known(1980U, "test")};
  each.health.memory_clock = {known(2619U, "test"), known(2619U, "test"), known(2619U, "test"),
                              known(2619U, "test")};
  each.health.fabric_state = known(FabricState::completed, "test");
  each.health.fabric_status = known(0, "test");
  return each;
}

/// Two healthy GPUs, except for what `change` does to the second.
doctor::NvmlSurvey survey(const std::function<void(doctor::SurveyedGpu&)>& change = nullptr) {
  doctor::NvmlSurvey result{"", "libnvidia-ml.so.580", {}};
  for (const char* address : gpu_address)
    result.gpus.push_back(surveyed(address));
  if (change)
    change(result.gpus.back());
  return result;
}

Scenario health(const std::string& name, const doctor::NvmlSurvey& gpus, CheckStatus status,
                const std::string& evidence, const std::string& fix) {
  return {"gpu-health", name, nullptr, status, evidence, fix, [gpus] {
            return doctor::judge_gpu_health(gpus);
          }};
}

Scenarios clocks() {
  const auto of = [](const std::string& name, const doctor::NvmlSurvey& gpus, CheckStatus status,
                     const std::string& evidence, const std::string& fix) {
    return Scenario{"gpu-clocks", name, nullptr, status, evidence, fix, [gpus] {
                      return doctor::judge_gpu_clocks(gpus);
                    }};
  };
  const auto running_at = [](unsigned now_MHz, std::uint64_t reasons, bool has_default) {
    return [=](doctor::SurveyedGpu& gpu) {
      gpu.health.sm_clock.now_MHz = known(now_MHz, "test");
      gpu.health.throttle_reasons = known(reasons, "test");
      if (!has_default)
        gpu.health.sm_clock.application_MHz = gpu.health.sm_clock.default_MHz =
            unknown<unsigned>("not supported");
    };
  };
  const std::string second = gpu_address[1];
  return {
      of("idle", survey(), pass, second + " SM 345 of 1980 MHz", ""),
      of("application clocks were set", survey([](doctor::SurveyedGpu& gpu) {
           gpu.health.sm_clock.application_MHz = known(1200U, "test");
         }),
         warning, "application clock 1200 (default 1980)",
         "nvidia-smi -i " + second + " --reset-applications-clocks"),
      of("the memory's too", survey([](doctor::SurveyedGpu& gpu) {
           gpu.health.memory_clock.application_MHz = known(1593U, "test");
         }),
         warning, "memory 2619 of 2619 MHz, application clock 1593", "--reset-applications-clocks"),
      of("a default below the maximum", survey([](doctor::SurveyedGpu& gpu) {
           gpu.health.sm_clock.max_MHz = known(2100U, "test");
         }),
         pass, "345 of 2100 MHz", ""),
      of("locked clocks of running kernels", survey(running_at(1200, 2, false)), warning,
         second + " SM 1200 of 1980 MHz", "nvidia-smi -i " + second + " --reset-gpu-clocks"),
      of("a setting at the full clock", survey(running_at(1980, 2, true)), pass, "1980 of 1980",
         ""),
      of("an idle GPU with a setting", survey(running_at(345, 3, true)), pass, "345 of 1980", ""),
      of("heat is another check's", survey(running_at(1200, 0x20, true)), pass, "1200 of 1980", ""),
      of("one that was raised", survey([](doctor::SurveyedGpu& gpu) {
           gpu.health.sm_clock.default_MHz = known(1755U, "test");
           gpu.health.sm_clock.application_MHz = known(1830U, "test");
         }),
         warning, "application clock 1830 (default 1755)",
         "nvidia-smi --reset-applications-clocks"),
      of("no NVML", {"libnvidia-ml.so.1: cannot open", "", {}}, skipped, "cannot open", ""),
      of("a driver that does not tell", {"", "libnvidia-ml.so.580", {doctor::SurveyedGpu{}}},
         skipped, "libnvidia-ml.so.580", ""),
      {"gpu-clocks", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
      {"gpu-clocks", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
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
      p2p("every pair", probe_of({{false, true}, {true, false}}), Nvlinks::all, pass,
          "cuDeviceCanAccessPeer: yes for all 1 pairs", ""),
      p2p("one direction only", probe_of({{false, true}, {false, false}}), Nvlinks::all, fail,
          "0 for CUDA devices 0-1", "nvidia-smi topo -p2p r"),
      p2p("not over PCIe", probe_of({{false, false}, {false, false}}), Nvlinks::none, warning,
          "0 for CUDA devices 0-1", "pcie-acs"),
      p2p("between GPUs that NVLinks join",
          probe_of({{false, false, true}, {false, false, true}, {true, true, false}}),
          Nvlinks::first_pair, fail, "0 for CUDA devices 0-1", "nvidia-smi topo -p2p r"),
      p2p("NVLinks join only the other GPUs",
          probe_of({{false, true, false}, {true, false, false}, {false, false, false}}),
          Nvlinks::first_pair, warning, "0 for CUDA devices 0-2, 1-2", "nvidia-smi topo -p2p r"),
      p2p("a row is missing", probe_of({{false, true, true}, {true, false, true}}), Nvlinks::all,
          fail, "0-2, 1-2", "nvidia-smi topo"),
      p2p("atomics too", probe_of({{false, true}, {true, false}}, {{false, true}, {true, false}}),
          Nvlinks::all, pass, "with native atomics", ""),
      p2p("no atomics between two of three",
          probe_of({{false, true, true}, {true, false, true}, {true, true, false}},
                   {{false, true, true}, {true, false, false}, {true, true, false}}),
          Nvlinks::none, warning, "NATIVE_ATOMIC_SUPPORTED 0 for CUDA devices 1-2",
          "nvidia-smi topo -p2p a"),
      p2p("one GPU", probe_of({{false}}), Nvlinks::none, skipped, "cuDeviceGetCount: 1", ""),
      p2p("CUDA does not initialize", broken, Nvlinks::all, skipped, "", ""),
      {"gpu-p2p", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
      {"gpu-p2p", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

Scenario kernel(const std::string& name, const std::string& answer, CheckStatus status,
                const std::string& fix) {
  return {"gpu-kernel", name, nullptr, status, "2^20 words", fix, [answer] {
            return doctor::judge_gpu_kernel(answer);
          }};
}

Scenarios kernels() {
  return {
      kernel("all run it", "0 ok NVIDIA H200\n1 ok NVIDIA H200\n", pass, ""),
      kernel("one keeps a wrong word", "0 ok A\n1 bad B: word 7 came back wrong\n", fail,
             "--gpu-reset"),
      kernel("CUDA sees no device", "none cudaGetDeviceCount: no CUDA-capable device\n", fail,
             "nvidia-smi"),
      kernel("no answer", "", fail, "nvidia-smi"),
      {"gpu-kernel", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
      {"gpu-kernel", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

Scenarios healths() {
  doctor::NvmlSurvey closed;
  closed.problem = "nvmlInit_v2: Driver/library version mismatch";
  return {
      health("all well", survey(), pass, "0000:13:00.0, 0000:23:00.0", ""),
      health("no spare rows left",
             survey([](auto& each) { each.health.remapped_rows.value->failed = true; }), fail,
             "nvmlDeviceGetRemappedRows: failure on 0000:23:00.0",
             "nvidia-smi -q -d ROW_REMAPPER -i 0000:23:00.0"),
      health("remapping waits for a reset",
             survey([](auto& each) { each.health.remapped_rows.value->pending = true; }), warning,
             "nvmlDeviceGetRemappedRows: pending on 0000:23:00.0",
             "nvidia-smi --gpu-reset -i 0000:23:00.0"),
      health("retirement waits for a reset",
             survey([](auto& each) { each.health.retired_pages_pending = known(true, "test"); }),
             warning, "nvmlDeviceGetRetiredPagesPendingStatus: pending on 0000:23:00.0",
             "nvidia-smi --gpu-reset -i 0000:23:00.0"),
      health("uncorrected errors", survey([](auto& each) {
               each.health.uncorrected_ecc_errors = known<std::uint64_t>(3, "test");
             }),
             warning, "nvmlDeviceGetTotalEccErrors: uncorrected on 0000:23:00.0",
             "nvidia-smi --gpu-reset -i 0000:23:00.0"),
      health("too hot", survey([](auto& each) {
               each.health.throttle_reasons = known<std::uint64_t>(0x40, "test");
             }),
             warning, "0000:23:00.0 (hardware thermal slowdown)", "TEMPERATURE"),
      health("NVML does not start", closed, warning, "version mismatch", "nvidia-smi -q"),
      health("GPUs that count nothing", {"", "libnvidia-ml.so.580", {doctor::SurveyedGpu{}}},
             skipped, "NVML", ""),
      {"gpu-health", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
      {"gpu-health", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

/// Verdicts by NVML if it is available; verdicts by files are in driver.cpp's scenarios.
Scenarios nvml_verdicts() {
  auto links = [](int active) {
    return [active] {
      return *doctor::judge_nvlinks(
          survey([&](auto& each) { each.gpu.nvlinks_active = known(active, "test"); }));
    };
  };
  auto fabric = [](FabricState state, int status) {
    return [state, status] {
      return *doctor::judge_fabric_state(survey([&](auto& each) {
        each.health.fabric_state = known(state, "test");
        each.health.fabric_status = known(status, "test");
      }));
    };
  };
  auto persistence = [](bool on) {
    return [on] {
      return doctor::judge_persistence(
          survey([&](auto& each) { each.health.persistence_mode = known(on, "test"); }));
    };
  };
  return {
      {"nvlink-state", "NVML: all active", nullptr, pass, "0000:23:00.0 18/18", "", links(18)},
      {"nvlink-state", "NVML: one down", nullptr, warning, "0000:23:00.0 17/18",
       "nvidia-smi nvlink --status -i 0000:23:00.0", links(17)},
      {"nvlink-state", "NVML: all down", nullptr, fail, "0000:23:00.0 0/18", "nvlink --status",
       links(0)},
      {"fabric-manager", "NVML: registered", nullptr, pass, "0000:23:00.0 completed", "",
       fabric(FabricState::completed, 0)},
      {"fabric-manager", "NVML: on the way", nullptr, fail, "0000:23:00.0 in progress",
       "nvidia-fabricmanager", fabric(FabricState::in_progress, 0)},
      {"fabric-manager", "NVML: refused", nullptr, fail, "completed with error 999",
       "nvidia-fabricmanager", fabric(FabricState::completed, 999)},
      {"nvidia-persistence", "NVML: on", nullptr, pass, "nvmlDeviceGetPersistenceMode: on", "",
       persistence(true)},
      {"nvidia-persistence", "NVML: off", nullptr, warning, "off for 0000:23:00.0",
       "nvidia-persistenced", persistence(false)},
  };
}

} // namespace

Scenarios gpu_scenarios() {
  Scenarios all;
  for (const Scenarios& part :
       {visible(), links(), peers(), kernels(), healths(), clocks(), nvml_verdicts()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
