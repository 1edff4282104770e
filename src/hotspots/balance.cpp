#include "src/hotspots/balance.h"

#include <algorithm>
#include <map>

#include "src/base/quantiles.h"

namespace shmemctl {

namespace {

constexpr std::size_t few = 3;

struct Usual {
  double median = 0, mad = 0;
};

Usual usual_of(const std::vector<double>& values) {
  return {median(values), median_deviation(values)};
}

/// How far above the usual load a port has to be.
double least_distance(const LoadGroup& group, const PortLoad& load, const Usual& usual,
                      const OutlierSettings& settings) {
  double least =
      std::max(settings.mads * usual.mad, group.packets ? settings.packets_per_s : settings.GBps);
  const bool by_link = !group.packets && load.link_Gbps;
  if (by_link)
    least = std::max(least, settings.link_share * *load.link_Gbps / 8);
  if (!by_link || settings.ratio_too)
    least = std::max(least, (settings.ratio - 1) * usual.median);
  return least;
}

std::vector<double> values_of(const LoadGroup& group, const std::vector<PortLoad>& loads,
                              std::size_t without) {
  std::vector<double> values;
  for (std::size_t member : group.members)
    if (member != without)
      values.push_back(load_in(group, loads[member]));
  return values;
}

void judge(LoadGroup& group, const std::vector<PortLoad>& loads, const OutlierSettings& settings) {
  constexpr auto nobody = static_cast<std::size_t>(-1);
  const std::vector<double> all = values_of(group, loads, nobody);
  const Usual usual = usual_of(all);
  group.median = usual.median;
  group.mad = usual.mad;
  double sum = 0, most = 0;
  for (double value : all) {
    sum += value;
    most = std::max(most, value);
  }
  group.skew = sum > 0 ? most / (sum / static_cast<double>(all.size())) : 1;
  for (std::size_t member : group.members) {
    const Usual others =
        group.members.size() <= few ? usual_of(values_of(group, loads, member)) : usual;
    const double load = load_in(group, loads[member]);
    const double distance = load - others.median;
    const double least = least_distance(group, loads[member], others, settings);
    if (distance > least)
      group.hot.push_back(member);
    else if (-distance > least && load * settings.ratio < others.median)
      group.low.push_back(member);
  }
}

/// Sorts the ports into those whose load is known in one unit, and others.
void choose_unit(LoadGroup& group, const std::vector<PortLoad>& loads,
                 const std::vector<std::size_t>& ports) {
  const auto known = [&](auto member) {
    return std::count_if(ports.begin(), ports.end(), [&](std::size_t port) {
      return (loads[port].in(group.direction).*member).has_value();
    });
  };
  const auto with_rate = known(&DirectionLoad::GBps);
  const auto with_packets = known(&DirectionLoad::packets_per_s);
  group.packets = with_packets > with_rate;
  for (std::size_t port : ports) {
    const DirectionLoad& load = loads[port].in(group.direction);
    const bool told = group.packets ? load.packets_per_s.has_value() : load.GBps.has_value();
    (told ? group.members : group.unknown).push_back(port);
  }
}

} // namespace

OutlierSettings over_a_job(OutlierSettings settings) {
  settings.link_share /= 10;
  settings.ratio_too = true;
  return settings;
}

double load_in(const LoadGroup& group, const PortLoad& load) {
  const DirectionLoad& direction = load.in(group.direction);
  return group.packets ? direction.packets_per_s.value_or(0) : direction.GBps.value_or(0);
}

std::vector<LoadGroup> judge_balance(const std::vector<PortLoad>& loads,
                                     const OutlierSettings& settings) {
  std::map<std::string, std::vector<std::size_t>> nodes;
  std::map<int, std::vector<std::size_t>> rails;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (loads[i].fabric) {
      nodes[loads[i].host].push_back(i);
      rails[loads[i].rail].push_back(i);
    }
  std::vector<LoadGroup> groups;
  const auto add = [&](const char* kind, const std::string& name,
                       const std::vector<std::size_t>& ports) {
    for (WireDirection direction : {WireDirection::sent, WireDirection::received}) {
      LoadGroup group;
      group.kind = kind;
      group.name = name;
      group.direction = direction;
      choose_unit(group, loads, ports);
      if (group.members.size() < 2)
        continue;
      judge(group, loads, settings);
      groups.push_back(std::move(group));
    }
  };
  for (const auto& [host, ports] : nodes)
    add("node", host, ports);
  if (nodes.size() > 1)
    for (const auto& [rail, ports] : rails)
      add("rail", std::to_string(rail), ports);
  return groups;
}

} // namespace shmemctl
