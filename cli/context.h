// Shared by all subcommands: common flags, options, and where output goes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/config_file.h"
#include "reports/report.h"
#include "src/base/error.h"
#include "src/base/options.h"

namespace shmemctl {

/// The common flags and external input. Filled while the command line is parsed.
struct Context {
  std::vector<std::string> argv;
  Environment environment;
  std::map<std::string, std::string>
      command_line;                      ///< option name -> text, for the flags that were given
  Configuration config;                  ///< what configuration files set
  std::vector<std::string> config_files; ///< the files that were read, the more important one last
  std::string json_path, csv_path, config_path;
  bool quiet = false, verbose = false, no_progress = false, force = false;
  std::vector<std::string> watched_command; ///< the command of `hotspots --during`
  bool watches_itself = false;              ///< the command is a subcommand of this program
  /// Whether json_path or csv_path contained %h: then topo, doctor and check write a file per host.
  bool json_by_host = false, csv_by_host = false;
  /// The run has only used its command line so far, which all processes of a job share.
  mutable bool same_in_job = false;
  /// This process is a PE that has entered its bootstrap: share_error() is for errors before it.
  bool reached_bootstrap = false;
  /// Set if the chosen subcommand itself shows what is wrong with the environment.
  bool shows_environment = false;
  /// The subcommand that was chosen runs as a job over the runtime (with_job).
  bool runs_as_job = false;
  std::function<ExitCode(Context&)> run; ///< set by the subcommand that was chosen

  /// Command line, environment and configuration files combined.
  Options options() const;
};

/// The file of this program, even if it has been replaced since it was started.
std::string own_program();
/// The environment including the options of the command line, for PEs that this program starts;
/// --timeout only applies to this process.
Environment job_environment(const Context& context);
/// As job_environment(), for a whole command that is a part of `check`: it gets the options of
/// configuration files too, and reads no configuration file itself, since the flags in the files
/// are for the user's own calls.
Environment part_environment(const Context& context);

/// Adds `--<name>` for a row of the option table; its text is stored in context.command_line.
CLI::Option* add_option(CLI::App& app, Context& context, const std::string& name,
                        const std::string& flag = "");

/// One function per subcommand, in the file of its name.
void add_topo(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_env(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
/// The command line without the `--` between `run`'s options and its command: with it, the parser
/// would assign what follows to the main program.
std::vector<std::string> without_separator(const CLI::App& app, std::vector<std::string> words);
/// Throws Error (usage) if there is no such program to run; if the name is similar to that of a
/// subcommand, the message suggests the subcommand.
void require_program(const CLI::App& app, const std::string& name, const Environment& environment);
void add_bringup(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_moe(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_help(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);
/// "help report diff" -> "report diff --help", "version" -> "--version".
std::vector<std::string> with_help_as_flag(std::vector<std::string> words);
void add_reference(CLI::App& app, Context& context);
void add_hotspots(CLI::App& app, Context& context);
void add_sim(CLI::App& app, Context& context);
void add_fabric(CLI::App& app, Context& context);
void add_inspect(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_gather(CLI::App& app, Context& context);
/// The command line without the command of `hotspots --during`, which is moved to
/// context.watched_command. A --watch of `hotspots` without a number gets 1 s.
std::vector<std::string> take_watched_command(const CLI::App& app, Context& context,
                                              std::vector<std::string> words);

} // namespace shmemctl
