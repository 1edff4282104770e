#include "cli/usage_error.h"

#include <algorithm>
#include <cctype>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// The application and the subcommands that were recognised, outermost first.
std::vector<const CLI::App*> recognised(const CLI::App& app) {
  std::vector<const CLI::App*> chain = {&app};
  for (auto parsed = app.get_subcommands(); !parsed.empty();
       parsed = chain.back()->get_subcommands())
    chain.push_back(parsed.front());
  return chain;
}

/// "shmemctl report show"
std::string command_of(const std::vector<const CLI::App*>& chain) {
  std::string command;
  for (const CLI::App* app : chain)
    command += (command.empty() ? "" : " ") + app->get_name();
  return command;
}

/// An option, but not a negative number or the - for stdin.
bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && argument != "--" &&
         std::isdigit(static_cast<unsigned char>(argument[1])) == 0 && argument[1] != '.';
}

std::vector<std::string> names_of_subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(child->get_name());
  return names;
}

UsageError unknown_subcommand(const std::vector<const CLI::App*>& chain,
                              const std::string& argument) {
  const std::string command = command_of(chain);
  return {command + ": unknown subcommand " + printable(argument),
          did_you_mean(argument, names_of_subcommands(*chain.back())) + command +
              " --help lists all subcommands"};
}

UsageError unknown_option(const std::vector<const CLI::App*>& chain, const std::string& argument) {
  const std::string flag = argument.substr(0, argument.find('='));
  std::vector<std::string> flags;
  for (const CLI::App* app : chain)
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames())
        flags.push_back("--" + name);
  // Also handles a single dash before a long name: the distance is that of the names.
  const std::string long_flag =
      "--" + flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  const std::string command = command_of(chain);
  return {command + ": unknown option " + printable(flag),
          (long_flag.size() > 3 ? did_you_mean(long_flag, flags) : "") + command +
              " --help lists all options"};
}

/// The values that an option takes, if they are a fixed set: help shows them as {a,b,c}.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return {};
  return split(std::string_view(type).substr(begin + 1, end - begin - 1), ',');
}

/// Of a message "--world: mars not in {node,deepep-ht}" or "--world: mars is not one of ...".
std::string refused_value(const std::string& message, const std::string& name) {
  const std::size_t begin = name.size() + 2;
  for (const char* end : {" not in {", " is not one of "})
    if (const std::size_t at = message.rfind(end); at != std::string::npos && at >= begin)
      return message.substr(begin, at - begin);
  return "";
}

/// Empty texts unless the error is a value that is not in an option's set.
UsageError unknown_value(const std::vector<const CLI::App*>& chain, const std::string& message) {
  for (const CLI::App* app : chain)
    for (const CLI::Option* option : app->get_options()) {
      const std::string name = option->get_name();
      if (!starts_with(message, name + ": "))
        continue;
      const std::vector<std::string> values = values_of(*option);
      const std::string value = refused_value(message, name);
      if (values.empty() || value.empty())
        continue;
      return {name + ": unknown value " + printable(value),
              did_you_mean(value, values) + "use one of " + join(values, ", ")};
    }
  return {};
}

} // namespace

UsageError describe_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> chain = recognised(app);
  const std::vector<std::string> rest = app.remaining(true);
  const auto argument = std::find_if_not(rest.begin(), rest.end(), is_option);
  if (chain.back()->get_require_subcommand_min() > 0 && argument != rest.end())
    return unknown_subcommand(chain, *argument);
  if (const auto flag = std::find_if(rest.begin(), rest.end(), is_option); flag != rest.end())
    return unknown_option(chain, *flag);
  const std::string message = error.what();
  if (UsageError usage = unknown_value(chain, message); !usage.problem.empty())
    return usage;
  return {message.substr(0, message.find('\n')), "run " + command_of(chain) + " --help"};
}

} // namespace shmemctl
