#pragma once

// The subcommands and options of the parser as --help, the reference, errors and completion name
// them, and the values of options: "SECONDS", "{ht,ll}".

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace shmemctl {

/// The subcommands that help lists.
std::vector<const CLI::App*> listed_subcommands(const CLI::App& app);
/// Names of all subcommands.
std::vector<std::string> subcommand_names(const CLI::App& app);
/// All subcommands, also those that help does not list.
std::vector<const CLI::App*> all_subcommands(const CLI::App& app);
/// The subcommand, whether help lists it or not; null if there is none with this name.
const CLI::App* find_subcommand(const CLI::App& app, const std::string& name);

/// The option's flags with their dashes, short ones first; empty for a positional argument.
std::vector<std::string> flags_of(const CLI::Option& option);
/// Whether the option is a positional argument.
bool is_positional(const CLI::Option& option);

/// The name of an option's value, without its range: "SECONDS", "{pair,pairs,matrix}" for a fixed
/// set, "N" or "NUMBER" if the option names none; "" for a switch, and for a positional argument
/// without a name of its own.
std::string value_name(const CLI::Option& option);

/// The name of a positional argument in upper case, with "..." if it may be repeated: "FILES...".
std::string argument_name(const CLI::Option& option);

/// The values that the option takes, if they are a fixed set.
std::vector<std::string> value_set(const CLI::Option& option);

struct ValueRange {
  std::string least, most; ///< limits as help shows them
  bool integer = false;
};
/// The range of the option's values, from the parser's check or from the option table.
std::optional<ValueRange> limits_of(const CLI::Option& option);

/// The option's description, and what else the parser knows: the options that it excludes, whether
/// it is required, and, with `with_range`, its range.
std::string option_text(const CLI::Option& option, bool with_range);

/// "shmemctl report diff [OPTIONS] BASE NEW"
/// @param command_name "shmemctl report diff"
std::string synopsis_of(const CLI::App& app, const std::string& command_name);

/// Sets the format of --help for `app` and the subcommands that are added later: options by group,
/// the common options last, wrapped at `width` columns. The parser's own format shows the types of
/// its implementation ("TEXT:{ht,ll}", "N:INT in [1 - 65536]") and wraps nothing.
/// @param width columns; at least 50
void set_help_format(CLI::App& app, int width);

/// Assigns the options and subcommands of the complete application to the groups of --help.
void set_help_groups(CLI::App& app);

} // namespace shmemctl
