// The command line: parse, run one subcommand, print an error as two lines, return the exit code.
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include "cli/complete.h"
#include "cli/context.h"
#include "cli/help_format.h"
#include "cli/job_session.h"
#include "cli/terminal.h"
#include "cli/usage_error.h"
#include "reports/report.h"
#include "src/base/deadline.h"
#include "src/base/describe_env.h"
#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/log.h"
#include "src/base/secure_execution.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/runtime/bootstrap/launcher_variables.h"
#include "src/runtime/bootstrap/select.h"

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
          "GPUDirect RDMA, EFA";
  return text;
}

/// Whether the words are `--version --json`, in either order. This --json names no file, since
/// there is no report.
bool wants_version_as_json(std::vector<std::string> words) {
  std::replace(words.begin(), words.end(), std::string("--json=-"), std::string("--json"));
  const auto json = std::find(words.begin(), words.end(), "--json");
  if (json == words.end())
    return false;
  const auto next = words.erase(json);
  if (next != words.end() && *next == "-")
    words.erase(next);
  return words.size() == 1 &&
         (words[0] == "--version" || words[0] == "-V" || words[0] == "version");
}

std::string version_json() {
  nlohmann::json object = to_json(tool_info());
  object["report_schema"] = report_schema_version;
  return object.dump(1);
}

void add_common_flags(CLI::App& app, Context& context) {
  app.add_option("--json", context.json_path,
                 "Write the report as JSON; - is stdout, %h expands to the host name")
      ->type_name("FILE");
  app.add_option("--csv", context.csv_path,
                 "Write the main table as CSV (comparison, results, ports, checks, mapping or "
                 "findings); - is stdout, %h expands to the host name")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", context.quiet, "Print only errors, and what makes the exit code 1");
  app.add_flag(
      "-v,--verbose", context.verbose,
      "Print more: evidence of checks, each finding by itself, all rows and details of tables, "
      "and log messages of level info");
  app.add_flag("--no-progress", context.no_progress, "Do not show progress on the terminal");
  app.add_flag("--force", context.force,
               "Overwrite files that exist; without it, such a file ends the run before it starts");
  app.add_option("--config", context.config_path,
                 "Read options and flags from this file, lines of NAME = VALUE, instead of "
                 "/etc/shmemctl.conf and $XDG_CONFIG_HOME/shmemctl.conf")
      ->type_name("FILE");
  add_option(app, context, "COLOR");
  add_option(app, context, "TIMEOUT");
  add_option(app, context, "FAIL_ON");
  add_option(app, context, "LOG_LEVEL");
  add_option(app, context, "LOG_SUBSYSTEMS");
}

/// Whether rank 0 prints an error in the command line, which all processes of a job have in common,
/// so that this process does not have to. `run` prints only one of them. Other launchers may end
/// the job when its first process fails: this process waits for that, because otherwise rank 0
/// might be ended before it has printed anything. A process that is not ended within two seconds
/// prints the error itself, except under launchers that do not end the other processes.
bool rank_0_prints_it(const Context& context) {
  constexpr int patience_ms = 2000;
  const std::string launcher = launcher_name(context.environment);
  if (launcher == "none" || launcher == "run" ||
      launched_rank(context.environment).value_or(0) == 0)
    return false;
  ::poll(nullptr, 0, patience_ms);
  return launcher == "srun" || launcher == "hydra" || launcher == "pmi";
}

int parse_error(const CLI::App& app, const CLI::ParseError& error, const Context& context) {
  const bool is_help = error.get_exit_code() == 0; // --help, --version
  if (is_help && !names_unknown_subcommand(app))
    return app.exit(error, std::cout, std::cerr);
  if (rank_0_prints_it(context))
    return static_cast<int>(ExitCode::usage);
  const UsageError usage = describe_usage_error(app, error);
  std::cerr << "shmemctl: error: " << printable(usage.problem, 500) << '\n'
            << "shmemctl: fix: " << printable(usage.fix, 1000) << '\n';
  return static_cast<int>(ExitCode::usage);
}

