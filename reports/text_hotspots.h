// What the NICs of a job carried, in short.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/table.h"

namespace shmemctl {

/// As hotspots_text(), for a job that measured something else: the busiest ports; "" if all idle.
std::string job_nics_text(const nlohmann::json& hotspots, const TextStyle& style);

} // namespace shmemctl
