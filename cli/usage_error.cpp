#include "cli/usage_error.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <unistd.h>
#include <utility>

#include "cli/help_format.h"
#include "cli/similar_names.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/bench/case_table.h"

namespace shmemctl {

namespace {

using Chain = std::vector<const CLI::App*>;

constexpr std::size_t longest_path = 300;

/// "shmemctl report show"
std::string command_of(const Chain& chain) {
  std::string command;
  for (const CLI::App* app : chain)
    command += (command.empty() ? "" : " ") + app->get_name();
  return command;
}

/// Whether the argument is an option, and not a negative number or the - for stdin.
bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && argument != "--" &&
         std::isdigit(static_cast<unsigned char>(argument[1])) == 0 && argument[1] != '.';
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string suggestion(const std::vector<std::string>& names) {
  return names.empty() ? "" : "did you mean " + either(names) + "? ";
}

/// The long flags of an option, else the short ones.
std::vector<std::string> suggested_flags(const CLI::Option& option) {
  std::vector<std::string> flags = flags_of(option);
  if (!option.get_lnames().empty())
    flags.erase(std::remove_if(flags.begin(), flags.end(),
                               [](const std::string& flag) { return !starts_with(flag, "--"); }),
                flags.end());
  return flags;
}

std::vector<std::string> suggested_flags(const Chain& chain) {
  std::vector<std::string> flags;
  for (const CLI::App* app : chain)
    for (const CLI::Option* option : app->get_options())
      for (std::string& flag : suggested_flags(*option))
        flags.push_back(std::move(flag));
  return flags;
}

struct Synonym {
  const char* word;
  const char* meant;
};

/// Words that users of other programs may take for the name of a subcommand.
constexpr Synonym subcommand_synonyms[] = {
    {"bandwidth", "bench"},  {"bw", "bench"},
    {"latency", "bench"},    {"lat", "bench"},
    {"perf", "bench"},       {"counters", "hotspots"},
    {"monitor", "hotspots"}, {"watch", "hotspots"},
    {"diagnose", "doctor"},  {"options", "env"},
    {"config", "env"},       {"launch", "run"},
    {"mpirun", "run"},       {"compare", "report diff"},
};

/// Words of perftest, nccl-tests and launchers, and abbreviations that no rule finds.
constexpr Synonym flag_synonyms[] = {
    {"bidirectional", "--bidir"},
    {"d", "--hca-list"},
    {"dev", "--hca-list"},
    {"device", "--hca-list"},
    {"file", "--from"},
    {"input", "--from"},
    {"iterations", "--iters"},
    {"no-color", "--color never"},
    {"no-colour", "--color never"},
    {"np", "--pes"},
    {"npes", "--pes"},
    {"nprocs", "--pes"},
    {"ntasks", "--pes"},
    {"o", "--json"},
    {"out", "--json"},
    {"output", "--json"},
    {"S", "--ib-sl"}, // unlike -s
    {"s", "--min-bytes"},
    {"silent", "--quiet"},
    {"size", "--min-bytes"},
    {"sl", "--ib-sl"},
    {"tclass", "--ib-traffic-class"},
    {"x", "--ib-gid-index"},
};

template <std::size_t N>
std::string synonym(const Synonym (&synonyms)[N], const std::string& word) {
  for (const Synonym& row : synonyms)
    if (word == row.word)
      return row.meant;
  return "";
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const bench::BenchCase& bench_case : bench::host_cases())
    names.push_back(bench_case.info.name);
  return names;
}

/// "report diff" of diff, "bench put" of put; "" if no subcommand takes that word first.
std::string subcommand_before(const CLI::App& root, const std::string& word) {
  for (const CLI::App* child : listed_subcommands(root))
    if (has(subcommand_names(*child), word))
      return child->get_name() + " " + word;
  return has(case_names(), word) ? "bench " + word : "";
}

UsageError unknown_subcommand(const Chain& chain, const std::string& argument) {
  const std::string command = command_of(chain);
  std::vector<std::string> meant;
  if (chain.size() == 1) {
    std::string other = synonym(subcommand_synonyms, lower(argument));
    if (other.empty())
      other = subcommand_before(*chain.front(), argument);
    if (!other.empty())
      meant.push_back(other);
  }
  if (meant.empty())
    meant = similar_names(argument, subcommand_names(*chain.back()));
  return {command + ": unknown subcommand " + printable(argument),
          suggestion(meant) + command + " --help lists all subcommands"};
}

/// The subcommands below `app` that take this flag.
std::vector<std::string> takers_of(const std::string& flag, const CLI::App& app,
                                   const std::string& path) {
  std::vector<std::string> takers;
  for (const CLI::App* child : listed_subcommands(app)) {
    const std::string name = (path.empty() ? "" : path + " ") + child->get_name();
    if (child->get_option_no_throw(flag) != nullptr)
      takers.push_back(name);
    for (std::string& taker : takers_of(flag, *child, name))
      takers.push_back(std::move(taker));
  }
  return takers;
}

std::string meant_flag(const Chain& chain, const std::string& flag) {
  const std::vector<std::string> flags = suggested_flags(chain);
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::string known = synonym(flag_synonyms, name);
  if (known.empty())
    known = synonym(flag_synonyms, lower(name));
  if (!known.empty() && has(flags, known.substr(0, known.find(' '))))
    return suggestion({known});
  std::vector<std::string> names;
  for (const std::string& each : flags)
    names.push_back(each.substr(each.find_first_not_of('-')));
  std::vector<std::string> meant = name.size() > 1 ? similar_names(name, names) : decltype(names)();
  for (std::string& each : meant)
    each.insert(0, "--");
  return suggestion(meant);
}

constexpr std::size_t max_takers = 4;

/// For an unknown option without a subcommand before it: the options of subcommands that may be
/// meant.
std::string meant_of_subcommand(const Chain& chain, const std::string& flag) {
  if (chain.size() > 1)
    return "";
  std::set<std::string> names;
  for (const CLI::App* child : listed_subcommands(*chain.front()))
    for (const std::string& each : suggested_flags(Chain{child}))
      if (starts_with(each, "--"))
        names.insert(each.substr(2));
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  const std::vector<std::string> meant = name.size() > 1
                                             ? similar_names(name, {names.begin(), names.end()})
                                             : std::vector<std::string>();
  if (meant.empty())
    return "";
  std::vector<std::string> takers = takers_of("--" + meant.front(), *chain.front(), "");
  takers.resize(std::min(takers.size(), max_takers));
  return "did you mean --" + meant.front() + ", of " + join(takers, ", ") +
         "? Write it after the subcommand; ";
}

UsageError unknown_option(const Chain& chain, const std::string& argument) {
  const std::string flag = argument.substr(0, argument.find('='));
  const std::string command = command_of(chain);
  const std::string list = command + " --help lists all options";
  if (chain.size() > 1 && chain.back()->get_option_no_throw(flag) != nullptr)
    return {chain.front()->get_name() + ": unknown option " + printable(flag),
            printable(flag) + " is an option of " + command + ": write it after " +
                chain.back()->get_name()};
  if (!chain.back()->get_fallthrough() && chain.size() > 1 &&
      chain.front()->get_option_no_throw(flag) != nullptr)
    return {command + ": unknown option " + printable(flag),
            "write it after the command or, unless it is --json, --csv or --config, before run"};
  std::vector<std::string> takers =
      flag.size() > 2 ? takers_of(flag, *chain.front(), "") : std::vector<std::string>();
  takers.resize(std::min(takers.size(), max_takers));
  const std::string elsewhere =
      takers.empty() ? "" : flag + " is an option of " + join(takers, ", ") + "; ";
  std::string meant = meant_flag(chain, flag);
  if (meant.empty() && elsewhere.empty())
    meant = meant_of_subcommand(chain, flag);
  return {command + ": unknown option " + printable(flag), meant + elsewhere + list};
}

/// The flag of a subcommand that takes this word as its value: "--policy optimal".
std::string flag_with_value(const Chain& chain, const std::string& word) {
  for (const CLI::Option* option : chain.back()->get_options())
    if (const auto values = value_set(*option); !is_positional(*option) && has(values, word))
      return suggested_flags(*option).front() + " " + word;
  return "";
}

UsageError unexpected_argument(const Chain& chain, const std::string& word) {
  const std::string command = command_of(chain);
  UsageError usage{command + ": unexpected argument " + printable(word, longest_path), ""};
  const std::vector<std::string> subcommands = subcommand_names(*chain.front());
  std::string meant = flag_with_value(chain, word);
  if (meant.empty() && has(suggested_flags(chain), "--" + lower(word)))
    meant = "--" + lower(word);
  if (meant.empty() && has(suggested_flags(chain), "--from") && ::access(word.c_str(), F_OK) == 0)
    meant = "--from " + printable(word, longest_path);
  if (word == "help")
    meant = "shmemctl help" + command.substr(command.find(' '));
  else if (has(subcommands, word)) {
    usage.fix = "one call takes one subcommand: omit " + printable(word) + ", or make two calls";
    return usage;
  }
  usage.fix = (meant.empty() ? "omit it; " : suggestion({meant})) + command + " --help shows " +
              "what it takes";
  return usage;
}

/// The value in a message like "--world: mars not in {node,deepep-ht}", "--iters: Value abc not in
/// range 1 to 8" or "--gpus: x is not ..."; "" if it says something else.
std::string refused_value(const std::string& message, const std::string& name) {
  std::size_t begin = name.size() + 2;
  if (message.compare(begin, 6, "Value ") == 0)
    begin += 6;
  for (const char* end : {" not in {", " not in range ", " is not "})
    if (const std::size_t at = message.rfind(end); at != std::string::npos && at >= begin)
      return message.substr(begin, at - begin);
  return "";
}

UsageError unknown_value(const std::string& name, const std::string& value,
                         const std::vector<std::string>& values) {
  std::vector<std::string> named;
  std::copy_if(values.begin(), values.end(), std::back_inserter(named),
               [](const std::string& text) { return !text.empty(); });
  return {name + ": unknown value " + printable(value),
          suggestion(similar_names(value, named)) + "use one of " + join(named, ", ")};
}

/// The parser does not accept "1e3", "1,000", "4K" or "10s" as a number, but these texts mean one.
std::optional<double> meant_number(std::string text, bool integer) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  if (const auto number = parse_number(text))
    return number;
  if (const auto size_bytes = parse_size_bytes(text); integer && size_bytes)
    return static_cast<double>(*size_bytes);
  for (const std::string_view unit : {"us", "ms", "s", "%"})
    if (ends_with(text, unit))
      if (const auto number = parse_number(text.substr(0, text.size() - unit.size())))
        return number;
  return std::nullopt;
}

