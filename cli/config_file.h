// Configuration files: options and flags of all subcommands, as `name = value`.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// One line of a configuration file.
struct ConfigEntry {
  std::string file;
  std::vector<std::string>
      section;      ///< {"report", "diff"} of [report.diff]; empty above all sections
  std::string name; ///< name as it is written
  std::vector<std::string> values; ///< {"true"} if the line is a name alone
};

/// What configuration files set in one run.
struct Configuration {
  /// Maps the name of an option ("HCA_LIST") to its text, and the name with "@" appended to the
  /// file that sets it, as Options takes them.
  std::map<std::string, std::string> options;
  std::vector<ConfigEntry> flags; ///< flags that are not options, and apply to this run
};

/// A process with this environment variable reads none of the default_config_files().
inline constexpr const char* reads_no_config_file = "SHMEMCTL_LOCAL_NO_CONFIG";

/// The files that are read without --config, if they exist, the more important one last:
/// /etc/shmemctl.conf and $XDG_CONFIG_HOME/shmemctl.conf (without that variable
/// ~/.config/shmemctl.conf). A copy of the program with set-user-id bits reads only the first,
/// because its caller chooses the other.
std::vector<std::string> default_config_files(const Environment& environment);

/// Reads lines `name = value` and `[section]`. Lines that begin with # or ; are comments, and so is
/// the text after a ; in a line. Throws Error (usage).
std::vector<ConfigEntry> read_config(const std::string& file);

/// Chooses what applies to a run, and passes flags to `app` as if they were on the command line. A
/// name is an option of the table, or a flag of the subcommand of its section; above all sections,
/// of any subcommand. The command line wins over all of them, a later entry over an earlier one, an
/// entry of a section over an entry above all sections of the same file.
/// @param entries of all files, the more important file last
/// @param parsed an application equal to `app` that has parsed the command line, which may have
/// failed
/// @param app has parsed nothing yet
/// Throws Error (usage) for a name that is neither an option nor a flag, naming the nearest one,
/// and for a bad value.
Configuration apply_config(const std::vector<ConfigEntry>& entries, const CLI::App& parsed,
                           CLI::App& app);

} // namespace shmemctl
