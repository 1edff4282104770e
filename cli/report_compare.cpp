// `shmemctl report diff|check|merge`: compares, checks and merges existing reports.
#include "cli/report_compare.h"

#include <future>
#include <iostream>

#include "cli/report_deadline.h"
#include "cli/session.h"
#include "reports/compare/compare.h"
#include "reports/compare/merge.h"
#include "reports/compare/thresholds.h"
#include "src/base/atomic_file.h"
#include "src/base/input.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr const char* threshold_help =
    "A threshold is CASE[PARAMETER=VALUE,...].METRIC>=NUMBER, also with <=, > and <:\n"
    "  put[bytes=1M].bandwidth_GBps>=300     'moe-*[phase=total].p50_us<=200'\n"
    "Every matching row must meet it; a threshold that matches no row is an error (exit code 2).\n";

/// --require and --require-file.
struct ThresholdFlags {
  std::vector<std::string> expressions, files;

  bool empty() const { return expressions.empty() && files.empty(); }

  std::vector<Threshold> parse(const Context& context) const {
    ReportDeadline deadline(context);
    std::vector<Threshold> thresholds;
    for (const std::string& expression : expressions)
      thresholds.push_back(parse_threshold(expression, "--require"));
    for (const std::string& file : files) {
      deadline.reading(file);
      for (Threshold& threshold : parse_threshold_file(read_input(file), file))
        thresholds.push_back(std::move(threshold));
    }
    return thresholds;
  }
};

std::shared_ptr<ThresholdFlags> add_threshold_flags(CLI::App& command) {
  auto flags = std::make_shared<ThresholdFlags>();
  command
      .add_option("--require", flags->expressions,
                  "A threshold that matching rows must meet; may be repeated")
      ->type_name("THRESHOLD")
      ->allow_extra_args(false);
  command
      .add_option("--require-file", flags->files,
                  "A file with one threshold per line; # starts a comment")
      ->type_name("FILE")
      ->allow_extra_args(false);
  return flags;
}

/// "5%" or "0.05".
double share_of(const std::string& flag, const std::string& text) {
  const bool percent = !text.empty() && text.back() == '%';
  const auto number = parse_number(percent ? text.substr(0, text.size() - 1) : text);
  const double share = number.value_or(-1) / (percent ? 100 : 1);
  if (!(share >= 0 && share < 1))
    throw input_error(flag, "", "\"" + text + "\" is not a fraction", "write it as 5% or 0.05");
  return share;
}

void hold(const std::vector<Threshold>& thresholds, const std::vector<LoadedReport>& reports,
          Report& report) {
  std::vector<ThresholdOutcome> outcomes;
  for (const Threshold& threshold : thresholds)
    outcomes.push_back(hold_against(threshold, reports));
  report.thresholds = thresholds_json(outcomes);
  for (Finding& finding : threshold_findings(outcomes))
    report.findings.push_back(std::move(finding));
}

struct DiffFlags {
  std::string base, other, min_effect = "5%", alpha = "5%";
  bool allow_missing = false;
};

ExitCode diff(Context& context, const DiffFlags& flags, const ThresholdFlags& threshold_flags) {
  const std::vector<Threshold> thresholds = threshold_flags.parse(context);
  const CompareOptions wanted{share_of("--alpha", flags.alpha),
                              share_of("--min-effect", flags.min_effect)};
  if (wanted.alpha == 0)
    throw input_error("--alpha", "", "a significance level of 0 can never be reached",
                      "pass a value such as 5% or 0.05");
  if (flags.base == "-" && flags.other == "-")
    throw input_error("BASE and NEW", "", "both read from stdin",
                      "pass a file name for one of them");
  return with_session(context, [&](Session& session, const Options&) {
    session.phase("reading " + flags.base + " and " + flags.other);
    // Files are read in parallel; errors of BASE are reported first, whichever is read first.
    auto reading = std::async(std::launch::async, [&] { return load_reports({flags.base}); });
    std::optional<std::vector<LoadedReport>> other;
    std::exception_ptr problem;
    try {
      other = load_reports({flags.other});
    } catch (const Error&) {
      problem = std::current_exception();
    }
    const std::vector<LoadedReport> base = reading.get();
    if (problem)
      std::rethrow_exception(problem);
    session.phase("comparing");
    const Comparison comparison = compare_reports(base, *other, wanted);
    Report& report = session.report();
    report.comparison = comparison_json(comparison);
    for (Finding& finding : comparison_findings(comparison, flags.allow_missing))
      report.findings.push_back(std::move(finding));
    hold(thresholds, *other, report);
    return session.finish();
  });
}

