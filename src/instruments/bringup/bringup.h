// `bringup`: the phases with their times, then every ordered pair on every transport.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bringup/gpu_pairs.h"
#include "src/instruments/bringup/verdict.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// Collective: the phases that the runtime went through, with the longest time of any PE; the same
/// on every PE. Throws Error.
std::vector<PhaseRow> gather_phases(Runtime& runtime);
/// @param messages phases_message() of every PE, by PE; the first one's order counts
std::vector<PhaseRow> merge_phases(const std::vector<std::string>& messages);
std::string phases_message(const std::vector<PhaseTime>& times);

/// Collective: which PE reaches which. The same on every PE.
std::vector<TransportReach> gather_reach(Runtime& runtime);

/// Collective: what the PEs' GPUs are and which PEs their kernels reach, on PE 0; nothing
/// elsewhere, since it has a row for each pair of PEs. Without GPUs: nothing, but the reason where
/// the node has some.
GpuSummary gather_gpus(Runtime& runtime);

/// Called before each round of each transport.
using CheckProgress = std::function<void(const std::string& transport, int round, int rounds)>;

/// Collective: checks all pairs on all transports and, if the job has GPUs, with operations of
/// kernels, whose results come after the transports under the name "gpu". The verdict is the same
/// on every PE. Throws Error: unavailable (the heap is too small, a PE was lost), deadline.
BringupVerdict check_all_pairs(Runtime& runtime, const Options& options,
                               std::vector<TransportReach> transports,
                               const CheckProgress& progress);

/// Rows "bringup.put", ... by transport, and the findings pair-unreachable, pair-corrupt and
/// gpu-kernels-unavailable.
void add_to_report(const BringupVerdict& verdict, Report& report);
/// The finding transport-fallback, if the job does without a better transport than the one that was
/// chosen for it.
void add_transport_choice(const RemoteChoice& choice, Findings& findings);
/// Rows of a check that has not ended: unchecked, and its progress.
void add_unfinished(const std::string& transport, int round, int rounds, Report& report);

/// "Hosts" for people: one line per node with its host and PEs.
std::string placement_text(const Placement& placement);
/// Matrices of all transports, and under each why pairs are not reached.
std::string verdict_text(const BringupVerdict& verdict, const Placement& placement);

} // namespace shmemctl
