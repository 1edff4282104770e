// `shmemctl report`: show, validate, compare, merge and convert reports.
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <future>
#include <iostream>
#include <string>

#include "cli/context.h"
#include "cli/host_comparison.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "reports/annotate/annotate.h"
#include "reports/compare/compare.h"
#include "reports/compare/host_differences.h"
#include "reports/compare/load.h"
#include "reports/compare/merge.h"
#include "reports/compare/thresholds.h"
#include "reports/csv.h"
#include "reports/html/page_model.h"
#include "reports/junit.h"
#include "reports/prometheus.h"
#include "reports/report_file.h"
#include "reports/text.h"
#include "src/base/atomic_file.h"
#include "src/base/error.h"
#include "src/base/finding.h"
#include "src/base/input.h"
#include "src/base/text.h"
#include "src/base/watchdog.h"

namespace shmemctl {

namespace {

/// Applies --timeout while it exists: when that time has passed, prints a line about the current
/// phase and ends the process with exit code 124, whatever its other threads wait for (a pipe
/// without a writer, a file system that hangs).
class ReportDeadline {
public:
  explicit ReportDeadline(const Context& context);
  /// A phrase that fits "phase ...: cannot finish": "reading a.json". Shown if the phase takes
  /// longer than a second, as a page of hundreds of nodes does.
  void phase(const std::string& words) {
    watchdog_.phase(words);
    progress_.say(words);
  }
  void reading(const std::string& path) { phase("reading " + (path == "-" ? "stdin" : path)); }
  /// Begins to read these files. The message of the deadline names the first of them.
  void reading(const std::vector<std::string>& paths) {
    reading(paths.front() + (paths.size() > 1 ? ", ..." : ""));
  }

private:
  InputLimit no_limit_{0}; ///< none for reading: if that takes too long, the watchdog reports it
  Progress progress_;
  Watchdog watchdog_;
};

ReportDeadline::ReportDeadline(const Context& context)
    : progress_(context),
      watchdog_(std::chrono::duration<double>(context.options().number("TIMEOUT")),
                [seconds = context.options().number("TIMEOUT")](const std::string& phase) {
                  print_error(Error(
                      ExitCode::deadline, "phase " + phase, "finish",
                      fmt::format("timed out after {:g} s, the limit of the whole run", seconds),
                      "pass a longer --timeout SECONDS, or check what this phase is waiting for"));
                  std::_Exit(static_cast<int>(ExitCode::deadline));
                }) {}

// `shmemctl report diff|check|merge`: compares, checks and merges existing reports.

constexpr const char* threshold_help =
    "A threshold is CASE[PARAMETER=VALUE,...].METRIC>=NUMBER, also with <=, > and <:\n"
    "  put[bytes=1M].bandwidth_GBps>=300     'moe-*[phase=total].p50_us<=200'\n"
    "Every matching row must meet it; a threshold that matches no row is an error (exit code 2).\n"
    "Thresholds can also be set for NIC loads, findings and checks:\n"
    "  hotspots[device=mlx5_1].utilisation<=0.7     hotspots[kind=node].imbalance<=1.5\n"
    "  findings[severity=error]==0     findings[id=nic-*]==0     checks[status=warning]<=2\n";

/// --fail-on on the command line also applies to the findings in the reports: none may have its
/// severity or a higher one.
std::vector<Threshold> of_severities(const Context& context) {
  const auto given = context.command_line.find("FAIL_ON");
  const std::optional<Severity> least =
      given == context.command_line.end() ? std::nullopt : parse_severity(lower(given->second));
  std::vector<Threshold> thresholds;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::info})
    if (least && severity >= *least)
      thresholds.push_back(parse_threshold(
          std::string("findings[severity=") + to_string(severity) + "]==0", "--fail-on"));
  return thresholds;
}

/// --require and --require-file.
struct ThresholdFlags {
  std::vector<std::string> expressions, files;

  bool empty() const { return expressions.empty() && files.empty(); }

