// What PEs tell each other of their machines' NICs: the parts that all such texts share.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/hotspots/job.h"

namespace shmemctl {

/// How long the text of one PE may be, as every PE gathers as many bytes of every PE: 16 MiB in
/// all, between 4 KiB and 1 MiB for each.
std::size_t most_part_bytes(int n_pes);
/// The object with key "totals", of about `most_bytes`: counters that tell least are left out.
std::string with_totals(nlohmann::json object, const NodeTotals& totals, std::size_t most_bytes);
/// A PE of that host sent what is no such text.
Error bad_part(const std::string& host);

/// What a PE says of where it runs, and back.
std::string machine_text(const PeMachine& machine);
std::vector<PeMachine> machines_from(const std::vector<std::string>& texts);

} // namespace shmemctl
