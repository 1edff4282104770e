// What every subcommand gets: the flags that all share, the options, and where output goes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/options.h"
#include "src/base/print_error.h"

namespace shmemctl {

/// The common flags and what was read from outside. Filled while the command line is parsed.
struct Context {
  std::vector<std::string> argv;
  Environment environment;
  std::map<std::string, std::string> command_line; ///< option name -> text, of flags given
  std::string json_path, csv_path, config_path;
  bool quiet = false, verbose = false, no_progress = false, force = false;
  std::vector<std::string> watched_command; ///< what stands behind `hotspots --during`
  bool watches_itself = false;              ///< its first word is a subcommand of this program
  /// %h stood in their names: each host of a job writes files of its own.
  bool json_by_host = false, csv_by_host = false;
  /// So far the run has looked at its command line alone, which all processes of a job share.
  mutable bool same_in_job = false;
  /// This process is a PE that has entered its bootstrap: share_error() is for errors before it.
  bool reached_bootstrap = false;
  /// The subcommand that was chosen runs as a job over the runtime (with_job).
  bool runs_as_job = false;
  std::function<ExitCode(Context&)> run; ///< set by the subcommand that was chosen

  /// Command line, environment and --config put together.
  Options options() const;
};

/// The file of this very program, also if it has been replaced since it was started.
std::string own_program();
/// The environment with the options of the command line in it, for PEs that this program starts;
/// --timeout is the caller's own.
Environment job_environment(const Context& context);

/// Adds `--<name>` for a row of the option table; its text lands in context.command_line.
CLI::Option* add_option(CLI::App& app, Context& context, const std::string& name,
                        const std::string& flag = "");

/// One function per subcommand, in the file of its name.
void add_topo(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_env(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
/// The words of a command line without the `--` that may stand between `run`'s options and its
/// command: the parser would take what follows for the main program's.
std::vector<std::string> without_separator(const CLI::App& app, std::vector<std::string> words);
void add_bringup(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_moe(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_reference(CLI::App& app, Context& context);
void add_hotspots(CLI::App& app, Context& context);
void add_sim(CLI::App& app, Context& context);
/// The words without those behind `hotspots --during`, which go to context.watched_command.
std::vector<std::string> take_watched_command(const CLI::App& app, Context& context,
                                              std::vector<std::string> words);

} // namespace shmemctl
