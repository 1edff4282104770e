// What can be inserted at the cursor of a command line, for completion scripts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace shmemctl {

/// One word that can be inserted at the cursor.
struct Candidate {
  std::string word;
  std::string description; ///< short; may be empty
};

/// What the shell itself completes in addition.
enum class ShellWords { none, files, directories, commands };

struct Candidates {
  std::vector<Candidate> words; ///< the words that begin with what is typed
  ShellWords besides = ShellWords::none;
};

/// @param words the words after the program's name, not quoted; the last one is the part of the
///        word at the cursor that is before the cursor, and may be empty
Candidates complete(const CLI::App& app, const std::vector<std::string>& words);

/// Prints the result of complete() for the scripts: "words", "files", "directories" or "commands"
/// in the first line, then a line "WORD<tab>DESCRIPTION" for each word.
void print_candidates(const CLI::App& app, const std::vector<std::string>& words);

/// The first argument with which the scripts call this program. It is no subcommand.
inline constexpr const char* completion_request = "__complete";

} // namespace shmemctl
