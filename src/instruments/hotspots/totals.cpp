// Sums of counters over a run, and their JSON form in which PEs exchange them.
#include "src/instruments/hotspots/totals.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/base/json_values.h"
#include "src/base/text.h"
#include "src/instruments/hotspots/counters.h"
#include "src/instruments/hotspots/load.h"

namespace shmemctl {

namespace {

/// Shorter intervals reflect when the driver queried its device rather than rates.
double min_window_s(const MeasuredPort& port) {
  return std::max(0.02, 2 * port.lifespan_s);
}

/// The maximum number of bytes that the link carries in that time; empty if its rate is not known.
std::optional<double> max_bytes(const MeasuredPort& port, const std::string& counter,
                                double window_s) {
  if (!port.link_Gbps || !ends_with(counter, "_bytes"))
    return std::nullopt;
  return *port.link_Gbps / 8 * 1e9 * window_s;
}

/// Whether all bits of the value, or of its count of 4-byte units, are ones: a counter of some
/// width may have saturated there.
bool may_be_stuck(std::uint64_t value) {
  return (value & (value + 1)) == 0 || ((value / 4) & (value / 4 + 1)) == 0;
}

CounterStep step_between(const MeasuredPort& port, const CounterTotal& total, std::uint64_t now,
                         double window_s) {
  // The common case, thousands of times per second.
  if (now > *total.after || (now == *total.after && !may_be_stuck(now)))
    return {static_cast<std::int64_t>(now - *total.after), {}, false};
  CounterStep step = counter_step(total.counter, *total.after, now);
  if (!step.wrapped || window_s <= 0)
    return step;
  const auto bytes = max_bytes(port, total.counter, window_s);
  if (bytes && *bytes > 4294967296.0 * static_cast<double>(counter_step_bytes(total.counter)))
    return {std::nullopt, "may have wrapped more than once: too long between samples", true};
  return step;
}

void add_reading(const MeasuredPort& port, CounterTotal& total, const CounterText& text,
                 double at_s) {
  if (total.readings++ == 0) {
    total.before = total.after = text.value;
    total.problem = text.problem;
    total.first_s = total.last_s = at_s;
    if (text.value)
      total.delta = 0;
    return;
  }
  const double window_s = at_s - total.last_s;
  if (!text.value) {
    total.after.reset();
    total.delta.reset();
    if (total.problem.empty())
      total.problem = text.problem;
    total.last_s = at_s;
    return;
  }
  if (total.delta) {
    const CounterStep step = step_between(port, total, *text.value, window_s);
    if (step.delta) {
      *total.delta += *step.delta;
      if (window_s >= min_window_s(port))
        total.peak_per_s =
            std::max(total.peak_per_s.value_or(0), static_cast<double>(*step.delta) / window_s);
    } else {
      total.delta.reset();
      total.problem = step.problem;
    }
  } else if (total.problem.empty()) {
    total.problem = "did not exist before";
  }
  total.after = text.value;
  total.last_s = at_s;
  total.window_s = at_s - total.first_s;
}

/// A `sample` of one list of ports, reordered to another list.
NodeSample aligned(const NodeSample& sample, const std::vector<MeasuredPort>& from,
                   const std::vector<MeasuredPort>& to, const std::string& absent) {
  NodeSample result(to.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto found = std::find_if(from.begin(), from.end(), [&](const MeasuredPort& port) {
      return port.device == to[i].device && port.port == to[i].port;
    });
    const std::size_t count = to[i].counters.size();
    result[i].skipped.assign(count, false);
    result[i].values.assign(count, {std::nullopt, absent});
    if (found == from.end())
      continue;
    const std::size_t at = static_cast<std::size_t>(found - from.begin());
    result[i].at_s = sample[at].at_s;
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t f = 0; f < found->counters.size(); ++f)
        if (found->counters[f].counter == to[i].counters[c].counter)
          result[i].values[c] = sample[at].values[f];
  }
  return result;
}

std::vector<MeasuredPort> united(std::vector<MeasuredPort> ports,
                                 const std::vector<MeasuredPort>& more) {
  for (const MeasuredPort& other : more) {
    const auto found = std::find_if(ports.begin(), ports.end(), [&](const MeasuredPort& port) {
      return port.device == other.device && port.port == other.port;
    });
    if (found == ports.end()) {
      ports.push_back(other);
      continue;
    }
    for (const CounterSource& source : other.counters)
      if (std::none_of(found->counters.begin(), found->counters.end(),
                       [&](const CounterSource& had) { return had.counter == source.counter; }))
        found->counters.push_back(source);
  }
  return ports;
}

std::optional<double> uptime_s(const Sysroot& sysroot) {
  const auto text = sysroot.read_line("/proc/uptime");
  const auto words = text ? split_blanks(*text) : std::vector<std::string>();
  return words.empty() ? std::nullopt : parse_number(words[0]);
}

/// Why the counters of the two trees cannot be compared; "" if they can.
std::string why_not(const Sysroot& before, const Sysroot& after) {
  const auto boot = [](const Sysroot& sysroot) {
    return sysroot.read_line("/proc/sys/kernel/random/boot_id");
  };
  if (const auto then = boot(before), now = boot(after); then && now && *then != *now)
    return "the machine was started anew in between: its boot ids differ";
  if (const auto then = uptime_s(before), now = uptime_s(after); then && now && *now <= *then)
    return fmt::format("the tree after is not younger: uptime {} s, and {} s before", *now, *then);
  return "";
}

NodeSample read_once(CounterSampler& sampler, double at_s) {
  NodeSample sample;
  sampler.read(sample, SampleDepth::all, [] { return 0.0; });
  for (PortSample& port : sample)
    port.at_s = at_s;
  return sample;
}

} // namespace

