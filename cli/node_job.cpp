#include "cli/node_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>

#include "reports/compare/host_differences.h"
#include "reports/compare/merge.h"
#include "reports/report_file.h"
#include "reports/text.h"
#include "reports/verdict.h"
#include "src/base/finding.h"
#include "src/base/json_values.h"
#include "src/base/text.h"
#include "src/instruments/hotspots/gather_hosts.h"
#include "src/runtime/bootstrap/launcher_variables.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/identity.h"

namespace shmemctl {

namespace {

using Body = std::function<ExitCode(Session&, const Options&)>;

constexpr double node_slack_s =
    15; ///< how long hosts wait beyond --timeout for another host's report
/// A gathered text is limited to 1 MiB, and PE 0 receives all texts of a round.
constexpr std::size_t piece_bytes = std::size_t{128} << 10;
constexpr std::uint64_t max_bytes = std::uint64_t{64} << 20;

/// The result of one host.
struct HostOutcome {
  std::string host;
  std::vector<int> pes;
  Report report;
  ExitCode code = ExitCode::ok;
  std::string error, fix; ///< set if the run was aborted
};

/// Runs the body; an Error becomes a part of the outcome.
HostOutcome run_body(Session& session, const Options& options, const Body& body) {
  HostOutcome outcome;
  try {
    outcome.code = body(session, options);
  } catch (const Error& error) {
    Report& report = session.report();
    report.status = ReportStatus::incomplete;
    report.exit_code = error.code();
    report.finished_at = utc_now();
    report.findings.push_back(aborted_by(error));
    outcome.code = error.code();
    outcome.error = error.message();
    outcome.fix = error.fix();
  }
  return outcome;
}

std::string text_of(const HostOutcome& outcome, const Report& report) {
  return json_line({{"code", static_cast<int>(outcome.code)},
                    {"error", outcome.error},
                    {"fix", outcome.fix},
                    {"report", to_text(to_json(report))}});
}

HostOutcome outcome_from(const std::string& text, const JobHost& host) {
  HostOutcome outcome;
  outcome.host = host.name;
  outcome.pes = host.pes;
  try {
    const nlohmann::json parsed = from_json_line(text);
    outcome.code = static_cast<ExitCode>(parsed.at("code").get<int>());
    outcome.error = parsed.at("error");
    outcome.fix = parsed.at("fix");
    outcome.report = parse_report(parsed.at("report").get<std::string>(), host.name);
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::unavailable, "host " + host.name, "read its report", "malformed message",
                "run the same version of shmemctl on all hosts");
  }
  return outcome;
}

/// Collective: the texts of all ranks, of any length, on rank 0; empty on the other ranks.
std::vector<std::string> gather_long_texts(Bootstrap& bootstrap, const std::string& mine,
                                           const Deadline& deadline) {
  const std::vector<std::uint64_t> sizes =
      allgather_value(bootstrap, static_cast<std::uint64_t>(mine.size()), deadline);
  const std::uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  if (largest > max_bytes)
    throw Error(ExitCode::unavailable, "report of a host", "send it to PE 0",
                "it is larger than the limit of 64 MiB",
                "start one process per host, each as its own job: --json NAME.%h.json");
  std::vector<std::string> texts(sizes.size());
  for (std::uint64_t at = 0; at < largest; at += piece_bytes) {
    const std::vector<std::string> pieces = gather_text(
        bootstrap, at < mine.size() ? mine.substr(at, piece_bytes) : std::string(), deadline);
    for (std::size_t rank = 0; rank < pieces.size(); ++rank)
      texts[rank] += pieces[rank];
  }
  return texts;
}

std::string pes_text(const std::vector<int>& pes) {
  return pes.size() == 1
             ? fmt::format("PE {}", pes.front())
             : fmt::format("PEs {} to {}, {} of them", pes.front(), pes.back(), pes.size());
}

class NodeJob {
public:
  NodeJob(Session& session, const Context& given, const Options& options, Bootstrap& bootstrap,
          HostComparison* comparison)
      : session_(session), given_(given), options_(options), bootstrap_(bootstrap),
        comparison_(comparison), gathering_(bootstrap, this_machine(options), deadline()) {}

  ExitCode run(const Body& body) {
    if (const ExitCode refused = gathering_.agree(aim(), deadline()); refused != ExitCode::ok) {
      bootstrap_.finish(deadline());
      return refused;
    }
    HostOutcome mine;
    if (gathering_.leads()) {
      mine = run_body(session_, options_, body);
      mine.code = std::max(mine.code, write_by_host());
    }
    session_.set_deadline(2 * timeout_s() + node_slack_s); // slower hosts get more time
    session_.phase(fmt::format("gathering the reports of {} hosts", gathering_.hosts().size()));
    const std::vector<std::string> texts = gather_long_texts(
        bootstrap_, gathering_.leads() ? text_of(mine, session_.report()) : std::string(),
        deadline());
    const ExitCode code =
        gathering_.agree(bootstrap_.rank() == 0 ? end(texts) : ExitCode::ok, deadline());
    bootstrap_.finish(deadline());
    return code;
  }

private:
  static PeMachine this_machine(const Options& options) {
    const std::string root = options.text("SYSROOT");
    const HostIdentity identity = read_machine_identity(Sysroot(root.empty() ? "/" : root));
    return {identity.machine_id, identity.host_name};
  }
  double timeout_s() const { return options_.number("TIMEOUT"); }
  Deadline deadline() const {
    return Deadline::after(std::chrono::duration<double>(timeout_s() + node_slack_s));
  }

