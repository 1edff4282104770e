// How long reading, mapping and printing a node takes, from bytes to bytes.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <sstream>

#include "reports/text.h"
#include "src/base/input.h"
#include "src/model/topo/advice/advice.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/mapping/mapping_json.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "test_paths.h"

namespace shmemctl {
namespace {

/// Everything that `topo` does between reading a file and writing to the terminal.
std::size_t topo_end_to_end(const Node& node) {
  MappingRequest request;
  request.gpus = assign_gpus(node, -1, {});
  const Mapping mapping = map_nics(node, request);
  request.policy = Policy::optimal;
  const Mapping optimal = map_nics(node, request);
  Report report;
  report.topology = topology_json(node);
  report.mapping = mapping_json(node, mapping, advise(node, optimal));
  report.findings = check_node(node);
  for (Finding& finding : check_mapping(node, mapping))
    report.findings.push_back(std::move(finding));
  std::ostringstream out;
  write_text(out, report, TextStyle{});
  return out.str().size();
}

/// The largest recorded file, or "" where the folder is absent.
std::string largest_recorded() {
  std::string path;
  std::uintmax_t size = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::string(SHMEMCTL_SHARED) + "/topologies", error))
    if (entry.path().extension() == ".xml" && entry.file_size() > size) {
      size = entry.file_size();
      path = entry.path().string();
    }
  return path;
}

void largest_recorded_system(benchmark::State& state) {
  const std::string path = largest_recorded();
  if (path.empty()) {
    state.SkipWithError("no recorded machines beside this checkout");
    return;
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(topo_end_to_end(read_recorded(read_input(path), path)));
  state.SetLabel(std::filesystem::path(path).filename().string());
}
BENCHMARK(largest_recorded_system)->Unit(benchmark::kMillisecond);

PciDevice device_at(std::uint32_t domain, int bus, std::uint32_t class_code, std::uint16_t vendor,
                    int parent, int host_bridge) {
  PciDevice device;
  device.address = {domain, static_cast<std::uint8_t>(bus), 0, 0};
  device.kind = pci_ids::is_bridge(class_code) ? PciKind::whole_switch : PciKind::endpoint;
  device.parent = parent;
  device.host_bridge = host_bridge;
  device.class_code = known(class_code, "invented");
  device.vendor = known(vendor, "invented");
  device.numa = known(static_cast<int>(domain), "invented");
  return device;
}

/// `pairs` GPUs and as many NICs, two of each on a switch, four switches to a NUMA node.
Node fake_node(int pairs) {
  Node node;
  for (int i = 0; i < pairs; i += 2) {
    const auto domain = static_cast<std::uint32_t>(i / 8);
    if (domain >= node.host_bridges.size()) {
      HostBridge bridge;
      bridge.domain = domain;
      bridge.numa = known(static_cast<int>(domain), "invented");
      node.host_bridges.push_back(bridge);
    }
    const int host = static_cast<int>(domain);
    const int at = static_cast<int>(node.pci.size());
    const int bus = (i % 8) * 16 + 1;
    node.pci.push_back(device_at(domain, bus, 0x060400, 0x1000, -1, host));
    for (int k = 0; k < 2; ++k) {
      Gpu gpu;
      gpu.pci = static_cast<int>(node.pci.size());
      gpu.vendor = "nvidia";
      gpu.numa = known(host, "invented");
      node.pci.push_back(device_at(domain, bus + 1 + k, 0x030200, pci_ids::nvidia, at, host));
      node.gpus.push_back(gpu);
      Nic nic;
      nic.name = "mlx5_" + std::to_string(node.nics.size());
      nic.pci = static_cast<int>(node.pci.size());
      nic.rdma = known(true, "invented");
      nic.numa = known(host, "invented");
      node.pci.push_back(device_at(domain, bus + 3 + k, 0x020700, pci_ids::mellanox, at, host));
      node.nics.push_back(nic);
    }
  }
  normalize(node);
  return node;
}

void fake_64_gpus_64_nics(benchmark::State& state) {
  const std::string dump = write_nccl_xml(fake_node(64));
  for (auto _ : state)
    benchmark::DoNotOptimize(topo_end_to_end(read_recorded(dump, "dump")));
}
BENCHMARK(fake_64_gpus_64_nics)->Unit(benchmark::kMillisecond);

void live_machine(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(topo_end_to_end(read_machine(Sysroot())));
}
BENCHMARK(live_machine)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace shmemctl

BENCHMARK_MAIN();