  std::vector<Threshold> parse(const Context& context) const {
    ReportDeadline deadline(context);
    std::vector<Threshold> thresholds = of_severities(context);
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
                  "Threshold that every selected row must meet, such as put[bytes=1M].p50_us<40; "
                  "may be repeated")
      ->type_name("THRESHOLD")
      ->allow_extra_args(false);
  command
      .add_option("--require-file", flags->files,
                  "File of such thresholds, one per line; # starts a comment; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  return flags;
}

/// Parses "5%" or "0.05".
double share_of(const std::string& flag, const std::string& text, bool all_is_legal = false) {
  const bool percent = !text.empty() && text.back() == '%';
  const auto number = parse_number(percent ? text.substr(0, text.size() - 1) : text);
  const double share = number.value_or(-1) / (percent ? 100 : 1);
  if (!(share >= 0 && (share < 1 || (all_is_legal && share == 1))))
    throw input_error(flag, "",
                      "\"" + text + "\" is not a fraction from 0 to " +
                          (all_is_legal ? "1" : "below 1"),
                      "write it as 5% or 0.05");
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
  std::string base, other, min_effect = "5%", alpha = "5%", max_unclear;
  std::vector<std::string> more; ///< reports after the second one, with `nodes`
  bool allow_missing = false;
  bool nodes = false; ///< whether to compare the hosts of all reports with one another
};

ExitCode diff_nodes(Context& context, const DiffFlags& flags,
                    const ThresholdFlags& threshold_flags) {
  const std::vector<Threshold> thresholds = threshold_flags.parse(context);
  std::vector<std::string> paths = flags.more;
  paths.insert(paths.begin(), {flags.base, flags.other});
  std::erase(paths, "");
  if (paths.empty())
    throw Error(ExitCode::usage, "--nodes", "", "no report given",
                "write shmemctl report diff --nodes A.json B.json ...");
  return with_session(context, [&](Session& session, const Options&) {
    session.phase("reading " + paths.front() + (paths.size() > 1 ? ", ..." : ""));
    const std::vector<LoadedReport> reports = load_reports(paths);
    session.phase("comparing hosts");
    std::vector<HostFacts> hosts;
    std::vector<std::string> places;
    for (const LoadedReport& loaded : reports) {
      const std::vector<HostFacts> own = facts_of(loaded.report);
      if (own.empty())
        throw input_error(loaded.path, "", "the report does not describe its hosts",
                          "write it again on that node: shmemctl doctor --json FILE");
      hosts.insert(hosts.end(), own.begin(), own.end());
      places.insert(places.end(), own.size(), loaded.path);
    }
    if (hosts.size() < 2)
      throw input_error(paths.front(), "",
                        "this one report describes one host only, but --nodes compares two or more",
                        "pass the reports of the other nodes as well; to compare this machine with "
                        "it, run shmemctl doctor --against FILE");
    HostComparison().judge(std::move(hosts), places, session.report());
    hold(thresholds, reports, session.report());
    return session.finish();
  });
}

ExitCode diff(Context& context, const DiffFlags& flags, const ThresholdFlags& threshold_flags) {
  if (flags.nodes)
    return diff_nodes(context, flags, threshold_flags);
  if (!flags.more.empty())
    throw Error(
        ExitCode::usage, "shmemctl report diff", "",
        "unexpected argument " + printable(flags.more.front()),
        "pass one BASE and one NEW, each a report or a folder; to compare nodes, add --nodes");
  const std::vector<Threshold> thresholds = threshold_flags.parse(context);
  CompareOptions wanted{share_of("--alpha", flags.alpha),
                        share_of("--min-effect", flags.min_effect)};
  if (!flags.max_unclear.empty())
    wanted.max_unclear = share_of("--max-unclear", flags.max_unclear, true);
  if (wanted.alpha == 0)
    throw input_error("--alpha", "",
                      "with a significance level of 0, no difference is ever significant",
                      "pass a value such as 5% or 0.05");
  if (flags.base == "-" && flags.other == "-")
    throw input_error("BASE and NEW", "", "both read from stdin",
                      "pass a file name for one of them");
  return with_session(context, [&](Session& session, const Options&) {
    session.phase("reading " + flags.base + " and " + flags.other);
    // Files are read in parallel; errors of BASE are reported first, whichever file is read first.
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
  const std::vector<Threshold> thresholds = flags.parse(context);
  if (thresholds.empty())
    throw Error(ExitCode::usage, "report check", "", "no threshold given",
                "pass --require THRESHOLD, --require-file FILE or --fail-on SEVERITY");
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
  deadline.reading(paths);
  const std::vector<LoadedReport> reports = load_reports(paths);
  deadline.phase("merging");
  const std::string text = to_text(to_json(merge_reports(reports)));
  deadline.phase("writing " + target);
  write_file_atomically(target, text, context.force);
  return ExitCode::ok;
}

void add_report_diff(CLI::App& report, Context& context) {
  CLI::App* command = report.add_subcommand(
      "diff", "Compare reports with earlier ones; exit 1 if a row is worse or missing");
  command->footer(
      "Rows match by case and parameters. A row is better or worse if its change exceeds both the\n"
      "noise and --min-effect, or if it failed on one side only; the same if the change is\n"
      "significantly smaller than --min-effect; else unclear. With one run on each side only the\n"
      "noise within a run is known; with three or more runs together also that between runs.\n"
      "With --nodes not rows are compared but hosts, with one another: versions, firmware,\n"
      "limits, settings, GPUs, NICs and their links, of any number of reports; exit 0 unless "
      "--fail-on\n"
      "says otherwise, because what differs is a warning.\n" +
      std::string(threshold_help) +
      "Examples:\n"
      "  shmemctl report diff baseline/ new.json --require 'put[bytes=1M].p50_us<40'\n"
      "  shmemctl report diff --nodes node*.json --fail-on warning");
  auto flags = std::make_shared<DiffFlags>();
  CLI::Option* const base =
      command->add_option("BASE", flags->base, "A report, a merged report, or a folder of reports")
          ->required();
  CLI::Option* const other =
      command
          ->add_option("NEW", flags->other, "The report or folder to compare with BASE; - is stdin")
          ->required();
  command->add_option("MORE", flags->more, "More reports, only with --nodes");
  command->add_flag_callback(
      "--nodes",
      [flags, base, other] {
        flags->nodes = true;
        for (CLI::Option* const each : {base, other})
          each->required(false); // one report may contain several hosts
      },
      "Compare hosts instead of rows: all hosts of these reports, which should be alike. Takes "
      "reports of `topo`, `doctor`, `check` or of a job, of which one is enough if it has several "
      "hosts");
  command
      ->add_option("--min-effect", flags->min_effect,
                   "Changes up to this make no row better or worse: 5% (default) or 0.05; from 0 "
                   "to below 100%")
      ->type_name("FRACTION");
  command
      ->add_option("--alpha", flags->alpha,
                   "Probability that noise alone makes any row of the comparison better or worse "
                   "(default 5%; above 0 and below 100%)")
      ->type_name("FRACTION");
  command
      ->add_option("--max-unclear", flags->max_unclear,
                   "Exit 1 if more than this share of the rows that both have is unclear, 0 to "
                   "100% (default: any share passes)")
      ->type_name("FRACTION");
  command->add_flag("--allow-missing", flags->allow_missing,
                    "Rows of BASE that are missing from NEW do not count as failures");
  const auto thresholds = add_threshold_flags(*command);
  command->callback([&context, flags, thresholds] {
    context.run = [=](Context& run_context) { return diff(run_context, *flags, *thresholds); };
  });
}

void add_report_check(CLI::App& report, Context& context) {
  CLI::App* command =
      report.add_subcommand("check", "Check reports against thresholds; exit 1 if one is not met");
  command->footer(std::string(threshold_help) +
                  "One of --require, --require-file and --fail-on is needed. --fail-on warning is\n"
                  "short for findings[severity=error]==0 and findings[severity=warning]==0.\n"
                  "Example: shmemctl report check hotspots.json --require "
                  "'hotspots.utilisation<=0.8' --fail-on warning");
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
  command->footer("Writes the merged report to --json FILE, or to stdout. In it, `run` of each row "
                  "is the\nindex of the run that it is from.\n"
                  "Example: shmemctl report merge node*.json --json all.json");
  auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("files", *paths, "Reports, or folders of reports; - is stdin")->required();
  command->callback([&context, paths] {
    context.run = [=](Context& run_context) { return merge(run_context, *paths); };
  });
}

// `shmemctl report csv|junit|prom|annotate|html`: converts reports to other formats.

using Writer = std::function<std::string(const Report&)>;

/// Writes the result of `make` to `output`, within --timeout.
/// @param what its name, for the message of a deadline that passes: "the page"
/// @param read reads the input, which is passed to `make`
template <class Read, class Make>
ExitCode convert(const Context& context, const std::vector<std::string>& paths,
                 const std::string& output, const char* what, const Read& read, const Make& make) {
  if (output != "-")
    check_output_path(output, context.force);
  ReportDeadline deadline(context);
  deadline.reading(paths);
  auto input = read();
  deadline.phase(std::string("making ") + what + " of " + paths.front());
  const std::string text = make(std::move(input));
  deadline.phase("writing " + output);
  write_file_atomically(output, text, context.force);
  return ExitCode::ok;
}

std::shared_ptr<std::string> add_output_flag(CLI::App& command) {
  auto output = std::make_shared<std::string>("-");
  command.add_option("-o,--output", *output, "Write to this file, atomically (default: stdout)")
      ->type_name("FILE");
  return output;
}

CLI::App* add_format(CLI::App& report, Context& context, const std::string& name,
                     const std::string& description, const std::string& footer,
                     const Writer& writer) {
  CLI::App* command = report.add_subcommand(name, description);
  command->footer(footer);
  auto path = std::make_shared<std::string>();
  command->add_option("file", *path, "The report; - is stdin")->required();
  const auto output = add_output_flag(*command);
  command->callback([&context, path, output, writer] {
    context.run = [=](Context& run_context) {
      return convert(
          run_context, {*path}, *output, "another format", [&] { return read_report(*path); },
          writer);
    };
  });
  return command;
}

/// Parses "check=nightly".
std::pair<std::string, std::string> parse_label(const std::string& text) {
  const std::size_t sign = text.find('=');
  const std::string name = text.substr(0, sign);
  if (sign == std::string::npos || !is_prometheus_label(name))
    throw input_error("--label", "",
                      "\"" + printable(text) + "\" is not a label: " +
                          (sign == std::string::npos ? "no = in it" : "invalid name"),
                      "write it as suite=nightly; the name has letters, digits and _, and begins "
                      "with neither a digit nor __");
  return {name, text.substr(sign + 1)};
}

void add_prom(CLI::App& report, Context& context) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = add_format(
      report, context, "prom", "Convert a report to metrics for Prometheus' textfile collector",
      "The file is written atomically; --force replaces an existing one. If the collector's\n"
      "folder has several reports, give each its own --label: the collector rejects the\n"
      "same series from two files.\n"
      "Example: shmemctl report prom r.json --force -o "
      "/var/lib/prometheus/node-exporter/shmemctl.prom",
      [words](const Report& read) {
        PrometheusLabels labels;
        for (const std::string& word : *words)
          labels.push_back(parse_label(word));
        return write_prometheus(read, labels);
      });
  command->add_option("--label", *words, "Label that every metric gets; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void add_annotate(CLI::App& report, Context& context) {
  CLI::App* command = report.add_subcommand(
      "annotate", "Convert findings and regressions to annotations for GitHub and GitLab");
  command->footer(
      "github: workflow commands on stdout. gitlab: JSON of a code quality report. markdown: a\n"
      "job summary. Reports written by `report diff` are accepted as well.\n"
      "Examples:\n"
      "  shmemctl report annotate --format github check.json diff.json\n"
      "  shmemctl report annotate --format markdown check.json >> \"$GITHUB_STEP_SUMMARY\"\n"
      "  shmemctl report annotate --format gitlab check.json -o gl-code-quality-report.json");
  auto paths = std::make_shared<std::vector<std::string>>();
  auto format = std::make_shared<std::string>();
  command->add_option("files", *paths, "Reports, or folders of reports; - is stdin")->required();
  command->add_option("--format", *format, "Output format")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"github", "gitlab", "markdown"}))
      ->required();
  const auto output = add_output_flag(*command);
  command->callback([&context, paths, format, output] {
    context.run = [=](Context& run_context) {
      const AnnotationFormat kind = parse_annotation_format(*format).value();
      return convert(
          run_context, *paths, *output, "annotations", [&] { return load_reports(*paths); },
          [kind](const std::vector<LoadedReport>& reports) {
            return write_annotations(reports, kind);
          });
    };
  });
}

