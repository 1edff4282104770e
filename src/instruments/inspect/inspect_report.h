// The results of `inspect` as parts of the report.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/inspect/inspect.h"

namespace shmemctl::inspect {

/// Removes secrets from the words of a command line.
using HideSecrets = std::function<std::vector<std::string>(std::vector<std::string>)>;

/// The report's `processes`.
nlohmann::json processes_json(const Inspection& inspection, const HideSecrets& hide);

/// The bytes of each port in the window, as rows of `nic_counters`; empty without a window.
std::vector<NicCounter> counter_rows(const Inspection& inspection, const std::string& host);

} // namespace shmemctl::inspect
