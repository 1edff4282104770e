// The results of `bringup`, for the report and for people.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "reports/table.h"
#include "src/base/archive.h"
#include "src/base/text.h"
#include "src/instruments/bringup/bringup.h"
#include "src/runtime/transport_choice.h"

namespace shmemctl {

namespace {

constexpr PairOp all_ops[] = {PairOp::put, PairOp::get, PairOp::fetch_add, PairOp::compare_swap,
                              PairOp::put_signal};

ResultRow row_for(const std::string& transport, PairOp op) {
  ResultRow row;
  row.case_name = std::string("bringup.") + to_string(op);
  row.params = {{"transport", transport}};
  return row;
}

ResultRow verified_row(const BringupVerdict& verdict, int transport, PairOp op) {
  const TransportReach& reach = verdict.transports[static_cast<std::size_t>(transport)];
  ResultRow row = row_for(reach.name, op);
  const std::size_t count = checkable_pairs(reach, op);
  if (count == 0) {
    row.status = RowStatus::skip;
    row.reason = reach.reaches_anything() ? "this transport does not support it"
                                          : "this transport reaches no PE";
    return row;
  }
  const auto at = static_cast<std::size_t>(transport);
  if (at < verdict.time_s.size())
    row.time_s = verdict.time_s[at][static_cast<std::size_t>(op)];
  const std::vector<PePair> bad = failed_pairs(verdict, transport, op);
  row.verified = bad.empty() ? Verified::passed : Verified::failed;
  row.status = bad.empty() ? RowStatus::pass : RowStatus::fail;
  row.reason = bad.empty() ? counted(count, "pair")
                           : fmt::format("{} of {} failed: {}", bad.size(), counted(count, "pair"),
                                         pair_list(bad));
  return row;
}

/// The reasons with their pairs; the reason with most pairs comes first.
std::vector<std::pair<std::string, std::vector<PePair>>>
reasons_of(const TransportReach& transport, const std::vector<PePair>& pairs) {
  std::map<std::string, std::vector<PePair>> by_reason;
  for (const PePair& pair : pairs)
    by_reason[transport.why(pair.first, pair.second)].push_back(pair);
  std::vector<std::pair<std::string, std::vector<PePair>>> list(by_reason.begin(), by_reason.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return list;
}

void add_unreachable(const BringupVerdict& verdict, Findings& findings) {
  if (verdict.unreachable.empty())
    return;
  std::string message = counted(verdict.unreachable.size(), "pair") + " of PEs reached by no " +
                        "transport: " + pair_list(verdict.unreachable);
  const PePair& first = verdict.unreachable.front();
  for (const TransportReach& transport : verdict.transports)
    if (const std::string why = transport.why(first.first, first.second); !why.empty())
      message += fmt::format("; {} from PE {} to PE {}: {}", transport.name, first.first,
                             first.second, why);
  findings.push_back(
      {"pair-unreachable", Severity::error,
       fmt::format("PE {} to PE {}", first.first, first.second), message,
       verdict.advice.empty()
           ? "enable a transport between these hosts; shmemctl doctor says what each "
             "lacks"
           : "set " + verdict.advice + ", which reaches all pairs"});
}

void add_corrupt(const BringupVerdict& verdict, Findings& findings) {
  for (std::size_t i = 0; i < verdict.transports.size(); ++i) {
    const auto first = std::find_if(
        verdict.failures.begin(), verdict.failures.end(),
        [i](const PairFailure& failure) { return failure.transport == static_cast<int>(i); });
    if (first == verdict.failures.end())
      continue;
    std::vector<PePair> pairs;
    for (const PairFailure& failure : verdict.failures)
      if (failure.transport == static_cast<int>(i))
        pairs.emplace_back(failure.source, failure.target);
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    const std::string& name = verdict.transports[i].name;
    findings.push_back({"pair-corrupt", Severity::error,
                        fmt::format("PE {} to PE {}", first->source, first->target),
                        describe(*first, name) + "; " + counted(pairs.size(), "pair") +
                            " failed by " + name + ": " + pair_list(pairs),
                        "run shmemctl doctor on the hosts of these PEs"});
  }
}

/// "0-3,6".
std::string ranges(const std::vector<int>& pes) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < pes.size();) {
    std::size_t end = i;
    while (end + 1 < pes.size() && pes[end + 1] == pes[end] + 1)
      ++end;
    parts.push_back(end == i ? std::to_string(pes[i]) : fmt::format("{}-{}", pes[i], pes[end]));
    i = end + 1;
  }
  return join(parts, ",");
}

} // namespace