/// Whether the text consists of digits, perhaps more than any integer type holds.
bool is_whole_number(const std::string& text) {
  const std::size_t first = starts_with(text, "-") ? 1 : 0;
  return text.size() > first && text.find_first_not_of("0123456789", first) == std::string::npos;
}

UsageError out_of_range(const std::string& name, const std::string& value,
                        const ValueRange& range) {
  const std::string kind = range.integer ? "an integer" : "a number";
  const std::string limits = range.least + " to " + range.most;
  const bool is_one = range.integer ? is_whole_number(value) : parse_number(value).has_value();
  const std::optional<double> meant = meant_number(value, range.integer);
  const double least = parse_number(range.least).value_or(0);
  const double greatest = parse_number(range.most).value_or(0);
  UsageError usage;
  usage.problem = name + ": " + printable(value) +
                  (is_one ? " is not in range " + limits : " is not " + kind + " from " + limits);
  if (!meant)
    usage.fix = "pass " + kind + " from " + limits;
  else if (*meant < least || *meant > greatest)
    usage.fix =
        "use the nearest legal value: " + name + " " + (*meant < least ? range.least : range.most);
  else
    usage.fix = "did you mean " + name + " " +
                (range.integer ? fmt::format("{:.0f}", *meant) : fmt::format("{:g}", *meant)) + "?";
  return usage;
}

