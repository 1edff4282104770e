#include "src/instruments/bench/moe/rung.h"

#include <algorithm>
#include <utility>

#include "src/instruments/bench/moe/measure.h"
#include "src/instruments/bench/moe/point.h"
#include "src/instruments/bench/moe/request.h"
#include "src/runtime/runtime.h"

namespace shmemctl::moe {

namespace {

constexpr int experts_of_rank = 8, max_choices = 8;

PointRequest rung_point(const Runtime& runtime) {
  Request request;
  request.tokens = "256";
  request.hidden = "4096";
  request.experts = std::to_string(experts_of_rank * runtime.n_pes());
  request.top_k = std::to_string(std::min(max_choices, experts_of_rank * runtime.n_pes()));
  // Rows then take the same path as put, and are not forwarded.
  request.flat = runtime.placement().n_nodes() > 1;
  PointRequest point = points_of(request, std::nullopt, runtime.n_pes(), runtime.n_pes()).front();
  if (request.flat)
    point.setup.node_of_rank = runtime.placement().node;
  return point;
}

} // namespace

std::vector<ResultRow> measure_rung(Runtime& runtime, BackendKind kind,
                                    const std::function<void(const std::string&)>& step) {
  const PointRequest request = rung_point(runtime);
  const Routing routing = routing_of(request, std::nullopt);
  Setup setup = request.setup;
  setup.routing = &routing;
  const MoePath path = require_backend(runtime, kind, setup);
  OpenBackend opened(runtime, kind, setup, path);
  Backend& backend = opened.backend();
  JobRank rank;
  rank.pe = runtime.pe();
  rank.n_pes = runtime.n_pes();
  rank.barrier = [&runtime] { runtime.barrier(); };
  rank.gather = [&runtime](const std::string& text) { return runtime.gather_text(text); };
  rank.step = [&](const std::string& what) {
    runtime.failure_detector().phase("moe " + what);
    step("moe " + what);
  };
  const PointResult result = measure(backend, setup, Effort{}, rank);
  const Point point{
      setup, backend.name(), request.routing_name, request.routing.tokens, backend.memory(),
      result};
  std::vector<ResultRow> rows;
  if (runtime.pe() == 0)
    for (ResultRow& row : rows_of(point))
      if (row.params.value("phase", "") == "total" && row.case_name != "moe-cached-dispatch")
        rows.push_back(std::move(row));
  opened.close();
  return rows;
}

} // namespace shmemctl::moe
