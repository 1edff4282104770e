// How PEs reach each other: NIC and port on both ends, and the network between them.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/finding.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// This PE's connections to all PEs, as its transports describe them, as a message for the others.
std::string connections_message(const std::vector<TransportEntry>& transports, int n_pes);
/// A message for the others about these connections of this PE; their `source` is ignored.
std::string connections_message(const std::vector<ConnectionRow>& rows);
/// Merges the connections of all PEs, by transport, source and target. Throws Error (unavailable)
/// for a malformed message.
/// @param messages connections_message() of every PE, by PE
std::vector<ConnectionRow> merge_connections(const std::vector<std::string>& messages);

/// Collective: returns the connections of all PEs on PE 0; empty elsewhere, since there is one for
/// each pair of PEs. Throws Error as merge_connections().
/// @param message connections_message() of this PE
std::vector<ConnectionRow> gather_connections(Runtime& runtime, const std::string& message);

/// For people: groups equal connections of a transport, as in "ibrc, rxe0:1 -> rxe0:1, 2 QPs: 0>1,
/// 1>0".
std::string connections_for_people(const std::vector<ConnectionRow>& rows);

/// `emulated-hca` for each transport that uses the emulated HCA: its results say nothing about
/// hardware.
Findings emulated_hca_findings(const std::vector<ConnectionRow>& rows);

} // namespace shmemctl