/// "--from FILE", "--world {node,deepep-ht}"; "FILE" of an argument.
std::string example_of(const CLI::Option& option) {
  const std::vector<std::string> flags = suggested_flags(option);
  return flags.empty() ? argument_name(option) : flags.front() + " " + value_name(option);
}

/// What is wrong with the value of this option; empty if the message is about something else.
std::optional<UsageError> wrong_value(const CLI::Option& option, const CLI::ParseError& error,
                                      const std::string& help) {
  const std::string name = option.get_name();
  const std::string message = error.what();
  const std::vector<std::string> values = value_set(option);
  const bool not_converted = starts_with(message, "Could not convert: " + name + " = ");
  if (option.get_expected_min() == 0 &&
      (not_converted || starts_with(message, name + " was given a disallowed flag override") ||
       starts_with(message, name + ": too many inputs for a flag") ||
       starts_with(message, name + ": Should be true/false")))
    return UsageError{name + ": takes no value", "write " + name + " alone"};
  if (not_converted) {
    const std::string value = message.substr(message.find(" = ") + 3);
    return UsageError{name + ": " + printable(value) + " is not " + value_name(option),
                      "write " + example_of(option) + "; " + help};
  }
  if (!starts_with(message, name + ": "))
    return std::nullopt;
  if (error.get_name() == "ArgumentMismatch") {
    if (message.find(" required but received ") != std::string::npos && option.count() > 1)
      return UsageError{name + ": given " + std::to_string(option.count()) + " times",
                        "pass it once"};
    return UsageError{name + ": no value given",
                      values.empty() ? "write " + example_of(option)
                                     : "write " + name + " and one of " + join(values, ", ")};
  }
  const std::string value = refused_value(message, name);
  if (value.empty())
    return std::nullopt;
  if (!values.empty())
    return unknown_value(name, value, values);
  if (const std::optional<ValueRange> range = limits_of(option))
    return out_of_range(name, value, *range);
  return std::nullopt;
}

