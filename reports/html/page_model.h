// From reports to what their page shows. Nothing is drawn here: page.js draws what this decides.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "reports/compare/load.h"

namespace shmemctl::html {

/// What a page is about.
struct PageInput {
  std::vector<LoadedReport> reports;  ///< at least one, in any order
  std::vector<LoadedReport> baseline; ///< may be empty
};

/// {"title", "verdict", "facts", "sections"} (blocks.h): of the newest report of each command on
/// each set of hosts, and the trend over all. Throws Error (usage) if there is a baseline and it
/// has no row in common with the reports.
nlohmann::json page_model(PageInput input);

} // namespace shmemctl::html
