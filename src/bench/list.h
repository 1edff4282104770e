// What `bench --list` prints.
#pragma once

#include <string>
#include <vector>

#include "reports/table.h"
#include "src/bench/case.h"

namespace shmemctl::bench {

/// Every case by its group, under a heading for each initiator where there are several: name, what
/// its number means, what is in the timed loop and what is verified, who it can run between, and
/// the sizes of its sweep.
std::string list_text(const std::vector<CaseEntry>& cases, const TextStyle& style);

/// The same for scripts: {"cases": [{"name", "initiator", "group", "metric", "measures", "how",
/// "sized", "min_bytes", "max_bytes", "element_bytes", "only_bytes", "traffics", "bidirectional",
/// "min_pes"}]}, and "launch" of kernels' cases.
nlohmann::json list_json(const std::vector<CaseEntry>& cases);

} // namespace shmemctl::bench
