#include "src/bench/measured_link.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_line.h"
#include "src/base/units.h"
#include "src/bench/cases/ground.h"
#include "src/bench/gpu/lists.h"
#include "src/bench/statistics.h"
#include "src/bench/verification.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

using nlohmann::json;

namespace {

constexpr std::size_t sent_bytes = std::size_t{32} << 20; ///< by a PE, in a round
constexpr std::uint64_t rounds = 8;                       ///< of a launch: 0.7 ms
constexpr int launches = 5;
constexpr int threads_of_block = 1024;
constexpr std::uint64_t seed = 7;
constexpr std::size_t page_bytes = 4096;

Point point_of(const Point& like, int n_pes, int blocks) {
  Point point;
  point.traffic = like.traffic;
  point.direction = like.direction;
  point.first_pe = like.first_pe;
  point.second_pe = like.second_pe;
  const auto peers = static_cast<std::size_t>(peers_of_a_sender(point, n_pes));
  point.size_bytes = sent_bytes / peers / page_bytes * page_bytes;
  point.launch = {Initiator::gpu, MemoryKind::gpu,  CallScope::block,
                  blocks,         threads_of_block, false};
  return point;
}

/// "put" stores, "get" loads.
std::unique_ptr<Case> make_case(const char* name, const Point& point) {
  return choose_cases(gpu_transfer_cases(), {name}).front().make(point);
}

std::string own_reason(Runtime& runtime, const Point& point) {
  PeGpu& gpu = *runtime.gpu();
  if (gpu.site().pes_on_device > 1)
    return "PEs share a GPU, and take turns on it";
  if (gpu.site().heap_kind == "host")
    return "the heap is memory of the host";
  if (!gpu.job().all_mapped)
    return "a PE is reached by a network";
  return make_case("put", point)->cannot_run(runtime);
}

/// The first PE's reason.
std::string reason_of_all(Runtime& runtime, const std::string& own) {
  for (const std::string& text : runtime.gather_text(own))
    if (!text.empty())
      return text;
  return "";
}

/// Of this PE, 0 if it sends nothing; nothing if what anybody moved came wrong.
std::optional<double> rate_of(const char* name, Arena& arena) {
  Runtime& runtime = arena.runtime;
  const std::unique_ptr<Case> body = make_case(name, arena.point);
  runtime.gpu()->fill(arena.memory, 0, arena.size_bytes);
  runtime.collectives().barrier(team_world);
  body->prepare(arena);
  std::vector<double> rates;
  for (std::uint64_t launch = 0; launch <= launches; ++launch) {
    runtime.collectives().barrier(team_world);
    body->iterate(launch * rounds, rounds);
    if (launch > 0) // the first one finds cold caches
      rates.push_back(static_cast<double>(body->bytes_per_iteration() * rounds) /
                      std::max(body->last_duration_ns().value_or(0), 1.0));
  }
  const Verification verification = verify_point(runtime, *body, (launches + 1) * rounds);
  if (verification.verified != Verified::passed)
    return std::nullopt;
  return body->measures() ? median(rates) : 0;
}

/// Collective: rates of all PEs.
std::vector<double> gathered(Runtime& runtime, double own_GBps) {
  std::vector<double> all;
  for (const std::string& text : runtime.gather_text(json_line(json(own_GBps)))) {
    const json rate = try_from_json_line(text);
    if (!rate.is_number() || !std::isfinite(rate.get<double>()) || rate.get<double>() < 0)
      throw Error(ExitCode::unavailable, fmt::format("PE {}", all.size()),
                  "read the rate of its link", "malformed message",
                  "run the same version of shmemctl on all hosts");
    all.push_back(rate.get<double>());
  }
  return all;
}

LinkMeasurement measure_in(Arena& arena) {
  MeasuredLink link;
  link.blocks = arena.point.launch.ctas;
  link.threads = arena.point.launch.threads;
  link.message_bytes = arena.point.size_bytes;
  link.traffic = to_string(arena.point.traffic);
  if (arena.point.direction == Direction::bi)
    link.traffic += ", both ways";
  for (const auto& [name, rates] :
       {std::pair{"put", &link.stores_GBps}, {"get", &link.loads_GBps}}) {
    const std::optional<double> rate = rate_of(name, arena);
    if (!rate) // the same on all PEs
      return {std::nullopt, "what was moved for it came wrong"};
    *rates = gathered(arena.runtime, *rate);
  }
  return {link, ""};
}

/// Collective.
LinkMeasurement measure_link(Runtime& runtime, const Point& like) {
  if (!runtime.gpu())
    return {std::nullopt, "there are no GPUs"};
  if (runtime.n_pes() < 2 || like.traffic == Traffic::collective)
    return {std::nullopt, "nothing goes from one PE to another"};
  PeGpu& gpu = *runtime.gpu();
  const Point point = point_of(like, runtime.n_pes(), gpu.site().multiprocessors);
  if (const std::string reason = reason_of_all(runtime, own_reason(runtime, point));
      !reason.empty())
    return {std::nullopt, reason};
  const std::size_t size_bytes = make_case("put", point)->bytes_needed(runtime, point);
  auto* const memory = static_cast<std::byte*>(gpu.allocate(size_bytes, page_bytes));
  if (!memory) // on all PEs alike
    return {std::nullopt, "the heap has no room for it"};
  Arena arena{runtime, point, memory, size_bytes, seed};
  LinkMeasurement measured = measure_in(arena);
  gpu.free(memory);
  return measured;
}

} // namespace

double MeasuredLink::limit_GBps(std::size_t pe) const {
  return std::max(stores_GBps.at(pe), loads_GBps.at(pe));
}

std::string MeasuredLink::conditions(std::size_t pe) const {
  return fmt::format("{}, {} blocks of {} threads, messages of {}, {}",
                     stores_GBps.at(pe) >= loads_GBps.at(pe) ? "stores" : "loads", blocks, threads,
                     format_size_bytes(message_bytes), traffic);
}

std::optional<LinkLimit> limit_of(const LinkMeasurement& measured,
                                  const std::optional<LinkLimit>& model) {
  if (!measured.link)
    return model;
  LinkLimit limit;
  std::size_t sender = 0;
  for (std::size_t pe = 0; pe < measured.link->stores_GBps.size(); ++pe)
    if (const double rate_GBps = measured.link->limit_GBps(pe); rate_GBps > 0) {
      limit.rate_GBps += rate_GBps;
      sender = pe;
    }
  if (limit.rate_GBps <= 0)
    return model;
  limit.links = model ? model->links : 0;
  limit.name = fmt::format("{:.0f} GB/s measured ({}){}", limit.rate_GBps,
                           measured.link->conditions(sender), model ? "; " + model->name : "");
  return limit;
}

const LinkMeasurement& LinkMeter::of(const Point& like) {
  const bool pair = like.traffic == Traffic::pair;
  const Pattern pattern{like.traffic, like.direction, pair ? like.first_pe : 0,
                        pair ? like.second_pe : 0};
  const auto known = known_.find(pattern);
  if (known != known_.end())
    return known->second;
  return known_.emplace(pattern, measure_link(runtime_, like)).first->second;
}

} // namespace shmemctl::bench
