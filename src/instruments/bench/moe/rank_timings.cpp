#include "src/instruments/bench/moe/rank_timings.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_values.h"
#include "src/instruments/bench/statistics.h"

namespace shmemctl::moe {

namespace {

using nlohmann::json;

/// Medians over the calls; 0 where a backend does not report.
std::vector<double> by_peer(const CallTimings& calls, int n_pes, std::vector<double> Times::*of) {
  std::vector<double> medians;
  for (std::size_t peer = 0; peer < static_cast<std::size_t>(n_pes); ++peer) {
    std::vector<double> of_peer;
    for (const Times& times : calls.times)
      of_peer.push_back((times.*of).empty() ? 0 : (times.*of)[peer]);
    medians.push_back(bench::median(of_peer));
  }
  return medians;
}

json timings_json(const CallTimings& calls, int n_pes) {
  json one{{"cold", calls.cold_us}};
  for (const Times& times : calls.times) {
    one["total"].push_back(times.total_us);
    one["counts"].push_back(times.counts_us);
    one["transfer"].push_back(times.transfer_us);
    one["arrival"].push_back(times.arrival_us);
    one["pack"].push_back(times.pack_us);
  }
  one["send"] = calls.send_us;
  one["receive"] = calls.receive_us;
  one["waits"] = by_peer(calls, n_pes, &Times::wait_us);
  one["begin waits"] = by_peer(calls, n_pes, &Times::begin_wait_us);
  one["late"] = bench::median(calls.late_us);
  return one;
}

/// All ranks' words; null of those that are lost.
std::vector<json> read_all(const std::vector<std::string>& texts) {
  std::vector<json> all;
  for (const std::string& text : texts) {
    all.push_back(text.empty() ? json() : try_from_json_line(text));
    if (!text.empty() && !all.back().is_object())
      throw Error(ExitCode::unavailable, "times of a PE", "read", "invalid JSON",
                  "run the same version of shmemctl on all hosts");
  }
  return all;
}

/// By call, the largest value of the ranks that are present. @param of_pe gives a rank's list
template <class OfPe>
std::vector<double> slowest(const std::vector<json>& all, const OfPe& of_pe) {
  std::vector<double> most;
  for (const json& pe : all) {
    if (pe.is_null())
      continue;
    const json& values = of_pe(pe);
    most.resize(std::max(most.size(), values.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      most[i] = std::max(most[i], values[i].template get<double>());
  }
  return most;
}

/// What the calls of all ranks at that position say of the ranks that came later.
WaitMatrix lateness(const std::vector<json>& all, std::size_t at) {
  WaitMatrix late;
  for (const json& waiting : all) {
    if (waiting.is_null()) {
      late.emplace_back(all.size());
      continue;
    }
    const json& own = waiting.at("operations").at(at);
    late.push_back(own.at("begin waits").get<std::vector<double>>());
    for (std::size_t peer = 0; peer < late.back().size() && peer < all.size(); ++peer)
      if (!all[peer].is_null())
        late.back()[peer] =
            std::max(late.back()[peer], all[peer].at("operations").at(at).at("late").get<double>() -
                                            own.at("late").get<double>());
  }
  return late;
}

/// Empty if no rank has masked another one.
Masked masked_of(const std::vector<json>& all, const char* when) {
  Masked masked;
  bool somebody = false;
  for (const json& pe : all) {
    masked.push_back(pe.is_null() ? std::vector<std::int32_t>{}
                                  : pe.at(when).get<std::vector<std::int32_t>>());
    somebody = somebody || !masked.back().empty();
  }
  return somebody ? masked : Masked{};
}

OperationResult operation_of(const std::vector<json>& all, std::size_t at, Operation operation) {
  OperationResult one;
  one.operation = operation;
  const auto part = [&](const char* name) {
    static const json none = json::array();
    return slowest(all, [&](const json& pe) -> const json& {
      const json& of_pe = pe.at("operations").at(at);
      return of_pe.contains(name) ? of_pe.at(name) : none;
    });
  };
  one.total_us = part("total");
  one.counts_us = part("counts");
  one.transfer_us = part("transfer");
  one.arrival_us = part("arrival");
  one.pack_us = part("pack");
  one.send_us = part("send");
  one.receive_us = part("receive");
  for (const json& pe : all) {
    if (pe.is_null()) {
      one.waits.emplace_back(all.size());
      continue;
    }
    const json& of_pe = pe.at("operations").at(at);
    one.cold_us = std::max(one.cold_us, of_pe.at("cold").get<double>());
    one.waits.push_back(of_pe.at("waits").get<std::vector<double>>());
  }
  one.late = lateness(all, at);
  return one;
}

} // namespace

std::string timings_text(const RankTimings& timings, int n_pes) {
  json operations = json::array();
  for (const CallTimings& calls : timings.calls)
    operations.push_back(timings_json(calls, n_pes));
  return json_line({{"operations", operations},
                    {"period", timings.period_us},
                    {"masking", timings.masking_us},
                    {"without", timings.without_us},
                    {"masked", timings.masked},
                    {"masked at last", timings.masked_at_last},
                    {"wrong", timings.wrong}});
}

PointResult merge_timings(const std::vector<std::string>& texts, const RankTimings& own,
                          std::optional<int> absent) {
  const std::vector<json> all = read_all(texts);
  PointResult result;
  for (std::size_t i = 0; i < own.calls.size(); ++i) {
    result.operations.push_back(operation_of(all, i, own.calls[i].operation));
    result.operations.back().wall_s = own.calls[i].wall_s;
    result.operations.back().phases_wall_s = own.calls[i].phases_wall_s;
  }
  result.period_us = slowest(all, [](const json& pe) -> const json& { return pe.at("period"); });
  result.masked = masked_of(all, "masked");
  if (absent) {
    Absence absence;
    absence.absent = *absent;
    absence.masked = masked_of(all, "masked at last");
    for (const json& pe : all)
      if (!pe.is_null())
        absence.masking_us = std::max(absence.masking_us, pe.at("masking").get<double>());
    absence.period_us =
        slowest(all, [](const json& pe) -> const json& { return pe.at("without"); });
    result.absence = absence;
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].is_null())
      result.lost.push_back(static_cast<std::int32_t>(rank));
    else if (const auto wrong = all[rank].at("wrong").get<std::string>(); !wrong.empty())
      result.wrong.push_back(wrong);
  }
  return result;
}

} // namespace shmemctl::moe