ExitCode check(Context& context, const std::vector<std::string>& paths,
               const ThresholdFlags& flags) {
  if (flags.empty())
    throw Error(ExitCode::usage, "report check", "", "no threshold given",
                "pass --require THRESHOLD or --require-file FILE");
  const std::vector<Threshold> thresholds = flags.parse(context);
  return with_session(context, [&](Session& session, const Options&) {
    session.phase("reading " + paths.front());
    const std::vector<LoadedReport> reports = load_reports(paths);
    session.phase("checking thresholds");
    hold(thresholds, reports, session.report());
    return session.finish();
  });
}

ExitCode merge(const Context& context, const std::vector<std::string>& paths) {
  const std::string target = context.json_path.empty() ? "-" : context.json_path;
  if (target != "-")
    check_output_path(target, context.force);
  ReportDeadline deadline(context);
  deadline.phase("reading " + paths.front() + (paths.size() > 1 ? ", ..." : ""));
  const std::vector<LoadedReport> reports = load_reports(paths);
  deadline.phase("merging");
  const std::string text = to_text(to_json(merge_reports(reports)));
  deadline.phase("writing " + target);
  write_file_atomically(target, text, context.force);
  return ExitCode::ok;
}

} // namespace

void add_report_diff(CLI::App& report, Context& context) {
  CLI::App* command = report.add_subcommand(
      "diff", "Compare reports with earlier ones; exit 1 if a row is worse or missing");
  command->footer(
      "Rows match by case and parameters. A row is better or worse if its change exceeds both the\n"
      "noise and --min-effect, the same if the change is significantly smaller than --min-effect,\n"
      "else unclear. With one run on each side only the noise within a run is known; with folders\n"
      "of three or more runs also the noise between runs.\n" +
      std::string(threshold_help) +
      "Example: shmemctl report diff baseline/ new.json --require 'put[bytes=1M].p50_us<40'");
  auto flags = std::make_shared<DiffFlags>();
  command->add_option("BASE", flags->base, "A report, a merged report, or a folder of reports")
      ->required();
  command->add_option("NEW", flags->other, "The report or folder to compare with BASE; - is stdin")
      ->required();
  command
      ->add_option("--min-effect", flags->min_effect, "Changes below this count as no change [5%]")
      ->type_name("FRACTION");
  command
      ->add_option("--alpha", flags->alpha, "False-alarm probability over all rows together [5%]")
      ->type_name("FRACTION");
  command->add_flag("--allow-missing", flags->allow_missing,
                    "Rows of BASE that are missing in NEW do not count as failures");
  const auto thresholds = add_threshold_flags(*command);
  command->callback([&context, flags, thresholds] {
    context.run = [=](Context& run_context) { return diff(run_context, *flags, *thresholds); };
  });
}

void add_report_check(CLI::App& report, Context& context) {
  CLI::App* command =
      report.add_subcommand("check", "Check reports against thresholds; exit 1 if one is not met");
  command->footer(threshold_help);
  auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("files", *paths, "Reports, or folders of reports; - is stdin")->required();
  const auto thresholds = add_threshold_flags(*command);
  command->callback([&context, paths, thresholds] {
    context.run = [=](Context& run_context) { return check(run_context, *paths, *thresholds); };
  });
}

void add_report_merge(CLI::App& report, Context& context) {
  CLI::App* command =
      report.add_subcommand("merge", "Merge the reports of several nodes or runs into one");
  command->footer("Writes to --json FILE, default stdout. Each row names its run.\n"
                  "Example: shmemctl report merge node*.json --json all.json");
  auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("files", *paths, "Reports, or folders of reports; - is stdin")->required();
  command->callback([&context, paths] {
    context.run = [=](Context& run_context) { return merge(run_context, *paths); };
  });
}

} // namespace shmemctl
