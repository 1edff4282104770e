#include "src/instruments/bench/moe/request.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/moe/shape_rules.h"

namespace shmemctl::moe {

namespace {

std::vector<std::int32_t> numbers(const char* flag, const std::string& text) {
  std::vector<std::int32_t> values;
  for (const std::string& part : split(text, ',')) {
    const std::optional<long long> value = parse_integer(trim(part));
    if (!value || *value < 0 || *value > 1 << 24)
      throw Error(ExitCode::usage, flag, "",
                  "invalid value \"" + printable(text) + "\": " + printable(part) +
                      " is not a number from 0 to 16777216",
                  "write it as 128 or 1,16,128")
          .on_all_pes();
    values.push_back(static_cast<std::int32_t>(*value));
  }
  return values;
}

/// The value that the file was recorded with. Throws Error if the user has asked for another value.
std::vector<std::int32_t> of_file(const char* flag, const std::string& text,
                                  const std::string& untouched, std::int32_t recorded,
                                  const std::string& file) {
  if (text != untouched && numbers(flag, text) != std::vector<std::int32_t>{recorded})
    throw Error(ExitCode::usage, flag, "",
                "invalid value \"" + printable(text) +
                    fmt::format("\": {} was recorded with {}", printable(file), recorded),
                fmt::format("omit {}, or pass {} {}", flag, flag, recorded))
        .on_all_pes();
  return {recorded};
}

/// Refuses flags that would have no effect, because the user expects an effect.
void refuse_idle_flags(const Request& request) {
  const Request untouched;
  const auto refuse = [](bool idle, const char* flag, const char* why, const char* fix) {
    if (idle)
      throw Error(ExitCode::usage, flag, "", why, fix).on_all_pes();
  };
  const bool low = request.mode == "ll";
  refuse(request.bias && low, "--bias", "low-latency mode adds no bias",
         "omit it, or use --mode ht");
  refuse(request.combined_weights && low, "--topk-weights",
         "low-latency mode applies the weights and does not return them",
         "omit it, or use --mode ht");
  refuse(request.combine != untouched.combine && !low, "--combine",
         "high-throughput mode always returns one unweighted row per rank or node",
         "omit it, or use --mode ll");
  refuse(request.layout != untouched.layout && !low, "--layout",
         "high-throughput mode always orders rows by source rank", "omit it, or use --mode ll");
  refuse(request.layout != untouched.layout && request.combine == "partial", "--layout",
         "--combine partial needs --layout source", "omit --layout, or use --combine weighted");
  refuse(request.flat && low, "--flat", "low-latency mode always sends rows directly",
         "omit it, or use --mode ht");
  refuse(request.rank_timeout_us > 0 && !low, "--patience-us", "high-throughput mode masks no rank",
         "omit it, or use --mode ll");
  refuse(request.scales != untouched.scales && request.dtype != "fp8", "--scales",
         "bf16 has no scales", "omit it, or use --dtype fp8");
  refuse((request.groups != untouched.groups || request.top_groups != untouched.top_groups) &&
             request.routing != to_string(RoutingKind::grouped),
         "--num-groups", "it and --num-topk-groups need --routing grouped",
         "omit them, or use --routing grouped");
  refuse((request.uneven || request.masked_percent > 0) && request.from_file(), "--routing",
         "--uneven and --masked do not apply to a recorded routing, which has all choices",
         "omit --uneven and --masked");
  refuse(request.fewer_by_rank && request.from_file(), "--fewer-by-rank",
         "a recorded routing already has the number of tokens of each rank", "omit it");
  refuse(request.fewer_by_rank && request.uneven, "--fewer-by-rank",
         "--uneven also decides how many tokens a rank has", "omit --fewer-by-rank or --uneven");
}

Setup common_setup(const Request& request, int n_ranks, int node_ranks) {
  Setup setup;
  setup.mode = request.mode == "ll" ? Mode::low_latency : Mode::high_throughput;
  setup.format = request.dtype == "fp8" ? Format::fp8 : Format::bf16;
  setup.power_scales = request.scales == "ue8m0";
  setup.combine = setup.mode == Mode::high_throughput ? Combine::rows
                  : request.combine == "partial"      ? Combine::partial
                                                      : Combine::weighted;
  setup.bias = request.bias;
  setup.combined_weights = request.combined_weights;
  setup.rank_timeout_us = request.rank_timeout_us;
  setup.by_expert = request.layout == "expert";
  setup.seed = request.seed;
  setup.shape.n_ranks = n_ranks;
  setup.node_ranks = request.flat ? n_ranks : node_ranks;
  setup.shape.expert_alignment = request.expert_alignment;
  return setup;
}

RoutingRequest common_routing(const Request& request) {
  RoutingRequest routing;
  if (!request.from_file())
    routing.kind = parse_routing_kind(request.routing);
  routing.seed = request.seed;
  routing.uneven = request.uneven;
  routing.fewer_by_rank = request.fewer_by_rank;
  routing.masked_percent = request.masked_percent;
  if (routing.kind == RoutingKind::grouped) {
    routing.groups = request.groups;
    routing.top_groups = request.top_groups;
  }
  return routing;
}

GroupRule group_rule(const RoutingRequest& routing) {
  if (routing.kind != RoutingKind::grouped)
    return {};
  return {routing.groups, routing.top_groups};
}

/// Throws Error for groups that do not fit the shape.
void require_groups(const PointRequest& point) {
  if (point.routing.kind != RoutingKind::grouped)
    return;
  Shape shape = point.setup.shape;
  RoutingRequest none = point.routing;
  shape.max_tokens = none.tokens = 0;
  make_routing(shape, none);
}

} // namespace

std::vector<PointRequest> points_of(const Request& request,
                                    const std::optional<RecordedRouting>& recorded, int n_ranks,
                                    int node_ranks, bool ranks_known) {
  refuse_idle_flags(request);
  const Request untouched;
  PointRequest point{common_setup(request, n_ranks, node_ranks), common_routing(request),
                     request.routing};
  Shape& shape = point.setup.shape;
  if (recorded && recorded->shape.n_ranks != n_ranks)
    throw Error(ExitCode::usage, request.routing, "replay",
                fmt::format("recorded with {} ranks, but this job has {}", recorded->shape.n_ranks,
                            n_ranks),
                fmt::format("start {} PEs", recorded->shape.n_ranks))
        .on_all_pes();
  const auto list = [&](const char* flag, std::string Request::*text, std::int32_t of_recorded) {
    return recorded ? of_file(flag, request.*text, untouched.*text, of_recorded, request.routing)
                    : numbers(flag, request.*text);
  };
  const Shape said = recorded ? recorded->shape : Shape{};
  std::vector<PointRequest> points;
  const std::vector<std::int32_t> all_sms = numbers("--num-sms", request.num_sms);
  for (const std::int32_t experts : list("--num-experts", &Request::experts, said.n_experts))
    for (const std::int32_t top_k : list("--num-topk", &Request::top_k, said.top_k))
      for (const std::int32_t hidden : numbers("--hidden", request.hidden))
        for (const std::int32_t tokens : list("--num-tokens", &Request::tokens, said.max_tokens)) {
          shape.n_experts = experts;
          shape.top_k = top_k;
          shape.hidden = hidden;
          shape.max_tokens = tokens;
          point.routing.tokens = tokens;
          if (!ranks_known) {
            if (const auto broken = broken_without_ranks(shape, point.setup.format))
              throw error_of(*broken);
          } else {
            validate(shape, point.setup.format, max_ranks, group_rule(point.routing));
            require_groups(point);
          }
          for (const std::int32_t sms : all_sms) {
            point.setup.num_sms = sms;
            points.push_back(point);
          }
        }
  return points;
}

Routing routing_of(const PointRequest& point, const std::optional<RecordedRouting>& recorded) {
  return recorded ? recorded->routing : make_routing(point.setup.shape, point.routing);
}

} // namespace shmemctl::moe
