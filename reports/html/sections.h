// The sections of a page, each null if the reports have no data for it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/compare/load.h"

namespace shmemctl::html {

/// Reports that the page shows completely, and how they are distinguished.
struct Shown {
  const LoadedReport* loaded = nullptr;
  std::string label; ///< hosts, command or both, if the reports differ in them; else ""
  const Report& report() const { return loaded->report; }
};

/// Limit for the matrices of a page: about 6 bytes per cell.
struct CellBudget {
  std::size_t cells = std::size_t{1} << 20;
  std::size_t left_out = 0; ///< views of matrices that did not fit the page
  /// Takes the cells if there are enough left.
  bool take(std::size_t wanted);
};

/// @param compared the result of the comparison with the baseline
nlohmann::json findings_section(const std::vector<Shown>& shown, const Findings& compared);
/// @param comparison of `report diff` or with the baseline, or null
nlohmann::json comparison_section(const nlohmann::json& comparison);
nlohmann::json topology_section(const std::vector<Shown>& shown);
nlohmann::json nics_section(const std::vector<Shown>& shown, CellBudget& budget);
nlohmann::json pairs_section(const std::vector<Shown>& shown, CellBudget& budget);
nlohmann::json simulation_section(const std::vector<Shown>& shown);
nlohmann::json moe_section(const std::vector<Shown>& shown, CellBudget& budget);
/// @param current the reports that are shown; `baseline` may be empty
nlohmann::json sweeps_section(const std::vector<LoadedReport>& current,
                              const std::vector<LoadedReport>& baseline);
/// @param reports by time
/// @param by_host whether rows of different hosts are distinguished
nlohmann::json trend_section(const std::vector<LoadedReport>& reports, bool by_host);
nlohmann::json results_section(const std::vector<Shown>& shown);
nlohmann::json machine_section(const std::vector<Shown>& shown);

/// "label: text", or the text alone without a label.
std::string labelled(const std::string& label, const std::string& text);

} // namespace shmemctl::html
