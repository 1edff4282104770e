#include "reports/prometheus.h"

#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <vector>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;
using Labels = PrometheusLabels;

/// A label's name: letters, digits and _; anything else is _.
std::string label_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (digit && name.empty())
      name += '_';
    name += letter || digit ? c : '_';
  }
  return name.empty() ? "_" : starts_with(name, "__") ? "p" + name : name;
}

std::string label_value(const std::string& text) {
  std::string out;
  for (const char c : safe_text(text))
    out += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : std::string(1, c);
  return out;
}

/// Metrics by name, each with its help and its series in order of appearance; a repeated series is
/// omitted, because Prometheus refuses a file with one.
class Metrics {
public:
  explicit Metrics(Labels common) : common_(std::move(common)) {}

  void add(const std::string& name, const char* help, const Labels& labels,
           const std::optional<double>& value) {
    if (!value || !std::isfinite(*value))
      return;
    const auto [found, is_new] = index_.emplace(name, metrics_.size());
    if (is_new)
      metrics_.push_back({name, help, ""});
    std::string series = name;
    std::set<std::string> used;
    for (const Labels* some : std::initializer_list<const Labels*>{&common_, &labels})
      for (const auto& [label, text] : *some) {
        std::string clean = label_name(label);
        while (!used.insert(clean).second)
          clean += '_';
        series += (used.size() == 1 ? "{" : ",") + clean + "=\"" + label_value(text) + "\"";
      }
    series += used.empty() ? "" : "}";
    if (series_.insert(series).second)
      metrics_[found->second].body += series + " " + json(*value).dump() + "\n";
  }

  std::string take() const {
    std::string out;
    for (const Metric& metric : metrics_)
      out += "# HELP " + metric.name + " " + metric.help + "\n# TYPE " + metric.name + " gauge\n" +
             metric.body;
    return out;
  }

private:
  struct Metric {
    std::string name, help, body;
  };
  Labels common_;
  std::vector<Metric> metrics_;
  std::map<std::string, std::size_t> index_;
  std::set<std::string> series_;
};

/// Seconds per unit of time; empty for other units.
std::optional<double> seconds_in(const std::string& unit) {
  for (const auto& [name, seconds] :
       {std::pair{"ns", 1e-9}, std::pair{"us", 1e-6}, std::pair{"ms", 1e-3}, std::pair{"s", 1.0}})
    if (unit == name)
      return seconds;
  return std::nullopt;
}

std::optional<double> times(const std::optional<double>& value, double factor) {
  return value ? std::optional<double>(*value * factor) : std::nullopt;
}

void add_run(const std::optional<int>& run, const std::vector<RunInfo>& runs, Labels& labels) {
  if (!run || static_cast<std::size_t>(*run) >= runs.size())
    return;
  labels.emplace_back("run", std::to_string(*run));
  labels.emplace_back("hosts", join(runs[static_cast<std::size_t>(*run)].hosts, "+"));
}

Labels labels_of(const ResultRow& row, const Report& report) {
  Labels labels{{"benchmark", row.case_name}};
  for (const auto& [name, value] : row.params.items())
    if (!is_dependent(name))
      labels.emplace_back(name, view::scalar(value).value_or(""));
  add_run(row.run, report.runs, labels);
  return labels;
}

void add_row(const ResultRow& row, const Report& report, Metrics& metrics) {
  Labels labels = labels_of(row, report);
  metrics.add("shmemctl_bandwidth_bytes_per_second", "Payload bandwidth.", labels,
              times(row.bandwidth_GBps, 1e9));
  metrics.add("shmemctl_wire_bandwidth_bytes_per_second", "What really leaves a PE.", labels,
              times(row.wire_GBps, 1e9));
  metrics.add("shmemctl_counted_bandwidth_bytes_per_second",
              "Bandwidth by another project's count of the bytes.", labels,
              times(row.counted_GBps, 1e9));
  metrics.add("shmemctl_operations_per_second", "Rate of operations.", labels,
              times(row.rate_Mops, 1e6));
  metrics.add("shmemctl_link_utilization_ratio", "Share of the limit of the link.", labels,
              row.link_fraction);
  const bool failed = row.status == RowStatus::fail || row.verified == Verified::failed;
  if (row.status != RowStatus::skip)
    metrics.add("shmemctl_result_success", "1 if the row passed, 0 if it failed.", labels,
                failed ? 0.0 : 1.0);
  const auto seconds = seconds_in(row.unit);
  if (!seconds || !row.stats)
    return;
  // Not "quantile": Prometheus reserves that label for summaries.
  labels.emplace_back("percentile", "");
  for (const auto& [percentile, value] :
       {std::pair{"50", row.stats->p50}, std::pair{"90", row.stats->p90},
        std::pair{"99", row.stats->p99}}) {
    labels.back().second = percentile;
    metrics.add("shmemctl_latency_seconds", "Time of one operation.", labels,
                times(value, *seconds));
  }
}