std::string phases_message(const std::vector<PhaseTime>& times) {
  std::vector<std::pair<std::string, double>> phases;
  for (const PhaseTime& time : times)
    phases.emplace_back(time.name, time.time_ms);
  return to_bytes(phases);
}

std::vector<PhaseRow> merge_phases(const std::vector<std::string>& messages) {
  std::vector<PhaseRow> rows;
  for (std::size_t pe = 0; pe < messages.size(); ++pe)
    for (const auto& [name, time_ms] :
         value_of_pe<std::vector<std::pair<std::string, double>>>(messages[pe], pe, "phases")) {
      const auto row = std::find_if(rows.begin(), rows.end(), [&wanted = name](const PhaseRow& r) {
        return r.name == wanted;
      });
      if (row == rows.end())
        rows.push_back({name, time_ms, static_cast<int>(pe)});
      else if (time_ms > row->time_ms)
        *row = {name, time_ms, static_cast<int>(pe)};
    }
  return rows;
}

void add_to_report(const BringupVerdict& verdict, Report& report) {
  for (std::size_t i = 0; i < verdict.transports.size(); ++i)
    for (const PairOp op : all_ops)
      report.results.push_back(verified_row(verdict, static_cast<int>(i), op));
  add_unreachable(verdict, report.findings);
  add_corrupt(verdict, report.findings);
  if (!verdict.kernels_problem.empty())
    report.findings.push_back(
        {"gpu-kernels-unavailable", Severity::error, "kernels of this job",
         "kernels cannot be launched, so pairs were not checked by them: " +
             verdict.kernels_problem,
         "run shmemctl doctor --only driver,gpu; to use no GPUs, pass --heap none"});
}

void add_transport_choice(const RemoteChoice& choice, Findings& findings) {
  if (!choice.automatic || choice.rejected.empty())
    return;
  findings.push_back({"transport-fallback", Severity::info, "PEs that share no memory",
                      "PEs of other nodes are reached by " + to_text(choice),
                      "for RDMA, shmemctl doctor --only rdma says what is missing; "
                      "--remote-transport NAME chooses a transport"});
}

void add_unfinished(const std::string& transport, int round, int rounds, Report& report) {
  for (const PairOp op : all_ops) {
    ResultRow row = row_for(transport, op);
    row.status = RowStatus::skip;
    row.reason =
        fmt::format("the run ended during round {} of {}, before the verdict", round + 1, rounds);
    report.results.push_back(std::move(row));
  }
}

std::string placement_text(const Placement& placement) {
  Table table({{"node", Align::right}, {"host"}, {"PEs"}});
  for (std::size_t node = 0; node < placement.node_pes.size(); ++node) {
    const std::vector<int>& pes = placement.node_pes[node];
    const std::string host =
        pes.empty() ? "" : placement.hosts[static_cast<std::size_t>(pes.front())].host_name;
    table.add({std::to_string(node), safe_text(host), ranges(pes)});
  }
  return table.text(TextStyle{});
}

std::string verdict_text(const BringupVerdict& verdict, const Placement& placement) {
  std::string out;
  for (std::size_t i = 0; i < verdict.transports.size(); ++i) {
    const TransportReach& transport = verdict.transports[i];
    std::vector<PePair> missing;
    for (int source = 0; source < verdict.n_pes; ++source)
      for (int target = 0; target < verdict.n_pes; ++target)
        if ((source != target || verdict.n_pes == 1) && transport.from(source, target) == 0)
          missing.emplace_back(source, target);
    out += safe_text(transport.name) + ": " +
           (transport.reaches_anything()
                ? "+ verified, x wrong, . not reached\n" +
                      matrix_text(verdict, static_cast<int>(i), placement.node)
                : std::string("reaches no PE\n"));
    for (const auto& [reason, pairs] : reasons_of(transport, missing))
      out += "  not reached: " + pair_list(pairs) +
             (reason.empty() ? "" : " (" + safe_text(reason) + ")") + "\n";
  }
  return out;
}

} // namespace shmemctl
