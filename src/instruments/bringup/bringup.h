// `bringup`: the phases of initialisation with their times, then a check of every ordered pair of
// PEs on every transport.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bringup/gpu_pairs.h"
#include "src/instruments/bringup/verdict.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// Collective: the phases that the runtime has gone through, each with the longest time of any PE;
/// the same on every PE. Throws Error.
std::vector<PhaseRow> gather_phases(Runtime& runtime);
/// @param messages phases_message() of every PE, by PE; the first one determines the order
std::vector<PhaseRow> merge_phases(const std::vector<std::string>& messages);
std::string phases_message(const std::vector<PhaseTime>& times);

/// Collective: which PE reaches which. The same on every PE.
std::vector<TransportReach> gather_reach(Runtime& runtime);

/// Collective: returns on PE 0 what the PEs' GPUs are and which PEs their kernels reach; empty
/// elsewhere, since it has a row for each pair of PEs. If the job uses no GPUs: only the reason, on
/// every PE whose node has NVIDIA GPUs; nothing on others.
GpuSummary gather_gpus(Runtime& runtime);

/// Called before each round of each transport, and once before the kernels (transport "gpu").
using CheckProgress = std::function<void(const std::string& transport, int round, int rounds)>;

/// Collective: checks all pairs on all transports and, if the job has GPUs, also with kernels,
/// whose results follow those of the transports under the name "gpu". The verdict is the same on
/// every PE. Throws Error: unavailable (the heap is too small, a PE was lost), deadline.
BringupVerdict check_all_pairs(Runtime& runtime, const Options& options,
                               std::vector<TransportReach> transports,
                               const CheckProgress& progress);

/// Adds rows "bringup.put", ... by transport, and the findings pair-unreachable, pair-corrupt and
/// gpu-kernels-unavailable.
void add_to_report(const BringupVerdict& verdict, Report& report);
/// Adds the finding transport-fallback if better transports were rejected when the transport for
/// other nodes was chosen automatically.
void add_transport_choice(const RemoteChoice& choice, Findings& findings);
/// Adds rows for a check that has not ended: unchecked, with its progress.
void add_unfinished(const std::string& transport, int round, int rounds, Report& report);

/// A table for people: one line per node with its host and PEs.
std::string placement_text(const Placement& placement);
/// Matrices of all transports, each followed by the reasons why pairs are not reached.
std::string verdict_text(const BringupVerdict& verdict, const Placement& placement);

} // namespace shmemctl