void add_findings(const Report& report, Metrics& metrics) {
  std::map<std::pair<std::string, std::string>, double> counts;
  for (const Finding& finding : report.findings)
    ++counts[{finding.id, to_string(finding.severity)}];
  for (const auto& [key, count] : counts)
    metrics.add("shmemctl_findings", "Findings by id and severity.",
                {{"id", key.first}, {"severity", key.second}}, count);
}

/// Loads of ports, by direction, whether a port carries more than its siblings, and how even the
/// load was among ports that should have equal loads.
void add_hotspots(const json& hotspots, Metrics& metrics) {
  for (const json& port : view::list(hotspots, "ports")) {
    Labels labels{{"host", view::text(port, "host")},
                  {"device", view::text(port, "device")},
                  {"port", view::text(port, "port")}};
    const json& hot = view::member(port, "hot");
    metrics.add("shmemctl_nic_hotspot", "1 if the port carries more than its peers.", labels,
                hot.is_boolean() ? std::optional<double>(hot == true) : std::nullopt);
    labels.emplace_back("direction", "");
    for (const char* direction : {"sent", "received"}) {
      const json& load = view::member(port, direction);
      labels.back().second = direction;
      metrics.add("shmemctl_nic_traffic_bytes_per_second", "Traffic of the port from its counters.",
                  labels, times(view::number(load, "GBps"), 1e9));
      metrics.add("shmemctl_nic_utilization_ratio", "Its share of the rate of the link.", labels,
                  view::number(load, "link_share"));
    }
  }
}

void add_imbalance(const json& hotspots, Metrics& metrics) {
  for (const json& group : view::list(hotspots, "groups"))
    metrics.add("shmemctl_nic_imbalance_ratio",
                "Largest load of the group's ports, divided by their mean.",
                {{"kind", view::text(group, "kind")},
                 {"name", view::text(group, "name")},
                 {"direction", view::text(group, "direction")}},
                view::number(group, "skew"));
}

void add_comparison(const Report& report, Metrics& metrics) {
  const json& counts = view::member(report.comparison, "counts");
  if (counts.is_object())
    for (const auto& [verdict, count] : counts.items())
      metrics.add("shmemctl_comparison_rows", "Rows of the comparison by verdict.",
                  {{"verdict", verdict}}, view::number(counts, verdict.c_str()));
  for (const json& threshold : report.thresholds)
    metrics.add("shmemctl_threshold_success", "1 if the threshold is met, 0 if not.",
                {{"threshold", view::text(threshold, "expression")}},
                view::member(threshold, "passed") == json(true) ? 1.0 : 0.0);
}

} // namespace

bool is_prometheus_label(const std::string& name) {
  return label_name(name) == name;
}

std::string write_prometheus(const Report& report, const PrometheusLabels& common) {
  Metrics metrics(common);
  metrics.add("shmemctl_build_info", "Version and revision of the tool that measured.",
              {{"version", report.tool.version}, {"git_sha", report.tool.git_revision}}, 1.0);
  metrics.add("shmemctl_run_success", "1 if the run was complete and its exit code is 0.", {},
              report.status == ReportStatus::complete && report.exit_code == ExitCode::ok ? 1.0
                                                                                          : 0.0);
  metrics.add("shmemctl_run_timestamp_seconds", "When the run ended.", {},
              unix_time(report.finished_at));
  for (const ResultRow& row : report.results)
    add_row(row, report, metrics);
  for (const CheckRow& check : report.checks) {
    Labels labels{{"id", check.id}, {"status", check.status}};
    add_run(check.run, report.runs, labels);
    metrics.add("shmemctl_check", "1 for the status that a check has.", labels, 1.0);
  }
  for (const NicCounter& counter : report.nic_counters) {
    Labels labels{{"host", counter.host},
                  {"device", counter.device},
                  {"port", std::to_string(counter.port)},
                  {"counter", counter.counter}};
    add_run(counter.run, report.runs, labels);
    metrics.add("shmemctl_nic_delta", "Change of a NIC's counter during the run.", labels,
                counter.delta ? std::optional<double>(static_cast<double>(*counter.delta))
                              : std::nullopt);
  }
  add_hotspots(report.hotspots, metrics);
  add_imbalance(report.hotspots, metrics);
  add_findings(report, metrics);
  add_comparison(report, metrics);
  return metrics.take();
}

} // namespace shmemctl
