#include "src/hotspots/totals.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/hotspots/nic_counters.h"

namespace shmemctl {

namespace {

/// Steps that are shorter tell more about when the driver asked its device than about rates.
double least_window_s(const MeasuredPort& port) {
  return std::max(0.02, 2 * port.lifespan_s);
}

/// Bytes that may pass in that time, or nothing where that is not known.
std::optional<double> most_bytes(const MeasuredPort& port, const std::string& counter,
                                 double window_s) {
  if (!port.link_Gbps || !ends_with(counter, "_bytes"))
    return std::nullopt;
  return *port.link_Gbps / 8 * 1e9 * window_s;
}

/// All ones: where a counter of some width may be stuck, in words of 4 bytes too.
bool may_be_stuck(std::uint64_t value) {
  return (value & (value + 1)) == 0 || ((value / 4) & (value / 4 + 1)) == 0;
}

CounterStep step_between(const MeasuredPort& port, const CounterTotal& total, std::uint64_t now,
                         double window_s) {
  // Nearly always, and thousands of times in a second.
  if (now > *total.after || (now == *total.after && !may_be_stuck(now)))
    return {static_cast<std::int64_t>(now - *total.after), {}, false};
  CounterStep step = counter_step(total.counter, *total.after, now);
  if (!step.went_round || window_s <= 0)
    return step;
  const auto bytes = most_bytes(port, total.counter, window_s);
  if (bytes && *bytes > 4294967296.0 * static_cast<double>(counter_step_bytes(total.counter)))
    return {std::nullopt, "may have gone round more than once: too long between samples", true};
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
      if (window_s >= least_window_s(port))
        total.peak_per_s =
            std::max(total.peak_per_s.value_or(0), static_cast<double>(*step.delta) / window_s);
    } else {
      total.delta.reset();
      total.problem = step.problem;
    }
  } else if (total.problem.empty()) {
    total.problem = "was not there before";
  }
  total.after = text.value;
  total.last_s = at_s;
  total.window_s = at_s - total.first_s;
}

/// `sample` of one list of ports in the order of another.
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

/// Why the counters of the trees cannot be compared; "" if they can.
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
  totals.add(aligned(read_once(first, 0), first.ports(), ports, "was not there before"));
  totals.add(aligned(read_once(second, window_s.value_or(0)), second.ports(), ports,
                     "is not there any more"));
  if (const std::string reason = why_not(before, after); !reason.empty())
    totals.spoil(reason);
  return totals;
}

} // namespace shmemctl
