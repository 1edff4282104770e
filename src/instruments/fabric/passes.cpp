#include "src/instruments/fabric/passes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "src/base/statistics.h"

namespace shmemctl::fabric {

namespace {

constexpr std::size_t min_for_spread = 3;

/// Sets the median of the positive values, and the noise from their spread.
void summarise(const std::vector<PairFigure>& figures, float PairFigure::*value,
               float PairFigure::*noise, PairFigure& to) {
  std::vector<double> values, logarithms;
  for (const PairFigure& figure : figures)
    if (figure.*value > 0) {
      values.push_back(static_cast<double>(figure.*value));
      logarithms.push_back(std::log(values.back()));
    }
  to.*value = values.empty() ? not_measured : static_cast<float>(median(values));
  to.*noise = not_measured;
  if (values.size() >= min_for_spread)
    to.*noise = static_cast<float>(median_error_factor * median_deviation(logarithms) /
                                   std::sqrt(static_cast<double>(values.size())));
  else
    for (const PairFigure& figure : figures)
      if (figure.*noise >= 0 && !(to.*noise > figure.*noise))
        to.*noise = figure.*noise;
}

PairFigure figure_of(const std::vector<PairFigure>& figures) {
  PairFigure figure = figures.front();
  summarise(figures, &PairFigure::GBps, &PairFigure::noise, figure);
  summarise(figures, &PairFigure::latency_us, &PairFigure::latency_noise, figure);
  float resent = 0;
  int count = 0;
  for (const PairFigure& each : figures)
    if (each.resent >= 0) {
      resent += each.resent;
      ++count;
    }
  figure.resent = count > 0 ? resent / static_cast<float>(count) : not_measured;
  return figure;
}

} // namespace

std::vector<PairFigure> medians_of(const std::vector<std::vector<PairFigure>>& passes) {
  std::vector<PairFigure> all;
  for (const std::vector<PairFigure>& pass : passes)
    all.insert(all.end(), pass.begin(), pass.end());
  std::stable_sort(all.begin(), all.end(), [](const PairFigure& a, const PairFigure& b) {
    return a.source != b.source ? a.source < b.source : a.target < b.target;
  });
  std::vector<PairFigure> figures, same;
  for (std::size_t i = 0; i < all.size(); ++i) {
    same.push_back(all[i]);
    const bool last = i + 1 == all.size() || all[i + 1].source != all[i].source ||
                      all[i + 1].target != all[i].target;
    if (!last)
      continue;
    figures.push_back(figure_of(same));
    same.clear();
  }
  return figures;
}

} // namespace shmemctl::fabric
