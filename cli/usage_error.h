// Explains what is wrong with a command line, and what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace shmemctl {

/// The two lines of a refusal, without their prefixes.
struct UsageError {
  std::string problem; ///< "shmemctl topo: unknown option --jsn"
  std::string fix;     ///< "did you mean --json? shmemctl topo --help lists all options"
};

/// Describes the error of a parse that failed. Unknown subcommands, options and values of a fixed
/// set get the nearest spelling, by edit distance (nearest_spelling()).
/// @param app the application whose parse() threw `error`; its state is that of the failed parse
UsageError describe_usage_error(const CLI::App& app, const CLI::ParseError& error);

} // namespace shmemctl
