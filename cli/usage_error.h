// Explains what is wrong with a command line, and what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace shmemctl {

/// The two lines of a refusal, without their prefixes.
struct UsageError {
  std::string problem; ///< "shmemctl topo: unknown option --jsn"
  std::string fix;     ///< "did you mean --json? shmemctl topo --help lists all options"
};

/// The application and the subcommands that were recognised, outermost first.
/// @param app the application after parsing, which may have failed
std::vector<const CLI::App*> recognised(const CLI::App& app);

/// Describes why a value of this option was refused, wherever it came from.
UsageError describe_value_error(const CLI::Option& option, const CLI::ParseError& error);

/// Whether a word is in the place of a subcommand and is not one.
/// @param app the application whose parse() threw
bool names_unknown_subcommand(const CLI::App& app);

/// Describes the error of a parse that failed: the cause, and the nearest call that is right. What
/// is unknown gets the names that were probably meant (similar_names()).
/// @param app the application whose parse() threw `error`; its state is that of the failed parse
UsageError describe_usage_error(const CLI::App& app, const CLI::ParseError& error);

} // namespace shmemctl