struct PageFlags {
  std::vector<std::string> paths;
  std::string baseline, output = "-";
};

ExitCode write_page(const Context& context, const PageFlags& flags) {
  return convert(
      context, flags.paths, flags.output, "a page",
      [&] {
        html::PageInput input{load_reports(flags.paths), {}};
        if (!flags.baseline.empty())
          input.baseline = load_reports({flags.baseline});
        return input;
      },
      [](html::PageInput input) { return html::write_html(html::page_model(std::move(input))); });
}

void add_html(CLI::App& report, Context& context) {
  CLI::App* command = report.add_subcommand(
      "html", "Convert reports to one HTML page: findings, topology, heat maps, charts, trends");
  command->footer(
      "The page is self-contained and fetches nothing. Of several reports of one "
      "command line\non the same hosts it shows the newest; the older ones appear in the "
      "trend of each row.\n"
      "Examples:\n"
      "  shmemctl report html runs/*.json -o page.html\n"
      "  shmemctl report html nights today.json --baseline nights -o page.html");
  auto flags = std::make_shared<PageFlags>();
  command->add_option("files", flags->paths, "Reports, or folders of reports; - is stdin")
      ->required();
  command
      ->add_option("--baseline", flags->baseline,
                   "Earlier reports to compare the others with: a report, or a folder of reports; "
                   "trends have them only if they are among the files, too")
      ->type_name("FILE|DIR");
  command
      ->add_option("-o,--output", flags->output, "Write to this file, atomically (default: stdout)")
      ->type_name("FILE");
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) { return write_page(run_context, *flags); };
  });
}

