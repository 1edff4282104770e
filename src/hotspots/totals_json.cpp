#include "src/hotspots/totals_json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/base/json_line.h"
#include "src/base/whole_number.h"
#include "src/hotspots/load.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr std::size_t most_ports = 4096, most_counters = 65536, most_text_bytes = 1024;

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

/// A time, a rate: nothing that could be is as small or as large as what is refused here.
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
  if (text.size() > most_text_bytes)
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

bool goes_along(const CounterTotal& total, CounterDetail detail) {
  switch (detail) {
  case CounterDetail::all:
    return true;
  case CounterDetail::changed:
    return !total.delta || *total.delta != 0 || tells_load(total.counter);
  case CounterDetail::load:
    return tells_load(total.counter);
  case CounterDetail::none:
    return false;
  }
  return false;
}

double rate_of(const CounterTotal& total) {
  return static_cast<double>(*total.delta) / total.window_s;
}

/// Read as often as its port's first, and nothing else to be said of it. Where the first has a
/// peak, this one's is its rate: of two readings, and of what stands still.
bool is_plain(const CounterTotal& total, const CounterTotal& first) {
  if (!total.before || !total.after || !total.delta || *total.delta < 0 || !total.problem.empty() ||
      *total.before + static_cast<std::uint64_t>(*total.delta) != *total.after ||
      total.window_s != first.window_s || total.readings != first.readings)
    return false;
  return first.peak_per_s ? total.peak_per_s == rate_of(total) : !total.peak_per_s;
}

/// [name, before] stood still; [name, before, delta] moved; else all there is.
json row_of(const CounterTotal& total, const CounterTotal& first, std::size_t name) {
  if (!is_plain(total, first))
    return {name,
            optional_json(total.before),
            optional_json(total.after),
            optional_json(total.delta),
            total.window_s,
            optional_json(total.peak_per_s),
            total.readings,
            total.problem.substr(0, most_text_bytes)};
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

MeasuredPort port_from(const json& object) {
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
      if (!goes_along(total, detail)) {
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

CounterDetail detail_within(const NodeTotals& totals, std::size_t most_bytes) {
  for (const CounterDetail detail :
       {CounterDetail::all, CounterDetail::changed, CounterDetail::load})
    if (json_line(totals_json(totals, detail)).size() <= most_bytes)
      return detail;
  return CounterDetail::none;
}

NodeTotals totals_from_json(const nlohmann::json& object, std::size_t& left_out) {
  const json& names = object.at("names");
  const json& ports = object.at("ports");
  std::vector<PortTotals> all;
  if (!ports.is_array() || ports.size() > most_ports)
    throw std::out_of_range("not a list of ports");
  for (const json& port : ports) {
    const json& rows = port.at("counters");
    if (!rows.is_array() || rows.size() > most_counters)
      throw std::out_of_range("not a list of counters");
    PortTotals totals{port_from(port), {}};
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