  /// PE 0: from now on its report is written, however the run ends. Fails for an existing file, and
  /// for a golden report that cannot be read, before anything has been checked.
  ExitCode aim() {
    try {
      if (bootstrap_.rank() == 0) {
        aim_at_common_files();
        if (comparison_ != nullptr)
          comparison_->read_golden();
      }
      return ExitCode::ok;
    } catch (const Error& error) { // the others wait for the exit code
      print_error(error);
      return error.code();
    }
  }

  void aim_at_common_files() {
    session_.output().set_targets({given_.json_by_host ? "" : given_.json_path,
                                   given_.csv_by_host ? "" : given_.csv_path, given_.force});
  }

  /// A file that a host cannot write does not concern the others: PE 0 still receives its results.
  ExitCode write_by_host() {
    if (!given_.json_by_host && !given_.csv_by_host)
      return ExitCode::ok;
    ExitCode code = ExitCode::ok;
    try {
      session_.output().set_targets({given_.json_by_host ? given_.json_path : "",
                                     given_.csv_by_host ? given_.csv_path : "", given_.force});
      session_.output().finish(session_.report());
    } catch (const Error& error) {
      print_error(error);
      session_.report().findings.push_back(aborted_by(error));
      code = error.code();
    }
    session_.output().set_targets({});
    return code;
  }

  /// On PE 0: prints and writes what all hosts found, and returns the exit code of the job.
  ExitCode end(const std::vector<std::string>& texts) {
    try {
      std::vector<HostOutcome> outcomes;
      ExitCode code = ExitCode::ok;
      for (const JobHost& host : gathering_.hosts()) {
        outcomes.push_back(outcome_from(texts.at(static_cast<std::size_t>(host.leader)), host));
        code = std::max(code, outcomes.back().code);
      }
      const Report together = compare(outcomes);
      if (has_finding(together.findings, session_.report().fail_on))
        code = std::max(code, ExitCode::finding);
      print(outcomes, together);
      write(outcomes, together, code);
      return code;
    } catch (const Error& error) { // the others wait for the exit code
      print_error(error);
      return error.code();
    }
  }

  /// The comparison of all hosts, as a report that contains nothing else.
  Report compare(const std::vector<HostOutcome>& outcomes) const {
    Report together;
    if (comparison_ == nullptr)
      return together;
    std::vector<HostFacts> hosts;
    std::vector<std::string> places;
    for (const HostOutcome& outcome : outcomes) {
      if (!outcome.error.empty())
        continue;
      for (HostFacts& host : facts_of(outcome.report)) {
        hosts.push_back(std::move(host));
        places.push_back(fmt::format("PE {}", outcome.pes.front()));
      }
    }
    comparison_->judge(std::move(hosts), places, together);
    return together;
  }

  void print_together(const Report& together) const {
    if (!together.host_differences.is_object())
      return;
    if (!wants_text()) {
      print_findings_without_text(given_, together.findings, session_.report().fail_on);
      return;
    }
    const TextStyle style = text_style(given_, options_);
    const std::string findings = findings_text(together.findings, style);
    std::cout << "\n== all hosts ==\n\n"
              << host_differences_text(together.host_differences, style)
              << (findings.empty() ? "" : "\n") << findings << std::flush;
  }

  bool wants_text() const {
    return !given_.quiet && given_.json_path != "-" && given_.csv_path != "-";
  }

  void print(const std::vector<HostOutcome>& outcomes, const Report& together) const {
    // An error that all hosts share is printed once: usually an invalid command line.
    const HostOutcome& first = outcomes.front();
    if (!first.error.empty() &&
        std::all_of(outcomes.begin(), outcomes.end(),
                    [&first](const HostOutcome& each) { return each.error == first.error; })) {
      std::cerr << "shmemctl: error: " << safe_text(first.error)
                << "\nshmemctl: fix: " << safe_text(first.fix) << '\n';
      return;
    }
    for (const HostOutcome& outcome : outcomes) {
      if (!wants_text()) {
        print_findings_of(outcome);
        continue;
      }
      if (outcomes.size() > 1)
        std::cout << fmt::format("{}== host {} ({}) ==\n\n", &outcome == &first ? "" : "\n",
                                 printable(outcome.host), pes_text(outcome.pes));
      write_text(std::cout, outcome.report, text_style(given_, options_));
    }
    print_together(together);
    if (outcomes.size() > 1 && wants_text()) {
      std::vector<const Report*> reports;
      for (const HostOutcome& outcome : outcomes)
        reports.push_back(&outcome.report);
      if (const std::string all = verdicts_text(reports, text_style(given_, options_));
          !all.empty())
        std::cout << '\n' << all;
    }
    std::cout.flush();
  }

