// The table of bench cases (case_table.cpp), and how it is shown.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/table.h"
#include "src/instruments/bench/case.h"

namespace shmemctl::bench {

/// CaseInfo::group of the cases whose reference is the same call without the proxy.
inline constexpr const char* proxy_group = "proxy";
/// That of the cases that post on queue pairs of their own, where the transport is over verbs.
inline constexpr const char* verbs_group = "verbs";

/// The names of all cases by group, each once, in lines of at most `width` columns: for --help.
std::string case_names_text(int width);

/// Every case by its group, under a heading for each initiator where there are several: name, what
/// its number means, what is in the timed loop and what is verified, and the flags that it
/// supports.
std::string list_text(const std::vector<BenchCase>& cases, const TextStyle& style);

/// The same for scripts: {"cases": [{"name", "initiator", "group", "metric", "measures", "how",
/// "sized", "min_bytes", "max_bytes", "element_bytes", "only_bytes", "traffics", "bidirectional",
/// "min_pes", "memories"}]}, and "launch" of kernels' cases.
nlohmann::json list_json(const std::vector<BenchCase>& cases);

/// The page of docs/reference: a row for each case, without the generated file's first line.
std::string case_reference_markdown();

} // namespace shmemctl::bench
