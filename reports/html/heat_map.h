// Heat maps of a page.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/html/sections.h"

namespace shmemctl::html {

using Matrix = std::vector<std::vector<std::optional<double>>>;

struct HeatView {
  std::string name, unit;
  bool less_is_better = false;
  Matrix values;
};

struct HeatMap {
  std::string title, row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<HeatView> views;
  std::vector<std::string> notes;
  bool skip_diagonal =
      false; ///< excluded from the colour scale, because it is not comparable with the rest

  /// Views that exceed the budget are left out, and counted in it; null if no view is left.
  nlohmann::json block(CellBudget& budget) const;
};

/// The limits of a view's colour scale: small differences are not stretched to look large.
struct HeatRange {
  double low = 0, high = 0;
};
std::optional<HeatRange> heat_range(const HeatView& view, bool skip_diagonal);

} // namespace shmemctl::html
