#include "src/instruments/bench/rows.h"

#include <algorithm>
#include <cmath>

#include "src/instruments/bench/above_limit.h"
#include "src/instruments/bench/case_table.h"
#include "src/instruments/bench/nccl_bandwidth.h"
#include "src/instruments/bench/statistics.h"

namespace shmemctl::bench {

namespace {

constexpr std::size_t min_for_drift = 20;
constexpr double smallest_drift = 0.02;
constexpr double spreads_of_drift = 2;

double bytes_per_operation(const PeSamples& samples) {
  return static_cast<double>(samples.bytes_per_iteration) /
         static_cast<double>(std::max<std::uint64_t>(samples.operations_per_iteration, 1));
}

double limited_bytes_per_operation(const PeSamples& samples) {
  return samples.limited_bytes_per_iteration /
         static_cast<double>(std::max<std::uint64_t>(samples.operations_per_iteration, 1));
}

double one_operation(const PeSamples&) {
  return 1;
}

/// Adds the keys of the launch. Rows of host operations on host memory get none of them, so that
/// they remain comparable with reports that were written when the host was the only initiator.
void add_launch(nlohmann::json& params, const Launch& launch) {
  if (launch.initiator == Initiator::host && launch.memory == MemoryKind::host)
    return;
  params["initiator"] = to_string(launch.initiator);
  params["memory"] = to_string(launch.memory);
  if (launch.initiator == Initiator::stream)
    params["graph"] = launch.graph;
  if (launch.ctas == 0)
    return;
  params["scope"] = to_string(launch.scope);
  params["ctas"] = launch.ctas;
  params["threads"] = launch.threads;
}

nlohmann::json params_of(const PointResult& outcome) {
  const Point& point = outcome.point;
  nlohmann::json params = {{"traffic", to_string(point.traffic)},
                           {"direction", to_string(point.direction)},
                           {"pes", outcome.n_pes}};
  if (outcome.info.sized)
    params["size_bytes"] = point.size_bytes;
  if (outcome.window > 1)
    params["window"] = outcome.window;
  if (const std::uint64_t batch = outcome.plan.batch * outcome.plan.joined; batch > 1)
    params["batch"] = batch;
  if (point.traffic == Traffic::pair &&
      (point.of_matrix || point.first_pe != 0 || point.second_pe != 1)) {
    params["first_pe"] = point.first_pe;
    params["second_pe"] = point.second_pe;
  }
  add_launch(params, point.launch);
  return params;
}

} // namespace

std::optional<double> total_rate(const std::vector<PeSamples>& samples,
                                 double (*amount_per_operation)(const PeSamples&)) {
  std::size_t count = 0;
  for (const PeSamples& pe : samples)
    count = std::max(count, pe.operation_us.size());
  std::vector<double> sums(count, 0.0);
  for (const PeSamples& pe : samples)
    for (std::size_t i = 0; i < pe.operation_us.size(); ++i) {
      if (!(pe.operation_us[i] > 0))
        return std::nullopt;
      sums[i] += amount_per_operation(pe) / pe.operation_us[i];
    }
  if (sums.empty())
    return std::nullopt;
  return median(std::move(sums));
}

std::optional<RowWindows> worst_window(const std::vector<PeSamples>& samples,
                                       const std::vector<std::vector<double>>& window_us,
                                       double length_s, std::size_t count) {
  RowWindows worst;
  worst.length_s = length_s;
  worst.count = count;
  std::size_t kept = 0;
  for (const std::vector<double>& of_pe : window_us)
    kept = std::max(kept, of_pe.size());
  if (kept == 0)
    return std::nullopt;
  for (std::size_t i = 0; i < kept; ++i) {
    double sum_GBps = 0;
    for (std::size_t pe = 0; pe < std::min(samples.size(), window_us.size()); ++pe) {
      if (i >= window_us[pe].size() || !(window_us[pe][i] > 0))
        continue;
      worst.max_us = std::max(worst.max_us.value_or(0), window_us[pe][i]);
      sum_GBps += bytes_per_operation(samples[pe]) / window_us[pe][i] * 1e-3;
    }
    if (sum_GBps > 0)
      worst.min_GBps = std::min(worst.min_GBps.value_or(sum_GBps), sum_GBps);
  }
  return worst;
}

std::optional<double> share_of_reference(const std::vector<PeSamples>& samples) {
  std::vector<double> shares;
  for (const PeSamples& pe : samples)
    for (std::size_t i = 0; i < std::min(pe.reference_us.size(), pe.operation_us.size()); ++i)
      if (pe.operation_us[i] > 0)
        shares.push_back(pe.reference_us[i] / pe.operation_us[i]);
  if (shares.empty())
    return std::nullopt;
  return median(std::move(shares));
}

std::optional<AddedCost> added_cost(const std::vector<PeSamples>& samples) {
  std::vector<double> operations, references, differences;
  for (const PeSamples& pe : samples)
    for (std::size_t i = 0; i < std::min(pe.reference_us.size(), pe.operation_us.size()); ++i) {
      operations.push_back(pe.operation_us[i]);
      references.push_back(pe.reference_us[i]);
      differences.push_back(pe.operation_us[i] - pe.reference_us[i]);
    }
  if (differences.empty())
    return std::nullopt;
  return AddedCost{median(std::move(operations)), median(std::move(references)),
                   median(std::move(differences))};
}

std::optional<Drift> find_drift(const std::vector<PeSamples>& samples) {
  std::optional<Drift> worst;
  for (std::size_t pe = 0; pe < samples.size(); ++pe) {
    const std::vector<double>& all = samples[pe].operation_us;
    if (all.size() < min_for_drift)
      continue;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    const std::vector<double> first(all.begin(), middle), second(middle, all.end());
    const double before = median(first), after = median(second);
    const double spread = std::max(median_deviation(first), median_deviation(second));
    const double change = before > 0 ? (after - before) / before : 0;
    if (std::abs(after - before) > spreads_of_drift * spread && std::abs(change) > smallest_drift &&
        (!worst || std::abs(change) > std::abs(worst->change)))
      worst = Drift{static_cast<int>(pe), change};
  }
  return worst;
}

ResultRow make_row(const PointResult& outcome) {
  ResultRow row;
  row.case_name = outcome.info.name;
  row.params = params_of(outcome);
  row.unit = "us";
  row.path = outcome.path;
  row.verified = outcome.verification.verified;
  row.reason = outcome.verification.reason;
  if (row.verified == Verified::failed)
    row.status = RowStatus::fail;
  std::vector<std::vector<double>> times;
  bool bytes = false;
  for (const PeSamples& pe : outcome.samples) {
    times.push_back(pe.operation_us);
    bytes = bytes || (pe.measures && pe.bytes_per_iteration > 0);
  }
  if (!outcome.plan.measured) {
    row.status = row.status == RowStatus::fail ? RowStatus::fail : RowStatus::skip;
    row.reason = row.reason.empty() ? "no PE measures at this point" : row.reason;
    return row;
  }
  row.stats = stats_of(times);
  row.samples = kept_samples(times);
  if (bytes) // bytes per us are MB/s
    if (const auto rate = total_rate(outcome.samples, bytes_per_operation))
      row.bandwidth_GBps = *rate * 1e-3;
  if (outcome.info.metric != Metric::latency)
    row.rate_Mops = total_rate(outcome.samples, one_operation);
  if (outcome.info.sized && row.stats->p50)
    if (const auto nccl = nccl_bandwidth(row.case_name, outcome.point.size_bytes, outcome.n_pes,
                                         *row.stats->p50)) {
      row.algbw_GBps = nccl->algorithm_GBps;
      row.busbw_GBps = nccl->bus_GBps;
    }
  row.windows =
      worst_window(outcome.samples, outcome.window_us, outcome.plan.window_s, outcome.plan.windows);
  row.cores = outcome.cores;
  if (outcome.histogram)
    row.histogram = histogram_of(times);
  row.link_fraction = share_of_reference(outcome.samples);
  if (row.link_fraction) {
    row.limited_by = outcome.info.group == proxy_group ? direct_name : reference_name;
  } else if (outcome.link.limit && bytes && outcome.link.limit->rate_GBps > 0) {
    const auto rate = total_rate(outcome.samples, limited_bytes_per_operation);
    if (rate && *rate > 0) {
      row.link_fraction = *rate * 1e-3 / outcome.link.limit->rate_GBps;
      row.limited_by = outcome.link.limit->name;
    }
  } else if (bytes) {
    row.limit_reason = outcome.link.reason;
  }
  note_above_limit(row);
  return row;
}

} // namespace shmemctl::bench
