// `shmemctl help` and `shmemctl version`, which print what --help and --version print.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/help_format.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Prints the help of calls that with_help_as_flag() leaves alone: `shmemctl --json FILE help
/// topo`.
ExitCode print_help(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    at = find_subcommand(*at, word);
    if (at == nullptr)
      throw Error(ExitCode::usage, "help", "", "unknown subcommand " + printable(word),
                  "run shmemctl --help, which lists all subcommands");
  }
  std::cout << at->get_formatter()->make_help(at, "", CLI::AppFormatMode::Normal);
  return ExitCode::ok;
}

} // namespace

void add_help(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("help", "Print the help of a subcommand, as its --help does");
  command->footer("Examples:\n"
                  "  shmemctl help\n"
                  "  shmemctl help report diff");
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("subcommand", *words, "The subcommand; without one, help lists all");
  command->callback([&app, &context, words] {
    context.run = [&app, words](Context&) { return print_help(app, *words); };
  });
}

void add_version(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("version", "Print version, revision and build options, as --version does");
  command->callback([&app, &context] {
    context.run = [&app](Context&) {
      std::cout << app.version() << '\n';
      return ExitCode::ok;
    };
  });
}

std::vector<std::string> with_help_as_flag(std::vector<std::string> words) {
  const auto word = std::find_if(words.begin(), words.end(), [](const std::string& each) {
    return !starts_with(each, "-") || each == "-";
  });
  if (word == words.end() || (*word != "help" && *word != "version"))
    return words;
  const bool help = *word == "help";
  const bool asked_of_itself = std::any_of(word + 1, words.end(), [](const std::string& each) {
    return each == "-h" || each == "--help";
  });
  if (asked_of_itself || (!help && word + 1 != words.end()))
    return words;
  words.erase(word);
  words.emplace_back(help ? "--help" : "--version");
  return words;
}

} // namespace shmemctl
