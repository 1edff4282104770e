#include "src/instruments/bench/path.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/base/archive.h"
#include "src/base/text.h"
#include "src/instruments/bench/cases/host_case.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

namespace {

constexpr const char* kernels_name = "gpu"; // the name of kernels, as in bringup's connections

/// The transport that serves a PE's host memory; nullptr if none does.
const Transport* transport_to(const Runtime& runtime, int pe) {
  const int index = runtime.transport_index_by_pe()[static_cast<std::size_t>(pe)];
  return index < 0 ? nullptr
                   : runtime.transports()[static_cast<std::size_t>(index)].transport.get();
}

const char* to_string(DevicePath path) {
  switch (path) {
  case DevicePath::none:
    return "none";
  case DevicePath::load_store:
    return "loads and stores";
  case DevicePath::proxy:
    return "proxy";
  case DevicePath::ibgda:
    return "ibgda";
  }
  return "none";
}

/// The PEs that this PE sends to at a point; all others for a collective.
std::vector<int> peers_of(const Point& point, int pe, int n_pes) {
  Point moves = point;
  if (point.traffic == Traffic::collective)
    moves.traffic = Traffic::all_to_all;
  return routes_of(moves, pe, n_pes).to;
}

/// Whether hosts of different nodes have the same name, as with virtual nodes and some pods.
bool names_are_ambiguous(const Placement& placement) {
  std::map<std::string, std::set<int>> nodes_of;
  for (std::size_t pe = 0; pe < placement.hosts.size(); ++pe)
    nodes_of[placement.hosts[pe].host_name].insert(placement.node[pe]);
  return std::any_of(nodes_of.begin(), nodes_of.end(),
                     [](const auto& bench_case) { return bench_case.second.size() > 1; });
}

} // namespace

bool is_memory(const std::string& carrier) {
  return carrier == "shm" || carrier == "p2p" || carrier == copy_engine_name ||
         starts_with(carrier, registered_buffer_name);
}

std::string name_of(const HcaPort& nic) {
  return nic.port == 1 ? nic.device : nic.device + ":" + std::to_string(nic.port);
}

std::pair<int, int> default_pair(const Placement& placement) {
  for (std::size_t pe = 1; pe < placement.node.size(); ++pe)
    if (placement.node[pe] != placement.node[0])
      return {0, static_cast<int>(pe)};
  return {0, 1};
}

std::string carrier_of(Runtime& runtime, const Launch& launch, int pe) {
  const Transport* transport = transport_to(runtime, pe);
  const std::string name = transport ? transport->name() : "";
  PeGpu* const gpu = runtime.gpu();
  if (launch.memory != MemoryKind::gpu || !gpu)
    return name;
  switch (gpu->paths_by_pe().at(static_cast<std::size_t>(pe)).path) {
  case DevicePath::load_store:
    return "p2p";
  case DevicePath::ibgda:
    return "ibgda";
  case DevicePath::proxy:
    return name.empty() ? "proxy" : "proxy over " + name;
  case DevicePath::none:
    return launch.initiator == Initiator::host ? name : "";
  }
  return name;
}

PathUse own_path(Runtime& runtime, const Point& point) {
  PathUse use;
  std::set<std::string> carriers;
  for (const int pe : peers_of(point, runtime.pe(), runtime.n_pes())) {
    const std::string carrier = carrier_of(runtime, point.launch, pe);
    if (carrier.empty())
      continue;
    carriers.insert(carrier);
    if (const Transport* transport = transport_to(runtime, pe); transport && !is_memory(carrier))
      use.over_tcp = use.over_tcp || transport->connection(pe).find("tcp") != std::string::npos;
  }
  use.transports.assign(carriers.begin(), carriers.end());
  return use;
}

void serialize(Archive& archive, PathUse& use) {
  std::vector<std::pair<std::string, double>> cores(use.cores.begin(), use.cores.end());
  archive(use.measures, use.transports, use.ports, use.over_tcp, use.tcp.sent, use.tcp.sent_again,
          cores);
  if (archive.reading())
    use.cores = std::map<std::string, double>(cores.begin(), cores.end());
}