void add_report_formats(CLI::App& report, Context& context) {
  add_format(report, context, "csv", "Convert a report's rows to CSV",
             "Writes one table, the first of these that the report has: comparison, results, ports "
             "of\nhotspots, checks, mapping, findings.",
             write_csv);
  add_format(report, context, "junit", "Convert a report to JUnit XML for CI systems",
             "Rows, checks, ports, comparisons, thresholds and findings (infos with --fail-on\n"
             "info) are tests. Reasons for exit code 1 fail, and so does an incomplete report.\n"
             "Example: shmemctl report junit diff.json -o diff.xml",
             write_junit);
  add_prom(report, context);
  add_annotate(report, context);
  add_html(report, context);
}

// show and validate

struct ShowFlags {
  std::string path, format = "text";
  int width = 0;
};

ExitCode show(Context& context, const ShowFlags& flags) {
  const std::string& path = flags.path;
  const Options options = context.options();
  TextStyle style = text_style(context, options);
  if (flags.width > 0)
    style.width = flags.width;
  style.heat_maps = true;
  ReportDeadline deadline(context);
  deadline.reading(path);
  const Report report = read_report(path);
  deadline.phase("printing " + path);
  if (flags.format == "markdown")
    std::cout << write_markdown_page({path, report});
  else
    write_text(std::cout, report, style);
  std::cout.flush();
  return ExitCode::ok;
}

