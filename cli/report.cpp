// `shmemctl report`: show, validate, compare, merge and convert reports.
#include <iostream>

#include "cli/report_compare.h"
#include "cli/report_deadline.h"
#include "cli/session.h"
#include "reports/report_file.h"
#include "reports/text.h"
#include "src/base/input.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

ExitCode show(Context& context, const std::string& path, int width) {
  const Options options = context.options();
  TextStyle style = text_style(context, options);
  if (width > 0)
    style.width = width;
  style.heat_maps = true;
  ReportDeadline deadline(context);
  deadline.reading(path);
  const Report report = read_report(path);
  deadline.phase("printing " + path);
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
  auto path = std::make_shared<std::string>();
  auto width = std::make_shared<int>(0);
  show_command->add_option("file", *path, "The report; - is stdin")->required();
  show_command
      ->add_option("--width", *width,
                   "Wrap lines and heat maps at this width; tables are not wrapped (default: the "
                   "terminal's width; without a terminal, only heat maps are wrapped, at 80)")
      ->check(CLI::Range(20, 10000))
      ->type_name("COLUMNS");
  show_command->callback([&context, path, width] {
    context.run = [=](Context& run_context) { return show(run_context, *path, *width); };
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
