// What a page shows, and in which order.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/compare/load.h"
#include "reports/html/sections.h"

namespace shmemctl::html {

/// Names of the hosts of a report's runs, each once.
std::vector<std::string> hosts_of(const Report& report);

/// Indices of the reports to show. A report is omitted if a newer one of the same subcommand on the
/// same hosts supersedes it: one with the same command line, except for the files that it writes,
/// or with all its rows. Runs that are part of the baseline are also omitted, unless all are.
/// @param reports by time
std::vector<std::size_t> reports_to_show(const std::vector<LoadedReport>& reports,
                                         const std::vector<LoadedReport>& baseline);

/// The reports with labels that name the differences: hosts, commands, or both.
std::vector<Shown> shown_of(const std::vector<LoadedReport>& reports);

/// The input of a page.
struct PageInput {
  std::vector<LoadedReport> reports;  ///< at least one, in any order
  std::vector<LoadedReport> baseline; ///< may be empty
};

/// {"title", "verdict", "facts", "sections"} (blocks.h): of the newest report of each command on
/// each set of hosts, and the trend over all. Throws Error (usage) if there is a baseline without
/// any row in common with the reports.
nlohmann::json page_model(PageInput input);

/// The page. Its content security policy allows only our script, the charting library and our
/// style, by their hashes, and no requests.
std::string write_html(const nlohmann::json& model);

/// JSON for a <script> element: ASCII only, and without <, > and &, so that no text in it can end
/// the element or begin a comment. Bytes that are not UTF-8 become U+FFFD.
std::string script_json(const nlohmann::json& value);

/// Base64 of the bytes that a hexadecimal text represents.
std::string base64_of_hex(const std::string& digits);

// Files that CMake embeds for the page: our script and style, and the distribution's charting
// library with its licence. The hashes are SHA-256 in hexadecimal digits.

std::string page_script();
std::string page_script_sha256();
std::string page_style();
std::string page_style_sha256();
std::string chart_library();
std::string chart_library_sha256();
std::string chart_licence();
std::string chart_licence_sha256();

} // namespace shmemctl::html