/// "a.%h.json" -> "a.node7.json"; true if there was one.
bool put_host(std::string& path) {
  const std::size_t first = path.find("%h");
  if (first == std::string::npos)
    return false;
  std::string host(256, '\0');
  host.resize(::gethostname(host.data(), host.size() - 1) == 0 ? host.find('\0') : 0);
  std::replace(host.begin(), host.end(), '/', '_'); // a name may contain any character
  for (std::size_t at = first; at != std::string::npos; at = path.find("%h", at + host.size()))
    path.replace(at, 2, host.empty() ? "localhost" : host);
  return true;
}

/// The limit, by --timeout, for reading files, including configuration files.
double input_limit_s(const Context& context) {
  const Options options(context.environment, context.command_line);
  const double seconds = options.number("TIMEOUT");
  // an invalid value is rejected later, by the command line's parser
  return options.value("TIMEOUT").problem.empty() ? seconds : 0;
}

void warn_of_ignored_variables(const Environment& environment) {
  const std::vector<std::string> ignored = drop_code_variables(environment);
  if (!ignored.empty())
    log(LogLevel::warning, "options",
        join(ignored, ", ") + (ignored.size() == 1 ? " is" : " are") +
            " ignored: this file has set-user-id bits or capabilities, so its caller may not "
            "choose "
            "the code that it runs");
}

/// Prints the warnings once per job: `run` and `hotspots --during` warn before they start other
/// processes; under other launchers, rank 0 warns. `env` reports them as findings.
void warn_of_unknown_variables(const Context& context) {
  const Environment& environment = context.environment;
  if (context.quiet || context.shows_environment || launcher_name(environment) == "run" ||
      environment.count("SHMEMCTL_DURING_ID") != 0 || launched_rank(environment).value_or(0) != 0)
    return;
  for (const Finding& finding : unknown_variables(environment))
    log(LogLevel::warning, "options", finding.message + "; " + finding.fix);
}

int run_command(Context& context) {
  const InputLimit limit(input_limit_s(context));
  const Options options = context.options();
  options.require_valid({"COLOR", "TIMEOUT", "LOG_LEVEL", "FAIL_ON"});
  LogLevel level = LogLevel::warning;
  parse_log_level(options.text("LOG_LEVEL"), level);
  configure_log(context.verbose ? std::max(level, LogLevel::info) : level,
                options.text("LOG_SUBSYSTEMS"));
  warn_of_ignored_variables(context.environment);
  warn_of_unknown_variables(context);
  for (const ConfigEntry& entry : context.config.flags)
    log(LogLevel::info, "options", entry.file + " sets --" + entry.name);
  context.same_in_job = !input_was_read();
  return static_cast<int>(context.run(context));
}

/// Lets every flag that takes seconds take a duration with a unit, too: "20s", "500ms", "5m", "2h".
/// The range checks and the stored value are in seconds.
void accept_durations(CLI::App& app) {
  for (CLI::Option* const option : app.get_options())
    if (starts_with(option->get_type_name(), "SECONDS"))
      option->transform([](const std::string& text) {
        const std::optional<double> seconds =
            parse_number(text) ? std::nullopt : parse_duration_s(text);
        return seconds ? fmt::format("{:.15g}", *seconds) : text;
      });
  for (CLI::App* const child : app.get_subcommands([](const CLI::App*) { return true; }))
    accept_durations(*child);
}

void build(CLI::App& app, Context& context) {
  app.name("shmemctl");
  set_help_format(app, help_width(context.environment));
  app.set_version_flag("-V,--version", version_text,
                       "Print version, revision and build options; with --json, as JSON");
  app.require_subcommand(1);
  app.fallthrough();
  app.option_defaults()->always_capture_default(false);
  add_common_flags(app, context);
  for (const auto add :
       {add_check, add_topo, add_doctor, add_env, add_bringup, add_bench, add_moe, add_sim, add_run,
        add_hotspots, add_fabric, add_inspect, add_gather, add_explain, add_report, add_help,
        add_version, add_completion, add_reference})
    add(app, context);
  // Set last, because new subcommands inherit the footer.
  app.footer("shmemctl help SUBCOMMAND shows the options of a subcommand, with examples.");
  accept_durations(app);
  set_help_groups(app);
}