  void print_findings_of(const HostOutcome& outcome) const {
    Findings named = outcome.report.findings;
    for (Finding& finding : named)
      finding.message = "host " + outcome.host + ": " + finding.message;
    print_findings_without_text(given_, named, outcome.report.fail_on);
  }

  void write(std::vector<HostOutcome>& outcomes, const Report& together, ExitCode code) {
    aim_at_common_files();
    if (outcomes.size() == 1) {
      Report& only = outcomes.front().report;
      add(together, only);
      only.exit_code = code;
      session_.output().finish(only);
      return;
    }
    std::vector<LoadedReport> reports;
    for (HostOutcome& outcome : outcomes) {
      for (nlohmann::json& host : outcome.report.hosts) {
        host["nodes"] = nlohmann::json::array({reports.size()});
        host["pes"] = outcome.pes;
      }
      reports.push_back({outcome.host, std::move(outcome.report)});
    }
    Report merged = merge_reports(reports);
    add(together, merged);
    merged.exit_code = code;
    merged.job.pes = bootstrap_.size();
    merged.job.nodes = static_cast<int>(reports.size());
    merged.job.bootstrap = bootstrap_.name();
    merged.job.launcher = launcher_name(given_.environment);
    session_.output().finish(merged);
  }

  static void add(const Report& together, Report& to) {
    to.findings.insert(to.findings.end(), together.findings.begin(), together.findings.end());
    to.host_differences = together.host_differences;
  }

  Session& session_;
  const Context& given_;
  const Options& options_;
  Bootstrap& bootstrap_;
  HostComparison* comparison_; ///< null: hosts are not compared
  JobGathering gathering_;
};

/// Without a bootstrap, one process of each host prints what it found.
ExitCode run_alone(Session& session, const Context& given, const Options& options, const Body& body,
                   HostComparison* comparison, const Error& problem) {
  if (launched_local_rank(given.environment).value_or(0) > 0)
    return problem.code();
  const bool first = launched_rank(given.environment).value_or(0) == 0;
  const bool against_golden = comparison != nullptr && comparison->has_golden();
  const HostOutcome mine =
      run_body(session, options, [&](Session& body_session, const Options& body_options) {
        if (against_golden)
          comparison->read_golden();
        const ExitCode code = body(body_session, body_options);
        if (!against_golden)
          return code;
        Report& report = body_session.report();
        comparison->judge_own(report);
        if (has_finding(report.findings, report.fail_on))
          report.exit_code = std::max(code, ExitCode::finding);
        return report.exit_code;
      });
  if (!given.quiet && given.json_path != "-" && given.csv_path != "-") {
    std::cout << "== host " << printable(read_machine_identity(Sysroot()).host_name) << " ==\n\n";
    write_text(std::cout, session.report(), text_style(given, options));
  } else {
    print_findings_without_text(given, session.report().findings, session.report().fail_on);
  }
  session.output().set_targets({given.json_by_host || first ? given.json_path : "",
                                given.csv_by_host || first ? given.csv_path : "", given.force});
  session.output().finish(session.report());
  if (first)
    print_error(Error(problem.code(), "hosts of this job", "gather their reports",
                      problem.message(),
                      problem.fix() + "; or start one process per host, each as its own job: "
                                      "--json NAME.%h.json"));
  return std::max(mine.code, problem.code());
}

ExitCode run_as_job(Context context, const Body& body, HostComparison* comparison) {
  const Context given = context;
  context.json_path.clear(); // the writer is known only after the bootstrap
  context.csv_path.clear();
  const Options options = context.options();
  Session session(context, options);
  session.defer_output();
  session.phase("opening the bootstrap");
  std::unique_ptr<Bootstrap> bootstrap;
  try {
    BootstrapRequest request;
    request.options = &options;
    request.environment = context.environment;
    bootstrap =
        open_bootstrap(std::move(request),
                       Deadline::after(std::chrono::duration<double>(options.number("TIMEOUT"))));
  } catch (const Error& problem) {
    return run_alone(session, given, options, body, comparison, problem);
  }
  session.set_deadline(options.number("TIMEOUT"));
  return NodeJob(session, given, options, *bootstrap, comparison).run(body);
}

} // namespace

ExitCode with_node_session(Context& context, bool live, const Body& body,
                           HostComparison* comparison) {
  if (launched_size(context.environment) <= 1)
    return with_session(context, body);
  // The same file gives the same result on every host.
  return live ? run_as_job(context, body, comparison) : once_per_job(context, body);
}

ExitCode once_per_job(Context& context, const Body& body) {
  const bool others =
      launched_size(context.environment) > 1 && launched_rank(context.environment).value_or(0) != 0;
  return others ? ExitCode::ok : with_session(context, body);
}

} // namespace shmemctl
