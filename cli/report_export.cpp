// `shmemctl report csv|junit|prom|annotate|html`: converts reports to other formats.
#include <functional>
#include <iostream>

#include "cli/report_compare.h"
#include "cli/report_deadline.h"
#include "reports/annotate/annotate.h"
#include "reports/compare/load.h"
#include "reports/csv.h"
#include "reports/html/page_model.h"
#include "reports/junit.h"
#include "reports/prometheus.h"
#include "reports/report_file.h"
#include "src/base/atomic_file.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using Writer = std::function<std::string(const Report&)>;

/// Writes the result of `make` to `output`, within --timeout.
/// @param what its name, for the message of a deadline that passes: "the page"
/// @param read its input
template <class Read, class Make>
ExitCode convert(const Context& context, const std::vector<std::string>& paths,
                 const std::string& output, const char* what, const Read& read, const Make& make) {
  if (output != "-")
    check_output_path(output, context.force);
  ReportDeadline deadline(context);
  deadline.phase("reading " + paths.front() + (paths.size() > 1 ? ", ..." : ""));
  auto input = read();
  deadline.phase(std::string("making ") + what + " of " + paths.front());
  const std::string text = make(std::move(input));
  deadline.phase("writing " + output);
  write_file_atomically(output, text, context.force);
  return ExitCode::ok;
}

std::shared_ptr<std::string> add_output_flag(CLI::App& command) {
  auto output = std::make_shared<std::string>("-");
  command.add_option("-o,--output", *output, "Write to this file, atomically [stdout]")
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

/// "check=nightly"
std::pair<std::string, std::string> parse_label(const std::string& text) {
  const std::size_t sign = text.find('=');
  const std::string name = text.substr(0, sign);
  if (sign == std::string::npos || !is_prometheus_label(name))
    throw input_error("--label", "",
                      "\"" + printable(text) + "\" is not a label: " +
                          (sign == std::string::npos ? "no = in it" : "invalid name"),
                      "write it as suite=nightly, with a name of letters, digits and _");
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
  command->add_option("--label", *words, "A label for every series; may be repeated")
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
      "The page is self-contained and fetches nothing. Of several reports it omits those\n"
      "that a newer one supersedes or that are part of the baseline, and shows the\n"
      "trend of each row over all of them.\n"
      "Examples:\n"
      "  shmemctl report html runs/*.json -o page.html\n"
      "  shmemctl report html nights today.json --baseline nights -o page.html");
  auto flags = std::make_shared<PageFlags>();
  command->add_option("files", flags->paths, "Reports, or folders of reports; - is stdin")
      ->required();
  command
      ->add_option("--baseline", flags->baseline,
                   "Earlier reports to plot and compare with: a report, or a folder of reports")
      ->type_name("FILE|DIR");
  command->add_option("-o,--output", flags->output, "Write to this file, atomically [stdout]")
      ->type_name("FILE");
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) { return write_page(run_context, *flags); };
  });
}

} // namespace

void add_report_formats(CLI::App& report, Context& context) {
  add_format(report, context, "csv", "Convert a report's rows to CSV",
             "Writes the first of these that the report has: comparison, results, ports of\n"
             "hotspots, checks, mapping, findings.",
             write_csv);
  add_format(report, context, "junit", "Convert a report to JUnit XML for CI systems",
             "Whatever makes the report's exit code 1 is a failure in the JUnit output.\n"
             "Example: shmemctl report junit diff.json -o diff.xml",
             write_junit);
  add_prom(report, context);
  add_annotate(report, context);
  add_html(report, context);
}

} // namespace shmemctl
