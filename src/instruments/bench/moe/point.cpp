#include "src/instruments/bench/moe/point.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/text.h"
#include "src/base/units.h"
#include "src/instruments/bench/above_limit.h"
#include "src/instruments/bench/moe/traffic.h"
#include "src/instruments/bench/statistics.h"

namespace shmemctl::moe {

namespace {

using nlohmann::json;

double mean_of(const std::vector<std::uint64_t>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

Traffic traffic_of(const Setup& setup, Operation operation) {
  return operation == Operation::combine ? combine_traffic(setup) : dispatch_traffic(setup);
}

/// Adds what distinguishes one routing from another, if it is not the default.
void add_routing(const Point& point, json& params) {
  const RoutingRequest& drawn = point.drawn;
  if (point.setup.seed != 1)
    params["seed"] = point.setup.seed;
  if (point.recorded) // the file may have other contents next time
    params["routing_hash"] =
        fmt::format("{:016x}", routing_hash(point.setup.shape, *point.setup.routing));
  if (drawn.uneven)
    params["uneven"] = true;
  if (drawn.fewer_by_rank)
    params["fewer_by_rank"] = true;
  if (drawn.masked_percent > 0)
    params["masked_percent"] = drawn.masked_percent;
  if (drawn.kind == RoutingKind::grouped) {
    params["groups"] = drawn.groups;
    params["top_groups"] = drawn.top_groups;
  }
}

/// Adds where rows go, what is sent with them besides their values, and what delays calls.
void add_path(const Point& point, json& params) {
  const Setup& setup = point.setup;
  const bool straight = !setup.node_of_rank.empty();
  const std::int32_t nodes =
      straight ? *std::max_element(setup.node_of_rank.begin(), setup.node_of_rank.end()) + 1
               : setup.n_nodes();
  params["ranks"] = setup.shape.n_ranks;
  if (nodes > 1)
    params["nodes"] = nodes;
  if (nodes > 1 && straight && setup.mode == Mode::high_throughput)
    params["flat"] = true;
  if (setup.format == Format::fp8 && setup.power_scales)
    params["scales"] = "ue8m0";
  if (setup.bias)
    params["bias"] = true;
  if (setup.shape.expert_alignment > 1)
    params["expert_alignment"] = setup.shape.expert_alignment;
  if (setup.rank_timeout_us > 0)
    params["patience_us"] = setup.rank_timeout_us;
  if (point.max_delay_us > 0)
    params["most_delay_us"] = point.max_delay_us;
  if (point.straggler)
    params["straggler"] = fmt::format("{}:{:.0f}", point.straggler->first, point.straggler->second);
  if (point.absent)
    params["absent"] = *point.absent;
}

json params_of(const Point& point, const char* phase) {
  const Setup& setup = point.setup;
  json params{{"tokens", point.tokens},
              {"hidden", setup.shape.hidden},
              {"topk", setup.shape.top_k},
              {"experts", setup.shape.n_experts},
              {"routing", point.routing},
              {"mode", to_string(setup.mode)},
              {"dtype", to_string(setup.format)},
              {"backend", point.backend},
              {"phase", phase}};
  if (setup.mode == Mode::low_latency)
    params["combine"] = to_string(setup.combine);
  if (setup.combined_weights)
    params["weights"] = "home";
  if (setup.by_expert)
    params["layout"] = "expert";
  if (setup.num_sms > 0)
    params["num_sms"] = setup.num_sms;
  if (point.start.flush_l2)
    params["flush_l2"] = true;
  if (point.start.kernels_only)
    params["kernels_only"] = true;
  if (point.count != ByteCount::own)
    params["count"] = to_string(point.count);
  add_routing(point, params);
  add_path(point, params);
  for (const Direction direction : {Direction::dispatch, Direction::combine})
    if (const std::string given = to_text(point.given.of(direction)); !given.empty())
      params[to_string(direction) + std::string("_settings")] = given;
  return params;
}

ResultRow row_of(const Point& point, const std::string& name, const char* phase,
                 const std::vector<double>& samples_us) {
  ResultRow row;
  row.case_name = name;
  row.params = params_of(point, phase);
  row.stats = bench::stats_of(samples_us);
  row.samples = bench::kept_samples({samples_us});
  row.unit = "us";
  if (!point.result.wrong.empty()) {
    row.verified = Verified::failed;
    row.status = RowStatus::fail;
    row.reason = point.result.wrong.front();
  } else if (point.result.verified_iterations > 0) {
    row.verified = Verified::passed;
  } else {
    row.reason =
        point.result.masked.empty()
            ? "verification was not asked for"
            : "not verified: a rank was masked during every call that was to be verified, or "
              "verification was not asked for";
  }
  return row;
}

/// "PE 1 by PE 0, PE 2 by PE 0"
std::string text_of(const Masked& masked) {
  std::vector<std::string> words;
  for (std::size_t rank = 0; rank < masked.size(); ++rank)
    for (const std::int32_t other : masked[rank])
      words.push_back(fmt::format("PE {} by PE {}", other, rank));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Adds bandwidths in 10^9 bytes per second of one rank, averaged over the ranks, and the share of
/// its limit that the busiest link reached. Adds neither if a rank was masked.
/// @param counted bytes by rank, counted as point.count says
void add_bandwidth(const Point& point, const Traffic& traffic,
                   const std::vector<std::uint64_t>& counted, ResultRow& row) {
  if (!point.result.masked.empty()) {
    row.reason +=
        fmt::format("{}no bandwidth: calls moved less than the routing says, because ranks "
                    "were masked ({})",
                    row.reason.empty() ? "" : "; ", text_of(point.result.masked));
    return;
  }
  const double p50_us = row.stats && row.stats->p50 ? *row.stats->p50 : 0;
  if (p50_us <= 0)
    return;
  row.bandwidth_GBps = mean_of(traffic.logical_bytes) / p50_us / 1e3;
  row.wire_GBps = mean_of(traffic.sent_bytes) / p50_us / 1e3;
  if (point.count != ByteCount::own)
    row.counted_GBps = mean_of(counted) / p50_us / 1e3;
  if (const auto share = share_of(point.links, traffic, p50_us)) {
    row.link_fraction = share->fraction;
    row.limited_by = share->limited_by;
    bench::note_above_limit(row);
  }
}

constexpr const char* aligned_window =
    "; each call is enqueued behind a barrier of the GPUs' streams, which all leave together, so "
    "neither launches nor the hosts' skew are in it (calls in turn: no barrier)";

const char* caches_text(const CallStart& start) {
  return start.flush_l2
             ? "flushed: before each timed call the GPU writes 256 MiB of other memory; calls in "
               "turn and those of --tune are warm"
             : "warm: each call has the buffers of the one before, and nothing is flushed; "
               "but a timed call that is verified begins after a fill of what it writes";
}

std::string case_of(Operation operation) {
  switch (operation) {
  case Operation::dispatch:
    return "moe-dispatch";
  case Operation::cached_dispatch:
    return "moe-cached-dispatch";
  case Operation::combine:
    return "moe-combine";
  }
  return "moe-dispatch";
}

json launches_json(const std::vector<KernelLaunch>& launches) {
  json all = json::array();
  for (const KernelLaunch& one : launches)
    all.push_back({{"kernel", one.kernel}, {"blocks", one.blocks}, {"sms", one.sms}});
  return all;
}

/// "  launched: notify 2 blocks on 2 SMs at most; ..."; "" without kernels.
std::string launches_text(const Point& point) {
  std::vector<std::string> words;
  for (const auto* launches : {&point.of_dispatch, &point.of_combine})
    for (const KernelLaunch& one : *launches)
      words.push_back(
          fmt::format("{} {} blocks on {} SMs at most", one.kernel, one.blocks, one.sms));
  return words.empty() ? "" : fmt::format("  launched: {}\n", fmt::join(words, "; "));
}

json traffic_json(const Traffic& traffic) {
  return {{"logical_bytes", traffic.logical_bytes},
          {"sent_bytes", traffic.sent_bytes},
          {"crossing_bytes", traffic.crossing_bytes}};
}

double call_us(const OperationResult& result) {
  return bench::median(result.total_us);
}

json waits_json(const Point& point, const OperationResult& result) {
  json verdicts = json::array();
  for (const WaitVerdict& verdict : verdicts_of(point, result))
    verdicts.push_back(describe(verdict));
  return {{"operation", to_string(result.operation)},
          {"wait_us", result.waits},
          {"late_us", result.late},
          {"verdicts", verdicts}};
}

const char* finding_id(Culprit culprit) {
  switch (culprit) {
  case Culprit::rank:
    return "moe-slow-rank";
  case Culprit::receiver:
    return "moe-slow-receiver";
  case Culprit::link:
    return "moe-slow-link";
  }
  return "moe-slow-link";
}

Finding finding_of(const WaitVerdict& verdict, Operation operation) {
  const int pe = verdict.culprit == Culprit::receiver ? verdict.waiting : verdict.awaited;
  return {
      finding_id(verdict.culprit), Severity::warning, fmt::format("PE {}", pe),
      fmt::format("{}: {}", to_string(operation), describe(verdict)),
      verdict.culprit == Culprit::rank
          ? "check what else runs on the CPUs and the GPU of that PE, and their clocks"
          : "measure that path alone, with the same launcher: shmemctl bench put --traffic matrix"};
}

std::string operation_text(const Point& point, Operation operation) {
  const Traffic traffic = traffic_of(point.setup, operation);
  const auto line = [](const char* what, const std::vector<std::uint64_t>& bytes) {
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    return fmt::format("  {}: {:.3f} MB on average, {:.3f} to {:.3f}\n", what, mean_of(bytes) / 1e6,
                       static_cast<double>(*least) / 1e6, static_cast<double>(*most) / 1e6);
  };
  std::string text = fmt::format("{}, bytes per rank\n", to_string(operation)) +
                     line("logical (own rows included)", traffic.logical_bytes) +
                     line("to other ranks", traffic.sent_bytes);
  if (mean_of(traffic.crossing_bytes) > 0)
    text += line("to other nodes", traffic.crossing_bytes);
  return text;
}

/// The masked ranks after all calls.
const Masked& masked_of(const PointResult& result) {
  return result.absence ? result.absence->masked : result.masked;
}

/// Adds a finding for each pair of a rank and a rank that it has masked; a warning, unless the
/// other rank was masked because of --absent.
void add_masked(const Point& point, Findings& findings) {
  const Masked& masked = masked_of(point.result);
  for (std::size_t rank = 0; rank < masked.size(); ++rank)
    for (const std::int32_t other : masked[rank]) {
      const auto was_before = [&] {
        const Masked& before = point.result.masked;
        return !before.empty() && std::count(before[rank].begin(), before[rank].end(), other) > 0;
      };
      const bool on_purpose =
          point.result.absence && point.result.absence->absent == other && !was_before();
      findings.push_back(
          {"moe-masked", on_purpose ? Severity::info : Severity::warning,
           fmt::format("PE {}", other),
           fmt::format("PE {} has masked it: it did not respond within {:.0f} us", rank,
                       point.setup.rank_timeout_us),
           on_purpose ? "it was left out on purpose (--absent); otherwise look at its output"
                      : "check what delays that PE, or raise --patience-us"});
    }
}

} // namespace

std::vector<WaitVerdict> verdicts_of(const Point& point, const OperationResult& result) {
  std::vector<WaitVerdict> verdicts = judge_waits(
      result.waits, call_us(result), result.late,
      [&](int from, int to) { return point.setup.crosses(from, to); },
      point.setup.mode == Mode::high_throughput);
  if (point.oversubscribed || point.disturbed)
    verdicts.erase(std::remove_if(verdicts.begin(), verdicts.end(),
                                  [&](const WaitVerdict& verdict) {
                                    return verdict.culprit != Culprit::rank || !point.straggler ||
                                           point.straggler->first != verdict.awaited;
                                  }),
                   verdicts.end());
  return verdicts;
}

namespace {

/// A call has several rows. Its time is set in only one of them, so that a sum counts it once.
void set_time(double wall_s, ResultRow& row) {
  if (wall_s > 0)
    row.time_s = wall_s;
}

} // namespace

std::vector<ResultRow> rows_of(const Point& point) {
  std::vector<ResultRow> rows;
  for (const OperationResult& result : point.result.operations) {
    const std::string name = case_of(result.operation);
    const Traffic traffic = traffic_of(point.setup, result.operation);
    const auto counted = counted_bytes(point.setup, result.operation, point.count);
    rows.push_back(row_of(point, name, "total", result.total_us));
    add_bandwidth(point, traffic, counted, rows.back());
    set_time(result.wall_s, rows.back());
    if (point.setup.mode == Mode::high_throughput) {
      const bool counts = result.operation == Operation::dispatch;
      rows.push_back(row_of(point, name, counts ? "counts" : "readiness", result.counts_us));
      rows.push_back(row_of(point, name, "transfer", result.transfer_us));
      add_bandwidth(point, traffic, counted, rows.back());
    }
    // This time is the receiver's, which may have sent its own rows before, so there is no
    // bandwidth.
    if (point.setup.mode == Mode::low_latency && result.operation != Operation::combine)
      rows.push_back(row_of(point, name, "transfer", result.transfer_us));
    if (point.setup.by_expert && result.operation == Operation::dispatch)
      rows.push_back(row_of(point, name, "pack", result.pack_us));
    rows.push_back(row_of(point, name, "arrival", result.arrival_us));
    if (!result.send_us.empty()) {
      rows.push_back(row_of(point, name, "send", result.send_us));
      set_time(result.phases_wall_s, rows.back());
      rows.push_back(row_of(point, name, "receive", result.receive_us));
    }
    if (!point.was_tuned)
      rows.push_back(row_of(point, name, "first call", {result.cold_us}));
  }
  rows.push_back(row_of(point, "moe-round-trip", "period", point.result.period_us));
  set_time(point.result.chain_wall_s, rows.back());
  Traffic both = dispatch_traffic(point.setup);
  const Traffic back = combine_traffic(point.setup);
  for (std::size_t i = 0; i < both.logical_bytes.size(); ++i) {
    both.logical_bytes[i] += back.logical_bytes[i];
    both.sent_bytes[i] += back.sent_bytes[i];
  }
  for (std::size_t i = 0; i < both.moved_bytes.size(); ++i)
    both.moved_bytes[i] += back.moved_bytes[i];
  std::vector<std::uint64_t> counted = counted_bytes(point.setup, Operation::dispatch, point.count);
  const auto counted_back = counted_bytes(point.setup, Operation::combine, point.count);
  for (std::size_t i = 0; i < counted.size(); ++i)
    counted[i] += counted_back[i];
  add_bandwidth(point, both, counted, rows.back());
  if (const auto& absence = point.result.absence) {
    rows.push_back(row_of(point, "moe-round-trip", "masking", {absence->masking_us}));
    rows.push_back(row_of(point, "moe-round-trip", "without it", absence->period_us));
    set_time(point.result.without_wall_s, rows.back());
  }
  if (!point.links.transports.empty())
    for (ResultRow& row : rows)
      row.path = path_of(point.links);
  return rows;
}

json json_of(const Point& point) {
  const Setup& setup = point.setup;
  json memory = json::array();
  for (const MemoryUse& use : point.memory)
    memory.push_back(
        {{"what", use.what}, {"formula", use.formula}, {"size_bytes", use.size_bytes}});
  std::vector<std::int32_t> tokens, rows;
  for (std::int32_t rank = 0; rank < setup.shape.n_ranks; ++rank) {
    tokens.push_back((*setup.routing)[static_cast<std::size_t>(rank)].tokens());
    rows.push_back(
        rows_of(row_counts(setup.shape, *setup.routing).data(), setup.shape.n_ranks, rank));
  }
  json waits = json::array();
  for (const OperationResult& result : point.result.operations)
    waits.push_back(waits_json(point, result));
  const Traffic there = dispatch_traffic(setup), back = combine_traffic(setup);
  json all{{"params", params_of(point, "total")},
           {"window", point.window + (point.start.kernels_only ? aligned_window : "")},
           {"caches", caches_text(point.start)},
           {"links", links_json(point.links, there, back, point.result.calls)},
           {"nics", nics_json(point.links)},
           {"nvlinks", nvlinks_json(point.links.nvlinks)},
           {"seed", setup.seed},
           {"routing_hash", fmt::format("{:016x}", routing_hash(setup.shape, *setup.routing))},
           {"tokens", tokens},
           {"received_rows", rows},
           {"verified_iterations", point.result.verified_iterations},
           {"memory", memory},
           {"dispatch", traffic_json(there)},
           {"combine", traffic_json(back)},
           {"waits", waits},
           {"settings",
            {{"dispatch", settings_json(point.settings.dispatch)},
             {"combine", settings_json(point.settings.combine)}}}};
  if (!point.of_dispatch.empty())
    all["launches"] = {{"dispatch", launches_json(point.of_dispatch)},
                       {"combine", launches_json(point.of_combine)}};
  if (const auto& calls = point.result.calls)
    all["calls"] = {{"dispatches", calls->dispatches}, {"combines", calls->combines}};
  if (const Masked& masked = masked_of(point.result); !masked.empty())
    all["masked"] = masked;
  if (point.was_tuned)
    all["tuned"] = tuned_json(point.tuned);
  return all;
}

Findings findings_of(const Point& point) {
  Findings findings;
  for (const std::string& wrong : point.result.wrong)
    findings.push_back({"moe-corrupt", Severity::error, "moe", wrong,
                        "run it again with --verify-every 1; if it still fails, the transport "
                        "or the memory is broken"});
  for (const Tuned& tuned : point.tuned)
    for (const Attempt& attempt : tuned.attempts)
      if (!attempt.wrong.empty())
        findings.push_back({"moe-corrupt", Severity::error, "moe", attempt.wrong,
                            "these settings break the kernels or the memory: report them, and do "
                            "not use them"});
  add_masked(point, findings);
  for (const OperationResult& result : point.result.operations)
    for (const WaitVerdict& verdict : verdicts_of(point, result))
      findings.push_back(finding_of(verdict, result.operation));
  if (const auto above = bench::above_limit_finding("moe", rows_of(point)))
    findings.push_back(*above);
  return findings;
}

std::string text_of(const Point& point) {
  const Setup& setup = point.setup;
  std::string text = fmt::format("routing {}, hash {:016x}, seed {}\n", safe_text(point.routing),
                                 routing_hash(setup.shape, *setup.routing), setup.seed);
  for (const MemoryUse& use : point.memory)
    text += fmt::format("  {:<22} {:>10} = {}\n", use.what, format_size_bytes(use.size_bytes),
                        use.formula);
  text += launches_text(point);
  text += operation_text(point, Operation::dispatch) + operation_text(point, Operation::combine);
  text +=
      links_text(point.links, dispatch_traffic(setup), combine_traffic(setup), point.result.calls);
  for (const OperationResult& result : point.result.operations)
    if (const std::string waits = wait_text(result.waits); !waits.empty())
      text += fmt::format("{}: {}", to_string(result.operation), waits);
  return text;
}

std::string slow_text_of(const Point& point) {
  std::string text;
  for (const OperationResult& result : point.result.operations)
    if (!verdicts_of(point, result).empty())
      text += fmt::format("{}: {}", to_string(result.operation), wait_text(result.waits));
  return text;
}

} // namespace shmemctl::moe