/// The words for the parser, in the order of the command line.
std::vector<std::string> parser_words(const CLI::App& app, Context& context) {
  return without_separator(
      app, take_watched_command(app, context,
                                with_help_as_flag({context.argv.begin() + 1, context.argv.end()})));
}

void parse(CLI::App& app, Context& context) {
  std::vector<std::string> words = parser_words(app, context);
  std::reverse(words.begin(), words.end()); // the parser expects the reverse order
  app.parse(std::move(words));
}

/// Reads the configuration files. Which subcommand they are read for, and which flags they may set,
/// is known only when the command line has been parsed; a second parser does that.
void configure(CLI::App& app, Context& context) {
  context.config_files = default_config_files(context.environment);
  const bool is_given =
      std::any_of(context.argv.begin(), context.argv.end(),
                  [](const std::string& word) { return starts_with(word, "--config"); });
  if (context.config_files.empty() && !is_given)
    return;
  CLI::App parsed(app.get_description());
  Context parsed_context;
  parsed_context.argv = context.argv;
  parsed_context.environment = context.environment;
  build(parsed, parsed_context);
  try {
    parse(parsed, parsed_context);
  } catch (const CLI::RequiredError&) { // a configuration file may have the missing option
  } catch (const CLI::ParseError&) {    // help, or an error in the command line, comes first
    return;
  }
  if (!parsed_context.config_path.empty())
    context.config_files = {parsed_context.config_path};
  const InputLimit limit(input_limit_s(parsed_context));
  std::vector<ConfigEntry> entries;
  for (const std::string& file : context.config_files)
    for (ConfigEntry& entry : read_config(file))
      entries.push_back(std::move(entry));
  context.config = apply_config(entries, parsed, app);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Tells whether one-sided GPU communication works, how fast it is, and where the hot spot is");
  Context context;
  context.argv.assign(argv, argv + argc);
  if (context.argv.empty()) // execve() allows that
    context.argv.emplace_back("shmemctl");
  context.environment = current_environment();
  build(app, context);
  if (argc > 1 && argv[1] == std::string(completion_request)) {
    print_candidates(app, {argv + 2, argv + argc});
    return static_cast<int>(ExitCode::ok);
  }
  if (wants_version_as_json({context.argv.begin() + 1, context.argv.end()})) {
    std::cout << version_json() << '\n';
    require_stdout();
    return static_cast<int>(ExitCode::ok);
  }
  timeout_is_an_option();
  std::optional<Error> bad_config;
  try {
    configure(app, context);
  } catch (const Error& error) {
    bad_config = error;
  }
  try {
    parse(app, context);
  } catch (const CLI::ParseError& error) {
    if (bad_config) {
      print_error(*bad_config);
      return static_cast<int>(bad_config->code());
    }
    const int code = parse_error(app, error, context);
    require_stdout();
    return code;
  }
  for (const CLI::App* chosen : app.get_subcommands())
    context.runs_as_job = context.runs_as_job || chosen->get_name() == "bench" ||
                          chosen->get_name() == "bringup" || chosen->get_name() == "moe" ||
                          chosen->get_name() == "fabric";
  context.json_by_host = put_host(context.json_path);
  context.csv_by_host = put_host(context.csv_path);
  for (const std::string& file : {context.json_path, context.csv_path})
    if (!file.empty() && file != "-")
      outlive_reader_of_stdout();
  try {
    if (bad_config)
      throw Error(*bad_config);
    const int code = run_command(context);
    require_stdout();
    return code;
  } catch (const Error& error) {
    const bool by_argv_alone =
        error.code() == ExitCode::usage && context.same_in_job && !input_was_read();
    if (by_argv_alone ? !rank_0_prints_it(context) : !share_error(context, error))
      print_error(error);
    return static_cast<int>(error.code());
  }
}

} // namespace

} // namespace shmemctl

int main(int argc, char** argv) {
  shmemctl::hold_standard_descriptors();
  try {
    return shmemctl::run(argc, argv);
  } catch (const shmemctl::Error& error) {
    shmemctl::print_error(error);
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "shmemctl: error: " << shmemctl::printable(error.what()) << '\n'
              << "shmemctl: fix: report this as a bug in shmemctl, with the command line\n";
    return static_cast<int>(shmemctl::ExitCode::unavailable);
  }
}
