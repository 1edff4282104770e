#include "src/instruments/bench/cases/host_case.h"

#include <utility>

#include "src/instruments/bench/cases/pattern.h"

namespace shmemctl::bench {

std::size_t HostCase::bytes_needed(const Runtime& runtime, const Point&) const {
  return bytes_for(runtime.n_pes());
}

void HostCase::prepare(Arena& arena) {
  gpu_ = arena.point.launch.memory == MemoryKind::gpu ? arena.runtime.gpu() : nullptr;
  memory_bytes_ = arena.size_bytes;
  std::vector<Transport*> transports;
  for (const int index : arena.runtime.transport_index_by_pe())
    transports.push_back(
        index < 0 ? nullptr
                  : arena.runtime.transports()[static_cast<std::size_t>(index)].transport.get());
  begin({arena.runtime.rma(), arena.runtime.teams(), arena.runtime.collectives(),
         arena.runtime.pe(), arena.runtime.n_pes(), arena.memory, arena.seed,
         std::move(transports)});
}

void HostCase::begin(const HostCaseContext& context) {
  context_.emplace(context);
  set_up();
}

void HostCase::fill(std::size_t size_bytes) {
  if (!gpu_)
    return fill_pattern(context().memory, size_bytes, context().seed, context().pe);
  copy_.resize(size_bytes);
  fill_pattern(copy_.data(), size_bytes, context().seed, context().pe);
  gpu_->copy(context().memory, copy_.data(), size_bytes);
}

HostCaseContext HostCase::seen() {
  if (!gpu_)
    return context();
  copy_.resize(memory_bytes_);
  gpu_->copy(copy_.data(), context().memory, memory_bytes_);
  return {context().rma,   context().teams, context().collectives, context().pe,
          context().n_pes, copy_.data(),    context().seed,        context().transports};
}

std::string HostCase::unmapped_peer(Runtime& runtime) const {
  Rma& rma = runtime.rma();
  Routes routes = routes_of(point(), runtime.pe(), runtime.n_pes());
  routes.to.insert(routes.to.end(), routes.from.begin(), routes.from.end());
  for (const int pe : routes.to)
    if (!rma.direct(rma.region(region::internal).base, pe))
      return "the memory of PE " + std::to_string(pe) + " is not mapped on PE " +
             std::to_string(runtime.pe());
  return "";
}

std::vector<std::ptrdiff_t> HostCase::deltas_to(const std::vector<int>& pes) const {
  std::vector<std::ptrdiff_t> deltas;
  for (const int pe : pes) {
    const auto* mapped = static_cast<std::byte*>(context().rma.direct(context().memory, pe));
    deltas.push_back(mapped ? mapped - context().memory : 0);
  }
  return deltas;
}

int peers_of_a_sender(const Point& point, int n_pes) {
  return point.traffic == Traffic::all_to_all ? n_pes - 1 : 1;
}

Routes routes_of(const Point& point, int pe, int n_pes) {
  const bool both_ways = point.direction == Direction::bi;
  Routes routes;
  if (point.traffic == Traffic::local)
    return routes;
  if (point.traffic == Traffic::all_to_all) {
    for (int step = 1; step < n_pes; ++step) {
      routes.to.push_back((pe + step) % n_pes);
      routes.from.push_back((pe - step + n_pes) % n_pes);
    }
    return routes;
  }
  const int half = n_pes / 2;
  const bool pair = point.traffic == Traffic::pair;
  const bool first = pair ? pe == point.first_pe : pe < half;
  const bool second = pair ? pe == point.second_pe : pe >= half && pe < 2 * half;
  const int other =
      pair ? (first ? point.second_pe : point.first_pe) : (first ? pe + half : pe - half);
  if (first || (second && both_ways))
    routes.to.push_back(other);
  if (second || (first && both_ways))
    routes.from.push_back(other);
  return routes;
}

} // namespace shmemctl::bench
