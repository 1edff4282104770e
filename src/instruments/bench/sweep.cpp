// The points of a case.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/bench/engine.h"

namespace shmemctl::bench {

namespace {

/// More points than a user would wait for, as from a very small step or a matrix of many PEs.
constexpr std::size_t max_points = 4096;
constexpr int max_in_window = 1 << 16;

Error refused(const CaseInfo& info, const std::string& problem, const std::string& fix) {
  return Error(ExitCode::usage, "bench " + info.name, "", problem, fix).on_all_pes();
}

std::string names_of(const std::vector<Traffic>& traffics) {
  std::string words;
  for (const Traffic traffic : traffics)
    words += (words.empty() ? "" : ", ") + std::string(to_string(traffic));
  return words;
}

Traffic traffic_of(const CaseInfo& info, const Sweep& sweep) {
  if (!sweep.traffic)
    return info.traffics.empty() ? Traffic::pair : info.traffics.front();
  if (std::find(info.traffics.begin(), info.traffics.end(), *sweep.traffic) == info.traffics.end())
    throw refused(info, std::string("unsupported traffic ") + to_string(*sweep.traffic),
                  "pass one of these to --traffic: " + names_of(info.traffics));
  return *sweep.traffic;
}

void require_pes(const CaseInfo& info, const Sweep& sweep, Traffic traffic, int n_pes) {
  const auto counted = [](int pes) { return std::to_string(pes) + (pes == 1 ? " PE" : " PEs"); };
  if (n_pes < info.min_pes)
    throw refused(
        info, "it needs " + counted(info.min_pes) + ", but the job has " + std::to_string(n_pes),
        "start " + counted(info.min_pes) + " or more: shmemctl run -n " +
            std::to_string(info.min_pes) + " bench " + info.name);
  if (traffic == Traffic::pairs && n_pes % 2 != 0)
    throw refused(info, "an odd number of PEs cannot be paired: the job has " + counted(n_pes),
                  "start an even number of PEs");
  if (traffic != Traffic::pair)
    return;
  for (const int pe : {sweep.first_pe, sweep.second_pe})
    if (pe < 0 || (pe >= n_pes && info.min_pes > 1))
      throw refused(info, "no PE " + std::to_string(pe),
                    "pass --pair with two different PEs from 0 to " + std::to_string(n_pes - 1));
  if (sweep.first_pe == sweep.second_pe && info.min_pes > 1)
    throw refused(info, "PE " + std::to_string(sweep.first_pe) + " given twice",
                  "pass --pair with two different PEs from 0 to " + std::to_string(n_pes - 1));
}

/// The sizes in the range if the case supports only certain sizes; the step is then ignored.
std::vector<std::size_t> known_sizes(const CaseInfo& info, std::size_t first, std::size_t last) {
  std::vector<std::size_t> sizes;
  std::string words;
  for (const std::size_t size : info.only_bytes) {
    words += (words.empty() ? "" : ", ") + std::to_string(size);
    if (size >= first && size <= last)
      sizes.push_back(size);
  }
  if (sizes.empty())
    throw refused(info,
                  "it supports " + words + " bytes only, none from " + format_size_bytes(first) +
                      " to " + format_size_bytes(last),
                  "pass -b and -e with one of " + words + ", or omit the case");
  return sizes;
}

std::size_t rounded_up(std::size_t size_bytes, std::size_t multiple) {
  return (size_bytes + multiple - 1) / multiple * multiple;
}

void require_possible(const CaseInfo& info, std::size_t size_bytes, const char* flag) {
  if (size_bytes > std::numeric_limits<std::size_t>::max() / 4)
    throw refused(info, "invalid size: " + format_size_bytes(size_bytes) + " exceeds any memory",
                  std::string("pass ") + flag + " below the size of the symmetric heap");
}

/// The sizes of --sizes, in their order, without repetitions.
std::vector<std::size_t> listed_sizes(const CaseInfo& info, const std::vector<std::size_t>& asked,
                                      std::size_t element) {
  std::vector<std::size_t> sizes;
  for (const std::size_t size : asked) {
    require_possible(info, size, "--sizes");
    const auto& known = info.only_bytes;
    if (!known.empty() && std::find(known.begin(), known.end(), size) == known.end()) {
      std::vector<std::string> words;
      for (const std::size_t one : known)
        words.push_back(std::to_string(one));
      throw refused(
          info, "it supports " + join(words, ", ") + " bytes only, not " + format_size_bytes(size),
          "pass --sizes with some of " + join(words, ",") + ", or omit the case");
    }
    if (size % element != 0)
      throw refused(info,
                    "size " + format_size_bytes(size) +
                        " is no multiple of the case's element size, " +
                        format_size_bytes(element) + " bytes",
                    "pass --sizes " + format_size_bytes(rounded_up(size, element)));
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end())
      sizes.push_back(size);
  }
  return sizes;
}

std::vector<std::size_t> sizes_of(const CaseInfo& info, const Sweep& sweep) {
  if (!info.sized)
    return {info.element_bytes};
  const std::size_t element = std::max<std::size_t>(info.element_bytes, 1);
  if (!sweep.sizes.empty())
    return listed_sizes(info, sweep.sizes, element);
  const auto asked = [&](std::size_t size_bytes, std::size_t otherwise) {
    return size_bytes != 0 ? size_bytes : otherwise;
  };
  std::size_t first = asked(sweep.min_bytes, info.min_bytes);
  std::size_t last = asked(sweep.max_bytes, info.max_bytes);
  // If only one end was given and it is beyond the other end's default, the other end moves to it.
  if (first > last && sweep.min_bytes == 0)
    first = last;
  if (first > last && sweep.max_bytes == 0)
    last = first;
  if (first > last)
    throw refused(info,
                  "invalid size range: -b " + format_size_bytes(first) + " is larger than -e " +
                      format_size_bytes(last),
                  "pass -b no larger than -e");
  if (!info.only_bytes.empty())
    return known_sizes(info, first, last);
  if (last / element * element < first)
    throw refused(info,
                  "no size from " + format_size_bytes(first) + " to " + format_size_bytes(last) +
                      " is a multiple of the case's element size, " + format_size_bytes(element) +
                      " bytes",
                  "pass -e " + format_size_bytes(rounded_up(first, element)) + " or more");
  if (sweep.step_bytes % element != 0)
    throw refused(info,
                  "invalid step: " + format_size_bytes(sweep.step_bytes) +
                      " is no multiple of the case's element size, " + format_size_bytes(element) +
                      " bytes",
                  "pass -i " + format_size_bytes(rounded_up(sweep.step_bytes, element)));
  if (!(sweep.step_factor > 1) || !std::isfinite(sweep.step_factor))
    throw refused(info, "invalid step factor: it must be greater than 1", "pass -f 2, for example");
  require_possible(info, last, "-e");
  std::vector<std::size_t> sizes;
  const auto add = [&](double size_bytes) {
    const std::size_t size = rounded_up(static_cast<std::size_t>(size_bytes), element);
    if (sizes.empty() || size > sizes.back())
      sizes.push_back(size);
    if (sizes.size() > max_points)
      throw refused(
          info,
          (sweep.step_bytes > 0 ? "-i gives more than " : "the step factor gives more than ") +
              std::to_string(max_points) + " sizes",
          sweep.step_bytes > 0 ? "omit -i, or pass a larger -i" : "pass a larger -f, such as 2");
  };
  // For small sizes, one multiplication may add less than one byte.
  auto next = static_cast<double>(first);
  while (next < static_cast<double>(last)) {
    add(next);
    next = sweep.step_bytes > 0 ? next + static_cast<double>(sweep.step_bytes)
                                : std::max(next * sweep.step_factor, std::floor(next) + 1);
  }
  const std::size_t largest = std::max(last / element * element, element);
  while (!sizes.empty() && sizes.back() >= largest)
    sizes.pop_back();
  add(static_cast<double>(std::max(largest, rounded_up(first, element))));
  return sizes;
}

/// Adds that point for every ordered pair of PEs.
void add_pairs(std::vector<Point>& points, const CaseInfo& info, Point point, int n_pes) {
  point.of_matrix = true;
  const std::size_t pairs =
      static_cast<std::size_t>(n_pes) * static_cast<std::size_t>(std::max(n_pes - 1, 0));
  if (points.size() + pairs > max_points)
    throw refused(info,
                  "too many points: " + std::to_string(pairs) +
                      " pairs of PEs at each size exceed " + std::to_string(max_points),
                  "pass one size with -b and -e, or start fewer PEs");
  for (point.first_pe = 0; point.first_pe < n_pes; ++point.first_pe)
    for (point.second_pe = 0; point.second_pe < n_pes; ++point.second_pe)
      if (point.first_pe != point.second_pe)
        points.push_back(point);
}

} // namespace