std::vector<PathUse> gather_paths(Runtime& runtime, const PathUse& own) {
  std::vector<PathUse> uses = runtime.gather_values(own, "transports in use");
  for (std::size_t pe = 0; pe < uses.size(); ++pe) {
    const PeHost& host = runtime.placement().hosts.at(pe);
    uses[pe].ports = ports_of_host(std::move(uses[pe].ports), host.host_name, host.machine_id);
  }
  return uses;
}

RowPath row_path(const Point& point, const Placement& placement, const std::vector<PathUse>& uses) {
  RowPath path;
  std::set<std::string> transports, nics;
  for (const PathUse& use : uses) {
    if (!use.measures)
      continue;
    transports.insert(use.transports.begin(), use.transports.end());
    if (!std::all_of(use.transports.begin(), use.transports.end(), is_memory))
      for (const PortUse& port : use.ports)
        nics.insert(name_of(port.nic));
  }
  path.transports.assign(transports.begin(), transports.end());
  path.nics.assign(nics.begin(), nics.end());
  const auto n_pes = static_cast<int>(placement.hosts.size());
  if (point.traffic != Traffic::pair || point.first_pe >= n_pes || point.second_pe >= n_pes)
    return path;
  const bool ambiguous = names_are_ambiguous(placement);
  const auto end = [&](int pe) {
    const auto at = static_cast<std::size_t>(pe);
    return PathEnd{pe, placement.hosts[at].host_name,
                   ambiguous ? std::optional(placement.node[at]) : std::nullopt};
  };
  path.first = end(point.first_pe);
  path.second = end(point.second_pe);
  return path;
}

namespace {

/// The ports of the transport that this carrier is, or that its proxy uses.
std::vector<PortUse> ports_of(const Runtime& runtime, const std::string& carrier) {
  const std::string proxy = "proxy over ";
  const std::string name = starts_with(carrier, proxy) ? carrier.substr(proxy.size()) : carrier;
  std::vector<PortUse> ports;
  for (const TransportEntry& entry : runtime.transports())
    if (entry.transport && entry.transport->name() == name)
      for (const NicTraffic& each : entry.transport->traffic())
        ports.push_back({"", each.nic, std::nullopt});
  return ports;
}

/// A point of the only pair that is named; nullptr if none, if several, or for registered buffers.
const Point* point_of_pair(const std::vector<Point>& points) {
  const Point* found = nullptr;
  for (const Point& point : points) {
    if (point.traffic != Traffic::pair)
      continue;
    if (point.of_matrix || point.launch.memory == MemoryKind::registered ||
        (found && (found->first_pe != point.first_pe || found->second_pe != point.second_pe)))
      return nullptr;
    found = found ? found : &point;
  }
  return found;
}

} // namespace

std::optional<RowPath> planned_path(Runtime& runtime, const std::vector<Point>& points) {
  const Point* const point = point_of_pair(points);
  if (!point)
    return std::nullopt;
  PathUse own = own_path(runtime, *point);
  own.measures = !own.transports.empty();
  for (const std::string& carrier : own.transports)
    if (!is_memory(carrier)) {
      const std::vector<PortUse> ports = ports_of(runtime, carrier);
      own.ports.insert(own.ports.end(), ports.begin(), ports.end());
    }
  return row_path(*point, runtime.placement(), gather_paths(runtime, own));
}

std::vector<ConnectionRow> connections_in_use(Runtime& runtime) {
  std::vector<ConnectionRow> rows;
  for (int pe = 0; pe < runtime.n_pes(); ++pe) {
    if (pe == runtime.pe())
      continue;
    if (const Transport* transport = transport_to(runtime, pe)) {
      std::string connection = transport->connection(pe);
      if (connection.empty())
        connection = transport->is_load_store() ? "loads and stores" : "in use";
      rows.push_back({transport->name(), runtime.pe(), pe, connection});
    }
    if (PeGpu* const gpu = runtime.gpu()) {
      const KernelPath& route = gpu->paths_by_pe().at(static_cast<std::size_t>(pe));
      rows.push_back(
          {kernels_name, runtime.pe(), pe,
           std::string(to_string(route.path)) + (route.reason.empty() ? "" : ": " + route.reason)});
    }
  }
  return rows;
}

} // namespace shmemctl::bench
