// What a row's runs hold as numbers, and how two such lists differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/compare/side.h"
#include "src/base/two_samples.h"

namespace shmemctl {

/// The numbers of a row on one side.
struct Measured {
  std::string unit;
  std::optional<double> value;          ///< median of samples, or of runs; nothing was measured
  std::vector<double> log_samples;      ///< of all runs, sorted; empty if a run kept none
  std::vector<double> log_runs;         ///< the middle of each run
  std::optional<MeanAndSpread> summary; ///< of a single run without samples
  std::size_t samples = 0;
  bool positive = true; ///< false: there is no ratio, and the logarithms are empty
};

Measured measured(const SideRow& row);

/// Whether less is better: times; whether more is: rates; nothing for other units.
std::optional<bool> less_is_better(const std::string& unit);

/// A change as a logarithm of a ratio, from all tests that the numbers suffice for.
struct Change {
  std::optional<Shift> shift; ///< p is the largest of the tests'
  std::string tests;          ///< "samples and runs"
};
Change change_between(const Measured& base, const Measured& other);

/// Confidence of the intervals.
inline constexpr double interval_confidence = 0.95;

} // namespace shmemctl