/// `run` requires its number of PEs before the command, and in its own spelling.
std::string fix_of_run(const std::vector<std::string>& rest, const std::string& otherwise) {
  if (rest.empty())
    return otherwise;
  if (parse_integer(rest.front()) && rest.size() > 1)
    return "did you mean shmemctl run -n " + join(rest, " ") + "?";
  const auto late = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
    return word == "-n" || word == "-np" || starts_with(word, "--pes");
  });
  return late == rest.end() ? otherwise
                            : "write -n before the command: shmemctl run -n N " + rest.front();
}

/// Whether the error is about mpirun's -np, which the parser takes for -n with the value p.
bool is_np(const std::string& message, const std::vector<std::string>& rest) {
  return starts_with(message, "--pes: Value p ") && !rest.empty() && parse_integer(rest.front());
}

/// " BASE NEW"
std::string required_arguments(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options())
    if (is_positional(*option) && option->get_required())
      text += " " + argument_name(*option);
  return text;
}

UsageError something_missing(const Chain& chain, const std::string& message,
                             const std::vector<std::string>& rest) {
  const std::string command = command_of(chain);
  if (chain.back()->get_require_subcommand_min() > 0 && starts_with(message, "A subcommand"))
    return {command + ": no subcommand given", "write one of " +
                                                   join(subcommand_names(*chain.back()), ", ") +
                                                   "; " + command + " --help says what they do"};
  for (const CLI::Option* option : chain.back()->get_options()) {
    if (message != option->get_name() + " is required")
      continue;
    if (command == "shmemctl run")
      return {command + ": no number of PEs given",
              fix_of_run(rest, "write " + command + " --pes N CMD ARGS...")};
    const bool is_flag = !is_positional(*option);
    return {command + ": no " + (is_flag ? option->get_name() : argument_name(*option)) + " given",
            "write " + command +
                (is_flag ? " " + example_of(*option) : required_arguments(*chain.back()))};
  }
  return {};
}

/// Two options that exclude each other: "--iters excludes --duration".
UsageError contradiction(const std::string& message) {
  const std::string word = " excludes ";
  const std::size_t at = message.find(word);
  const std::string first = message.substr(0, at), second = message.substr(at + word.size());
  return {first + " and " + second + ": cannot be given together",
          "omit " + first + " or " + second};
}

} // namespace

std::vector<const CLI::App*> recognised(const CLI::App& app) {
  Chain chain = {&app};
  for (auto parsed = app.get_subcommands(); !parsed.empty();
       parsed = chain.back()->get_subcommands())
    chain.push_back(parsed.front());
  return chain;
}

UsageError describe_value_error(const CLI::Option& option, const CLI::ParseError& error) {
  const std::string message = error.what();
  return wrong_value(option, error, "its --help says more")
      .value_or(UsageError{message.substr(0, message.find('\n')), "correct or omit it"});
}

bool names_unknown_subcommand(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining(true);
  return recognised(app).back()->get_require_subcommand_min() > 0 &&
         !std::all_of(rest.begin(), rest.end(), is_option);
}

UsageError describe_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const Chain chain = recognised(app);
  const std::string command = command_of(chain), message = error.what(), kind = error.get_name();
  const std::string help = command + " --help shows all options";
  const std::vector<std::string> rest = app.remaining(true);
  const auto argument = std::find_if_not(rest.begin(), rest.end(), is_option);
  // A word behind an unknown option may be the option's value.
  if (chain.back()->get_require_subcommand_min() > 0 && argument != rest.end() &&
      argument == rest.begin())
    return unknown_subcommand(chain, *argument);
  const bool runs = command == "shmemctl run"; // arguments unknown to `run` are the command's
  if (const auto flag = std::find_if(rest.begin(), rest.end(), is_option);
      flag != rest.end() && (!runs || flag == rest.begin()))
    return unknown_option(chain, *flag);
  for (const CLI::App* level : chain)
    for (const CLI::Option* option : level->get_options())
      if (const std::optional<UsageError> usage = wrong_value(*option, error, help))
        return runs && is_np(message, rest)
                   ? UsageError{command + ": unknown option -np", "did you mean -n? " + help}
                   : *usage;
  if (kind == "RequiredError")
    if (UsageError usage = something_missing(chain, message, rest); !usage.problem.empty())
      return usage;
  if (kind == "ExcludesError")
    return contradiction(message);
  if (argument != rest.end() && !runs)
    return unexpected_argument(chain, *argument);
  return {message.substr(0, message.find('\n')), help};
}

} // namespace shmemctl