ExitCode validate(const Context& context, const std::vector<std::string>& paths) {
  ExitCode code = ExitCode::ok;
  ReportDeadline deadline(context);
  for (const std::string& path : paths) {
    deadline.reading(path);
    const auto violations = validate_report_text(read_input(path, max_report_bytes), path);
    for (const SchemaViolation& violation : violations)
      std::cout << printable(path) << ": " << printable(violation.pointer) << ": "
                << printable(violation.message, 500) << '\n';
    if (!violations.empty())
      code = ExitCode::finding;
    else if (!context.quiet)
      std::cout << printable(path) << ": valid\n";
  }
  return code;
}

} // namespace

void add_report(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("report", "Show, validate, compare, merge and convert reports");
  command->require_subcommand(1);
  auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* show_command = command->add_subcommand("show", "Print a report as text");
  auto flags = std::make_shared<ShowFlags>();
  show_command->add_option("file", flags->path, "The report; - is stdin")->required();
  show_command
      ->add_option("--format", flags->format,
                   "text (default), or markdown: verdict, findings and tables, for an issue or a "
                   "wiki")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "markdown"}));
  show_command
      ->add_option("--width", flags->width,
                   "Wrap lines and heat maps at this width; tables are not wrapped (default: the "
                   "terminal's width; without a terminal, only heat maps are wrapped, at 80)")
      ->check(CLI::Range(20, 10000))
      ->type_name("COLUMNS");
  show_command->callback([&context, flags] {
    context.run = [=](Context& run_context) { return show(run_context, *flags); };
  });
  CLI::App* validate_command = command->add_subcommand(
      "validate", "Validate reports against the JSON Schema; exit 1 if one is invalid");
  validate_command->add_option("files", *paths, "The reports; - is stdin")->required();
  validate_command->callback([&context, paths] {
    context.run = [paths](Context& run_context) { return validate(run_context, *paths); };
  });
  add_report_diff(*command, context);
  add_report_check(*command, context);
  add_report_merge(*command, context);
  add_report_formats(*command, context);
  CLI::App* schema_command = command->add_subcommand("schema", "Print the JSON Schema of reports");
  schema_command->callback([&context] {
    context.run = [](Context&) {
      std::cout << report_schema_text();
      return ExitCode::ok;
    };
  });
}

} // namespace shmemctl