std::optional<double> CounterTotal::per_s() const {
  if (!delta || window_s <= 0)
    return std::nullopt;
  return static_cast<double>(*delta) / window_s;
}

const CounterTotal* PortTotals::find(const std::string& counter) const {
  for (const CounterTotal& total : counters)
    if (total.counter == counter)
      return &total;
  return nullptr;
}

NodeTotals::NodeTotals(const std::vector<MeasuredPort>& ports) {
  for (const MeasuredPort& port : ports) {
    PortTotals totals{port, {}};
    for (const CounterSource& source : port.counters) {
      CounterTotal total;
      total.counter = source.counter;
      totals.counters.push_back(std::move(total));
    }
    ports_.push_back(std::move(totals));
  }
}

void NodeTotals::add(const NodeSample& sample) {
  for (std::size_t port = 0; port < ports_.size() && port < sample.size(); ++port) {
    PortTotals& totals = ports_[port];
    for (std::size_t i = 0; i < totals.counters.size(); ++i)
      if (!sample[port].skipped[i])
        add_reading(totals.port, totals.counters[i], sample[port].values[i], sample[port].at_s);
  }
}

NodeTotals NodeTotals::from_here() const {
  NodeTotals fresh(*this);
  for (PortTotals& port : fresh.ports_)
    for (CounterTotal& total : port.counters) {
      CounterTotal next;
      next.counter = std::move(total.counter);
      next.before = next.after = total.after;
      if (total.after)
        next.delta = 0;
      else
        next.problem = std::move(total.problem);
      next.readings = total.read() ? 1 : 0;
      next.first_s = next.last_s = total.last_s;
      total = std::move(next);
    }
  return fresh;
}

void NodeTotals::spoil(const std::string& problem) {
  for (PortTotals& port : ports_)
    for (CounterTotal& total : port.counters) {
      total.delta.reset();
      total.peak_per_s.reset();
      total.problem = problem;
    }
}

NodeTotals compare_trees(const Sysroot& before, const Node& node_before, const Sysroot& after,
                         const Node& node_after, std::optional<double> window_s) {
  CounterSampler first(before, node_before), second(after, node_after);
  const auto then_s = uptime_s(before), now_s = uptime_s(after);
  if (!window_s && then_s && now_s)
    window_s = *now_s - *then_s;
  const std::vector<MeasuredPort> ports = united(second.ports(), first.ports());
  NodeTotals totals(ports);
  totals.add(aligned(read_once(first, 0), first.ports(), ports, "did not exist before"));
  totals.add(
      aligned(read_once(second, window_s.value_or(0)), second.ports(), ports, "no longer exists"));
  if (const std::string reason = why_not(before, after); !reason.empty())
    totals.spoil(reason);
  return totals;
}

