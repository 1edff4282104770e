#include "src/bench/point_limit.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_line.h"
#include "src/bench/cases/ground.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

using nlohmann::json;

namespace {

std::string own_line(Runtime& runtime, const Point& point) {
  if (!runtime.gpu())
    return json_line(json{{"gpu", ""},
                          {"memory_GBps", 0},
                          {"between_gpus", false},
                          {"in_host_memory", false},
                          {"otherwise", "no limit is known for PEs without a GPU"}});
  const GpuSite& site = runtime.gpu()->site();
  const GpuPath path = path_of(runtime, point);
  return json_line(json{{"gpu", site.pci_address},
                        {"memory_GBps", site.memory_GBps},
                        {"between_gpus", path.between_gpus},
                        {"in_host_memory", path.in_host_memory},
                        {"otherwise", path.otherwise}});
}

GpuSeatPlace place_from(const std::string& line, std::size_t pe, std::uint64_t machine_id) {
  const json seat = try_from_json_line(line);
  const auto is = [&](const char* key, json::value_t type) {
    return seat.is_object() && seat.contains(key) && seat[key].type() == type;
  };
  const bool rate = seat.is_object() && seat.contains("memory_GBps") &&
                    seat["memory_GBps"].is_number() &&
                    std::isfinite(seat["memory_GBps"].get<double>());
  if (!is("gpu", json::value_t::string) || !is("between_gpus", json::value_t::boolean) ||
      !is("in_host_memory", json::value_t::boolean) || !is("otherwise", json::value_t::string) ||
      !rate)
    throw Error(ExitCode::unavailable, fmt::format("PE {}", pe), "read its GPU's name",
                "malformed message", "run the same version of shmemctl on all hosts");
  return {machine_id,
          seat["gpu"].get<std::string>(),
          seat["memory_GBps"].get<double>(),
          seat["between_gpus"].get<bool>(),
          seat["in_host_memory"].get<bool>(),
          seat["otherwise"].get<std::string>()};
}

const char* words_of(DevicePath path) {
  switch (path) {
  case DevicePath::proxy:
    return "no limit is known for the proxy's way to a PE of the same machine: a thread of the "
           "host and the host's memory carry it, and no wire is in the way";
  case DevicePath::ibgda:
    return "no limit is known for the way through a NIC (ibgda) to a PE of the same machine: no "
           "wire is in the way";
  default:
    return "no limit is known for a PE that kernels do not reach";
  }
}

/// A point whose measured link is the collective's: everybody sends to everybody, or the root does.
Point measured_like(const Point& point, const LeastTraffic& traffic) {
  Point like = point;
  like.traffic = traffic.from_root ? Traffic::pair : Traffic::all_to_all;
  return like;
}

} // namespace

GpuPath path_of(Runtime& runtime, const Point& point) {
  GpuPath path;
  PeGpu* const gpu = runtime.gpu();
  if (!gpu) {
    path.otherwise = "no limit is known for PEs without a GPU";
    return path;
  }
  Point moves = point;
  if (point.traffic == Traffic::collective)
    moves.traffic = Traffic::all_to_all;
  for (const int pe : routes_of(moves, runtime.pe(), runtime.n_pes()).to)
    if (const DevicePath by = gpu->ways().at(static_cast<std::size_t>(pe)).path;
        by != DevicePath::load_store) {
      path.otherwise = words_of(by);
      return path;
    }
  const bool of_host = gpu->site().heap_kind == "host";
  if (of_host && point.launch.initiator == Initiator::host)
    path.otherwise = "no limit is known for what the host's processors copy in a heap of host "
                     "memory";
  else
    (of_host ? path.in_host_memory : path.between_gpus) = true;
  return path;
}

GpuLimit gpu_limit_of(Runtime& runtime, const Point& point, LinkMeter* links, const Case* body) {
  const std::vector<std::string> lines = runtime.gather_text(own_line(runtime, point));
  std::vector<GpuSeatPlace> places;
  for (std::size_t pe = 0; pe < lines.size(); ++pe)
    places.push_back(place_from(lines[pe], pe, runtime.placement().hosts.at(pe).machine_id));
  GpuLimit limit;
  limit.on_gpus = std::all_of(places.begin(), places.end(), [](const GpuSeatPlace& place) {
    return place.between_gpus || place.in_host_memory;
  });
  std::optional<LeastTraffic> traffic;
  if (point.traffic == Traffic::collective && body)
    traffic = body->least_traffic(gpu_numbers(places));
  limit.found = traffic ? gpu_collective_limit(runtime.node(), *traffic, places)
                        : gpu_link_limit(runtime.node(), point, places);
  std::optional<LinkLimit>& found = limit.found.limit;
  if (found && !found->of_memory && !found->to_host && links &&
      point.launch.initiator == Initiator::gpu)
    found = limit_of(links->of(traffic ? measured_like(point, *traffic) : point), found);
  if (found && traffic)
    limit.collective_bytes = limited_bytes(*traffic, *found) / runtime.n_pes();
  return limit;
}

} // namespace shmemctl::bench
