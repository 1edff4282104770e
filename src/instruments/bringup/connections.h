// How PEs reach each other: NIC and port on both ends, and what joins them.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/finding.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// What this PE's transports say of their connections to all PEs, as message for the others.
std::string connections_message(const std::vector<TransportEntry>& transports, int n_pes);
/// As above, for given connections of this PE; their `source` does not count.
std::string connections_message(const std::vector<ConnectionRow>& rows);
/// @param messages connections_message() of every PE, by PE
/// By transport, source and target. Throws Error (unavailable) for a malformed message.
std::vector<ConnectionRow> merge_connections(const std::vector<std::string>& messages);

/// Collective: the connections of all PEs, of which this one's message is given, on PE 0; empty
/// elsewhere, since there are as many as pairs of PEs. Throws Error as merge_connections().
std::vector<ConnectionRow> gather_connections(Runtime& runtime, const std::string& message);

/// For people: equal connections of one transport together, "rxe0:1 -> rxe0:1: 0>1, 1>0".
std::string connections_for_people(const std::vector<ConnectionRow>& rows);

/// `emulated-hca` for each transport over the emulated HCA: its figures are no hardware's.
Findings emulated_hca_findings(const std::vector<ConnectionRow>& rows);

} // namespace shmemctl