namespace {

using nlohmann::json;

constexpr std::size_t max_ports = 4096, max_counters = 65536, max_text_bytes = 1024;

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

/// A time or a rate. Throws for numbers beyond plausible bounds.
double number_from(const json& value) {
  const double number = value.get<double>();
  if (number != 0 && !(number >= 1e-9 && number <= 1e30))
    throw std::out_of_range("not a time or a rate");
  return number;
}

std::optional<double> optional_number(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<double>(number_from(value));
}

std::string text_from(const json& value) {
  auto text = value.get<std::string>();
  if (text.size() > max_text_bytes)
    throw std::out_of_range("a text is too long");
  return text;
}

std::uint64_t count_from(const json& value) {
  const auto count = require_whole_number<std::int64_t>(value);
  if (count < 0)
    throw std::out_of_range("a counter is negative");
  return static_cast<std::uint64_t>(count);
}

std::optional<std::uint64_t> optional_count(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<std::uint64_t>(count_from(value));
}

bool is_included(const CounterTotal& total, CounterDetail detail) {
  switch (detail) {
  case CounterDetail::all:
    return true;
  case CounterDetail::changed:
    return !total.delta || *total.delta != 0 || is_load_counter(total.counter);
  case CounterDetail::load:
    return is_load_counter(total.counter);
  case CounterDetail::none:
    return false;
  }
  return false;
}

double rate_of(const CounterTotal& total) {
  return static_cast<double>(*total.delta) / total.window_s;
}

/// Whether the counter was read as often as its port's first one and needs no members of its own.
/// If the first counter has a peak, the peak of this one must be its mean rate: there were only two
/// readings, or it did not change.
bool is_plain(const CounterTotal& total, const CounterTotal& first) {
  if (!total.before || !total.after || !total.delta || *total.delta < 0 || !total.problem.empty() ||
      *total.before + static_cast<std::uint64_t>(*total.delta) != *total.after ||
      total.window_s != first.window_s || total.readings != first.readings)
    return false;
  return first.peak_per_s ? total.peak_per_s == rate_of(total) : !total.peak_per_s;
}

/// [name, before]: unchanged; [name, before, delta]: changed; otherwise all members.
json row_of(const CounterTotal& total, const CounterTotal& first, std::size_t name) {
  if (!is_plain(total, first))
    return {name,
            optional_json(total.before),
            optional_json(total.after),
            optional_json(total.delta),
            total.window_s,
            optional_json(total.peak_per_s),
            total.readings,
            total.problem.substr(0, max_text_bytes)};
  if (*total.delta == 0)
    return {name, *total.before};
  return {name, *total.before, *total.delta};
}

CounterTotal total_from(const json& row, const json& names, const json& port) {
  CounterTotal total;
  total.counter = text_from(names.at(require_whole_number<std::size_t>(row.at(0))));
  total.before = optional_count(row.at(1));
  total.window_s = number_from(port.at("window_s"));
  total.readings = require_whole_number<int>(port.at("readings"));
  if (row.size() <= 3) {
    const std::uint64_t delta = row.size() == 3 ? count_from(row.at(2)) : 0;
    total.delta = static_cast<std::int64_t>(delta);
    const std::uint64_t after = total.before.value() + delta;
    if (after > static_cast<std::uint64_t>(INT64_MAX))
      throw std::out_of_range("a counter is too large");
    total.after = after;
    if (port.at("peaks").get<bool>() && total.window_s > 0)
      total.peak_per_s = rate_of(total);
  } else {
    total.after = optional_count(row.at(2));
    if (const auto delta = optional_count(row.at(3)))
      total.delta = static_cast<std::int64_t>(*delta);
    total.window_s = number_from(row.at(4));
    total.peak_per_s = optional_number(row.at(5));
    total.readings = require_whole_number<int>(row.at(6));
    total.problem = text_from(row.at(7));
  }
  if (total.readings < 0)
    throw std::out_of_range("negative readings");
  total.last_s = total.window_s;
  return total;
}

json port_json(const MeasuredPort& port) {
  return {{"device", port.device},
          {"port", port.port},
          {"netdev", port.netdev},
          {"rdma", port.rdma},
          {"software", port.software},
          {"fabric", port.fabric},
          {"rail", port.rail},
          {"link_Gbps", optional_json(port.link_Gbps.value)},
          {"link_reason", port.link_Gbps.value ? "" : port.link_Gbps.origin},
          {"lifespan_s", port.lifespan_s},
          {"missing", port.missing}};
}

MeasuredPort measured_port(const json& object) {
  MeasuredPort port;
  port.device = text_from(object.at("device"));
  port.port = require_whole_number<std::uint16_t>(object.at("port"));
  port.netdev = text_from(object.at("netdev"));
  port.rdma = object.at("rdma").get<bool>();
  port.software = object.at("software").get<bool>();
  port.fabric = object.at("fabric").get<bool>();
  port.rail = port.fabric ? require_whole_number<std::uint16_t>(object.at("rail")) : -1;
  const auto link_Gbps = optional_number(object.at("link_Gbps"));
  port.link_Gbps = link_Gbps && *link_Gbps > 0
                       ? known(*link_Gbps, "its host")
                       : unknown<double>(text_from(object.at("link_reason")));
  port.lifespan_s = number_from(object.at("lifespan_s"));
  for (const json& folder : object.at("missing"))
    port.missing.push_back(text_from(folder));
  return port;
}

} // namespace

