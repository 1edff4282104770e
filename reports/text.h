// A report as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "reports/report.h"
#include "reports/table.h"

namespace shmemctl {

/// The report's parts: matrix in the layout of `nvidia-smi topo -m`, mapping, advice, checks,
/// results, counters, findings, and a closing line with totals. Never throws for a report that
/// report_from_json() returned, whatever its strings contain. Without `verbose`: a report with hot
/// spots or a simulation, without matrix, mapping and counters; of a simulation no rows; of
/// `check`, only the verdict, which is last with `verbose`.
void write_text(std::ostream& out, const Report& report, const TextStyle& style);

/// The report's sections, each "" if the report has no data for it.
std::string topology_text(const nlohmann::json& topology, const TextStyle& style);
std::string mapping_text(const Report& report, const TextStyle& style);
/// The NVSHMEM releases that choose differently on this node (`--compare-versions`).
std::string compare_versions_text(const nlohmann::json& mapping, const TextStyle& style);
std::string options_text(const std::vector<OptionEntry>& options, const TextStyle& style);
/// Settings for the best mapping: those of the shown world if the policy is `optimal`; with
/// `verbose` those of every world and library.
std::string advice_text(const nlohmann::json& mapping, const TextStyle& style);
/// What was run, and where: version, command with its launcher, PEs, hosts, CPUs, GPUs,
/// path. At most 100 columns wide.
/// @param gpu_by_pe the model of each PE's GPU; "": the PE has no GPU
/// @param path the path of the measured pair, with transport and NIC; "": no path
std::string job_text(const Report& report, const std::vector<std::string>& gpu_by_pe,
                     const TextStyle& style, const std::string& path = "");
/// Each phase of the start with its time.
std::string phases_text(const std::vector<PhaseRow>& phases, const TextStyle& style);
/// The mark in front of a line: "[✓]", "[!]", "[✗]", or in ASCII.
struct CheckMark {
  std::string plain, coloured;
};
/// For the status of a check: "pass", "warning", "fail"; anything else counts as skipped.
CheckMark check_mark(const std::string& status, const TextStyle& style);

/// Checks by group, and in a merged report by run: "memory on node1". @param runs of a merged
/// report
std::string checks_text(const std::vector<CheckRow>& checks, const TextStyle& style,
                        const std::vector<RunInfo>& runs = {});
/// All rows except those of links_text(), which are shown as a matrix; with `verbose` these too. If
/// there are more than a thousand rows, only failed ones and the first ones, with `verbose` all.
std::string results_text(const std::vector<ResultRow>& results, const TextStyle& style);
/// Rows "gpu-link": source, destination, and GB/s.
std::string links_text(const std::vector<ResultRow>& results, const TextStyle& style);
bool is_link_row(const ResultRow& row);
/// Numbers for pairs of PEs, hosts or GPUs as pictures: the darker, the worse; folded to the
/// style's width, or to 80 columns if it has none; the worst pair is named.
std::string heat_maps_text(const Report& report, const TextStyle& style);
std::string counters_text(const Report& report, const TextStyle& style);
/// What the NICs carried (`hotspots`).
std::string hotspots_text(const nlohmann::json& hotspots, const TextStyle& style);
/// What a cluster would carry (`sim`): the verdict, then tables.
std::string simulation_text(const nlohmann::json& simulation, const TextStyle& style);
/// The findings in their order. More than two findings of one id and fix (three if they are errors)
/// share one entry, which shows their number, "[!] bench-interference ×35", and names the others'
/// subjects; with `verbose` each finding has its own entry.
std::string findings_text(const Findings& findings, const TextStyle& style);
/// The runs of a merged report, to which its rows refer.
std::string runs_text(const std::vector<RunInfo>& runs, const TextStyle& style);
/// Differences between the machines first, then rows that changed, worst first; with `verbose` all
/// rows. "" for anything but an object.
std::string comparison_text(const nlohmann::json& comparison, const TextStyle& style);
/// Facts that are not the same on all hosts: a row each, at most 40 unless `verbose`; one line if
/// the hosts are alike. "" for anything but an object.
std::string host_differences_text(const nlohmann::json& differences, const TextStyle& style);
/// Inspected processes: who they are and what they do, which ranks a job waits for; libraries,
/// variables, connections to other hosts, what was skipped (of a job's hosts with `verbose` only);
/// with `verbose` rights. "" for an empty list.
std::string processes_text(const nlohmann::json& processes, const TextStyle& style);
/// What each rank of `explain`'s logs chose, and how far it got: at most 64 rows unless `verbose`.
/// "" for anything but an object.
std::string logs_text(const nlohmann::json& logs, const TextStyle& style);
std::string thresholds_text(const nlohmann::json& thresholds, const TextStyle& style);
/// "8 GPUs, 8 NICs. 2 findings (1 error, 1 warning)."
std::string summary_text(const Report& report);

// What the NICs of a job carried, in short.

/// As hotspots_text(), for a job that measured something else: the busiest ports; "" if all idle.
std::string job_nics_text(const nlohmann::json& hotspots, const TextStyle& style);

} // namespace shmemctl
