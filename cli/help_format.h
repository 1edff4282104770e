#pragma once

// How --help and the reference name the values of options: "SECONDS", "{ht,ll}", "N".

#include <CLI/CLI.hpp>

#include <string>

namespace shmemctl {

/// The name of an option's value, without its range: "SECONDS", "{pair,pairs,matrix}" for a fixed
/// set, "N" or "NUMBER" if the option names none; "" for a switch, and for a positional argument
/// without a name of its own.
std::string value_name(const CLI::Option& option);

/// "1 to 65536"; "" if the option has no range.
std::string value_range(const CLI::Option& option);

/// Makes --help of `app` and of the subcommands that are added later use value_name(). The parser's
/// own format shows the types of its implementation: "TEXT:{ht,ll}", "N:INT in [1 - 65536]".
void set_help_format(CLI::App& app);

} // namespace shmemctl
