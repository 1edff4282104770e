// The table of bench cases (case_table.cpp), and how it is shown.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/table.h"
#include "src/instruments/bench/case.h"

namespace shmemctl::bench {

/// CaseInfo::group of the cases that are compared with the same call without the proxy.
inline constexpr const char* proxy_group = "proxy";
/// CaseInfo::group of the cases that post to their own queue pairs, if the transport uses verbs.
inline constexpr const char* verbs_group = "verbs";

/// The names of all cases by group, each once, in lines of at most `width` columns: for --help.
std::string case_names_text(int width);

/// All cases by group, with a heading for each initiator if there are several. For each: its name,
/// what its number means, what is in the timed loop, what is verified, and the flags that it
/// supports.
std::string list_text(const std::vector<BenchCase>& cases, const TextStyle& style);

/// The cases as JSON, for scripts: {"cases": [{"name", "initiator", "group", "metric", "measures",
/// "how", "sized", "min_bytes", "max_bytes", "element_bytes", "only_bytes", "traffics",
/// "bidirectional", "min_pes", "memories"}]}; kernels' cases also have "launch".
nlohmann::json list_json(const std::vector<BenchCase>& cases);

/// The page in docs/reference: for each initiator, a section for each of its cases. Without the
/// first line, which marks generated files.
std::string case_reference_markdown();

} // namespace shmemctl::bench