nlohmann::json totals_json(const NodeTotals& totals, CounterDetail detail) {
  std::map<std::string, std::size_t> number_of;
  json names = json::array(), ports = json::array();
  std::size_t left_out = 0;
  for (const PortTotals& port : totals.ports()) {
    json object = port_json(port.port);
    json rows = json::array();
    for (const CounterTotal& total : port.counters) {
      if (!is_included(total, detail)) {
        ++left_out;
        continue;
      }
      const auto [name, is_new] = number_of.try_emplace(total.counter, names.size());
      if (is_new)
        names.push_back(total.counter);
      rows.push_back(row_of(total, port.counters.front(), name->second));
    }
    object["window_s"] = port.counters.empty() ? 0 : port.counters.front().window_s;
    object["readings"] = port.counters.empty() ? 0 : port.counters.front().readings;
    object["peaks"] = !port.counters.empty() && port.counters.front().peak_per_s.has_value();
    object["counters"] = std::move(rows);
    ports.push_back(std::move(object));
  }
  return {{"names", std::move(names)}, {"ports", std::move(ports)}, {"left_out", left_out}};
}

CounterDetail detail_within(const NodeTotals& totals, std::size_t max_bytes) {
  for (const CounterDetail detail :
       {CounterDetail::all, CounterDetail::changed, CounterDetail::load})
    if (json_line(totals_json(totals, detail)).size() <= max_bytes)
      return detail;
  return CounterDetail::none;
}

NodeTotals totals_from_json(const nlohmann::json& object, std::size_t& left_out) {
  const json& names = object.at("names");
  const json& ports = object.at("ports");
  std::vector<PortTotals> all;
  if (!ports.is_array() || ports.size() > max_ports)
    throw std::out_of_range("not a list of ports");
  for (const json& port : ports) {
    const json& rows = port.at("counters");
    if (!rows.is_array() || rows.size() > max_counters)
      throw std::out_of_range("not a list of counters");
    PortTotals totals{measured_port(port), {}};
    for (const json& row : rows) {
      totals.counters.push_back(total_from(row, names, port));
      totals.port.counters.push_back({totals.counters.back().counter, "", "", 1});
    }
    all.push_back(std::move(totals));
  }
  left_out = require_whole_number<std::size_t>(object.at("left_out"));
  return NodeTotals(std::move(all));
}

} // namespace shmemctl
