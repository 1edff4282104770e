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

std::string own_line(Runtime& runtime, const Point& moves) {
  if (!runtime.gpu())
    return json_line(json{{"gpu", ""}, {"memory_GBps", 0}, {"between_gpus", false}});
  const GpuSite& site = runtime.gpu()->site();
  return json_line(json{{"gpu", site.pci_address},
                        {"memory_GBps", site.memory_GBps},
                        {"between_gpus", stays_between_gpus(runtime, moves)}});
}

GpuSeatPlace place_from(const std::string& line, std::size_t pe, std::uint64_t machine_id) {
  const json seat = try_from_json_line(line);
  const auto is = [&](const char* key, json::value_t type) {
    return seat.is_object() && seat.contains(key) && seat[key].type() == type;
  };
  const bool rate = seat.is_object() && seat.contains("memory_GBps") &&
                    seat["memory_GBps"].is_number() &&
                    std::isfinite(seat["memory_GBps"].get<double>());
  if (!is("gpu", json::value_t::string) || !is("between_gpus", json::value_t::boolean) || !rate)
    throw Error(ExitCode::unavailable, fmt::format("the GPU of PE {}", pe), "read",
                "what it sent is not understood",
                "start all PEs with the same version of this tool");
  return {machine_id, seat["gpu"].get<std::string>(), seat["memory_GBps"].get<double>(),
          seat["between_gpus"].get<bool>()};
}

} // namespace

bool stays_between_gpus(Runtime& runtime, const Point& point) {
  PeGpu* const gpu = runtime.gpu();
  if (!gpu || gpu->site().heap_kind == "host")
    return false;
  const std::vector<int> to = routes_of(point, runtime.pe(), runtime.n_pes()).to;
  return std::all_of(to.begin(), to.end(), [&](int pe) {
    return gpu->ways().at(static_cast<std::size_t>(pe)).path == DevicePath::load_store;
  });
}

std::optional<Point> moves_of(const Case& body, const Point& point) {
  if (point.traffic != Traffic::collective)
    return point;
  if (!body.written_per_iteration())
    return std::nullopt;
  Point moves = point;
  moves.traffic = Traffic::all_to_all;
  return moves;
}

GpuLimit gpu_limit_of(Runtime& runtime, const Point& moves, LinkMeter* links) {
  const std::vector<std::string> lines = runtime.gather_text(own_line(runtime, moves));
  std::vector<GpuSeatPlace> places;
  for (std::size_t pe = 0; pe < lines.size(); ++pe)
    places.push_back(place_from(lines[pe], pe, runtime.placement().hosts.at(pe).machine_id));
  GpuLimit found;
  found.between_gpus = std::all_of(places.begin(), places.end(),
                                   [](const GpuSeatPlace& place) { return place.between_gpus; });
  found.limit = gpu_link_limit(runtime.node(), moves, places);
  if (found.limit && !found.limit->of_memory && links && moves.launch.initiator == Initiator::gpu)
    found.limit = limit_of(links->of(moves), found.limit);
  return found;
}

std::uint64_t limited_bytes(const Case& body, const Point& point,
                            const std::optional<LinkLimit>& limit) {
  if (point.traffic != Traffic::collective)
    return body.bytes_per_iteration();
  const std::optional<WrittenBytes> written = body.written_per_iteration();
  if (!written || !limit)
    return 0;
  return written->elsewhere + (limit->of_memory ? written->here : 0);
}

} // namespace shmemctl::bench
