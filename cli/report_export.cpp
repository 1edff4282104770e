// `shmemctl report csv|junit|prom|html`: reports in formats that other programs read.
#include <iostream>

#include "cli/report_compare.h"
#include "reports/compare/load.h"
#include "reports/csv.h"
#include "reports/html/page_model.h"
#include "reports/html/write_html.h"
#include "reports/junit.h"
#include "reports/prometheus.h"
#include "src/base/atomic_file.h"
#include "src/base/input.h"

namespace shmemctl {

namespace {

using Writer = std::string (*)(const Report&);

void add_format(CLI::App& report, Context& context, const std::string& name,
                const std::string& description, const std::string& footer, Writer writer) {
  CLI::App* command = report.add_subcommand(name, description);
  command->footer(footer);
  auto path = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>("-");
  command->add_option("file", *path, "The report; - is stdin")->required();
  command->add_option("-o,--output", *output, "Write to this file, whole or not at all [stdout]")
      ->type_name("FILE");
  command->callback([&context, path, output, writer] {
    context.run = [=](Context& run_context) {
      if (*output != "-")
        check_output_path(*output, run_context.force);
      const Report read = report_from_json(parse_json(read_input(*path), *path), *path);
      write_file_atomically(*output, writer(read), run_context.force);
      return ExitCode::ok;
    };
  });
}

struct PageFlags {
  std::vector<std::string> paths;
  std::string baseline, output = "-";
};

ExitCode write_page(const Context& context, const PageFlags& flags) {
  if (flags.output != "-")
    check_output_path(flags.output, context.force);
  html::PageInput input{load_reports(flags.paths), {}};
  if (!flags.baseline.empty())
    input.baseline = load_reports({flags.baseline});
  write_file_atomically(flags.output, html::write_html(html::page_model(std::move(input))),
                        context.force);
  return ExitCode::ok;
}

void add_html(CLI::App& report, Context& context) {
  CLI::App* command = report.add_subcommand(
      "html", "Reports as one page for a browser: findings, topology, heat maps, charts, trend");
  command->footer("The page needs nothing beside it and fetches nothing. Of several reports it "
                  "shows the newest\n"
                  "of each command on each set of hosts, and how rows moved over all.\n"
                  "Example: shmemctl report html runs/*.json --baseline good.json -o page.html");
  auto flags = std::make_shared<PageFlags>();
  command->add_option("files", flags->paths, "Reports, or folders of reports; - is stdin")
      ->required();
  command
      ->add_option("--baseline", flags->baseline,
                   "Earlier reports to draw and compare with: a report, or a folder of them")
      ->type_name("FILE|DIR");
  command
      ->add_option("-o,--output", flags->output, "Write to this file, whole or not at all [stdout]")
      ->type_name("FILE");
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) { return write_page(run_context, *flags); };
  });
}

} // namespace

void add_report_formats(CLI::App& report, Context& context) {
  add_format(report, context, "csv", "A report's rows as CSV",
             "A comparison's rows, else results, else checks, else the mapping, else findings.",
             write_csv);
  add_format(report, context, "junit", "A report as JUnit XML, for CI systems",
             "What makes the report's exit code 1 is a failure there.\n"
             "Example: shmemctl report junit diff.json -o diff.xml",
             write_junit);
  add_format(report, context, "prom", "A report as metrics for Prometheus' textfile collector",
             "The file appears at once; --force replaces the one of the run before.\n"
             "Example: shmemctl report prom r.json --force -o "
             "/var/lib/prometheus/node-exporter/shmemctl.prom",
             write_prometheus);
  add_html(report, context);
}

} // namespace shmemctl