std::vector<Point> points_of(const CaseInfo& info, const Sweep& sweep, int n_pes) {
  const Traffic traffic = traffic_of(info, sweep);
  require_pes(info, sweep, traffic, n_pes);
  if (sweep.direction == Direction::bi && !info.bidirectional)
    throw refused(info, "unidirectional only", "omit --bidir");
  if (sweep.window < 0 || sweep.window > max_in_window)
    throw refused(info, "invalid window of " + std::to_string(sweep.window) + " operations",
                  "pass 1 to " + std::to_string(max_in_window));
  Point point;
  point.traffic = traffic;
  point.direction = sweep.direction;
  point.window = sweep.window != 0 ? sweep.window : info.metric == Metric::latency ? 1 : 64;
  point.first_pe = sweep.first_pe;
  point.second_pe = sweep.second_pe;
  point.launch = launch_of(info.name, info.launch, sweep.launch);
  std::vector<Point> points;
  for (const std::size_t size_bytes : sizes_of(info, sweep)) {
    point.size_bytes = size_bytes;
    if (sweep.matrix)
      add_pairs(points, info, point, n_pes);
    else
      points.push_back(point);
  }
  return points;
}

bool loads_alike(const std::vector<BenchCase>& cases,
                 const std::vector<std::vector<Point>>& points) {
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const Point& point : points.at(i))
      if (point.traffic != Traffic::all_to_all &&
          (point.traffic != Traffic::collective || cases[i].info.uneven))
        return false;
  return true;
}

} // namespace shmemctl::bench
