// The command line: parse, run one subcommand, print an error as two lines, return the exit code.
#include <algorithm>
#include <iostream>

#include "cli/context.h"
#include "reports/report.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/timeout_words.h"

namespace shmemctl {

namespace {

std::string version_text() {
  const ToolInfo tool = tool_info();
  std::string text = "shmemctl " + tool.version + " (" +
                     (tool.git_revision.empty() ? "unknown revision" : tool.git_revision) +
                     (tool.git_dirty.value_or(false) ? ", modified" : "") + ")";
  for (const auto& [key, value] : tool.build)
    text.append("\n  ").append(key).append(": ").append(value);
  text += "\n  never run on real hardware: mlx5 InfiniBand, mlx5 RoCE, mlx5 DEVX (ibdevx, ibgda), "
          "GPUDirect RDMA, EFA, bytes that NVLinks count";
  return text;
}

void add_common_flags(CLI::App& app, Context& context) {
  app.add_option("--json", context.json_path, "Write the report to this file; - is stdout")
      ->type_name("FILE");
  app.add_option("--csv", context.csv_path, "Write its rows as CSV; - is stdout")
      ->type_name("FILE");
  app.add_flag("--quiet", context.quiet, "Print errors only");
  app.add_flag("--verbose", context.verbose, "Print evidence and details");
  app.add_flag("--no-progress", context.no_progress, "No progress on the terminal");
  app.add_flag("--force", context.force, "Overwrite files that exist");
  app.add_option("--config", context.config_path, "Read options from this file (name = value)")
      ->type_name("FILE");
  add_option(app, context, "COLOR");
  add_option(app, context, "TIMEOUT");
  add_option(app, context, "LOG_LEVEL");
  add_option(app, context, "LOG_SUBSYSTEMS");
}

int parse_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) // --help, --version
    return app.exit(error, std::cout, std::cerr);
  std::string what = error.what();
  if (const std::size_t end = what.find('\n'); end != std::string::npos)
    what.resize(end);
  std::cerr << "shmemctl: error: " << printable(what, 500) << '\n'
            << "shmemctl: fix: run shmemctl --help, or shmemctl SUBCOMMAND --help\n";
  return static_cast<int>(ExitCode::usage);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Does one-sided GPU communication work here, how fast is it, where is the hot spot?");
  app.name("shmemctl");
  app.set_version_flag("--version", version_text, "Print version, revision and build options");
  app.require_subcommand(1);
  app.fallthrough();
  app.option_defaults()->always_capture_default(false);
  Context context;
  context.argv.assign(argv, argv + argc);
  context.environment = current_environment();
  add_common_flags(app, context);
  for (const auto add : {add_check, add_topo, add_doctor, add_env, add_bringup, add_bench, add_moe,
                         add_sim, add_run, add_hotspots, add_report, add_completion})
    add(app, context);
  try {
    std::vector<std::string> words =
        without_separator(app, take_watched_command(app, context, {argv + 1, argv + argc}));
    std::reverse(words.begin(), words.end()); // as the parser takes them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return parse_error(app, error);
  }
  timeout_is_an_option();
  const Options options = context.options();
  options.require_valid({"COLOR", "TIMEOUT", "LOG_LEVEL"});
  LogLevel level = LogLevel::warning;
  parse_log_level(options.text("LOG_LEVEL"), level);
  configure_log(context.verbose ? std::max(level, LogLevel::info) : level,
                options.text("LOG_SUBSYSTEMS"));
  const ExitCode code = context.run(context);
  std::cout.flush();
  if (!std::cout)
    throw Error(ExitCode::unavailable, "stdout", "write", "the system refused the output",
                "free room, or send it somewhere else");
  return static_cast<int>(code);
}

} // namespace

} // namespace shmemctl

int main(int argc, char** argv) {
  try {
    return shmemctl::run(argc, argv);
  } catch (const shmemctl::Error& error) {
    shmemctl::print_error(error);
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "shmemctl: error: " << shmemctl::printable(error.what()) << '\n'
              << "shmemctl: fix: this is a bug of shmemctl: please report it with the command\n";
    return static_cast<int>(shmemctl::ExitCode::unavailable);
  }
}
