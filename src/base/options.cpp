#include "src/base/options.h"

#include <algorithm>
#include <stdexcept>

#include "src/base/error.h"
#include "src/base/option_secrets.h"
#include "src/base/remote_transport.h"
#include "src/base/secure_execution.h"
#include "src/base/text.h"
#include "src/base/units.h"

extern "C" char** environ; // NOLINT: POSIX's own name

namespace shmemctl {

namespace {

constexpr const char* true_words[] = {"1", "true", "yes", "on"};
constexpr const char* false_words[] = {"0", "false", "no", "off"};

template <std::size_t N>
bool among(const std::string& text, const char* const (&words)[N]) {
  return std::find(std::begin(words), std::end(words), lower(text)) != std::end(words);
}

bool nvshmem_boolean(const std::string& text) {
  return text.empty() || std::string_view("0nNfF").find(text[0]) == std::string_view::npos;
}

std::string range_of(const OptionSpec& spec) {
  std::string range;
  if (spec.minimum)
    range += " of at least " + std::to_string(*spec.minimum);
  if (spec.maximum)
    range += (spec.minimum ? " and at most " : " of at most ") + std::to_string(*spec.maximum);
  return range;
}

constexpr std::string_view remote_transport = "REMOTE_TRANSPORT";

/// The choice that `text` is, as the table spells it: case does not matter.
std::optional<std::string> chosen(const OptionSpec& spec, const std::string& text,
                                  OptionOrigin origin) {
  if (spec.name == remote_transport && origin == OptionOrigin::nvshmem_environment)
    return parse_remote_transport(text);
  for (const std::string& choice : spec.choices)
    if (lower(choice) == lower(text))
      return choice;
  return std::nullopt;
}

bool in_range(const OptionSpec& spec, double value) {
  return (!spec.minimum || value >= static_cast<double>(*spec.minimum)) &&
         (!spec.maximum || value <= static_cast<double>(*spec.maximum));
}

} // namespace

Environment current_environment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

const char* to_string(OptionType type) {
  switch (type) {
  case OptionType::boolean:
    return "boolean";
  case OptionType::integer:
    return "integer";
  case OptionType::size:
    return "size";
  case OptionType::number:
    return "number";
  case OptionType::text:
    return "text";
  case OptionType::choice:
    return "choice";
  }
  return "text";
}

const char* to_string(OptionOrigin origin) {
  switch (origin) {
  case OptionOrigin::default_value:
    return "default";
  case OptionOrigin::config_file:
    return "config";
  case OptionOrigin::nvshmem_environment:
    return "nvshmem";
  case OptionOrigin::environment:
    return "environment";
  case OptionOrigin::command_line:
    return "command line";
  }
  return "default";
}

const OptionSpec& option_spec(std::string_view name) {
  for (const OptionSpec& spec : option_table())
    if (spec.name == name)
      return spec;
  throw std::logic_error("no option " + std::string(name));
}

std::string option_problem(const OptionSpec& spec, const std::string& text, OptionOrigin origin) {
  switch (spec.type) {
  case OptionType::boolean:
    if (origin == OptionOrigin::nvshmem_environment || among(text, true_words) ||
        among(text, false_words))
      return "";
    return "not a boolean (1, true, yes, on, 0, false, no, off)";
  case OptionType::integer: {
    const std::optional<long long> value = parse_integer(trim(text));
    if (value && in_range(spec, static_cast<double>(*value)))
      return "";
    return "not an integer" + range_of(spec);
  }
  case OptionType::number: {
    const std::optional<double> value = parse_number(trim(text));
    if (value && in_range(spec, *value))
      return "";
    return "not a number" + range_of(spec);
  }
  case OptionType::size:
    return parse_size_bytes(text) ? "" : "not a size (8, 4K, 2M, 1G)";
  case OptionType::choice:
    // NVSHMEM accepts every value here; check_remote_transport() says what an unknown one does.
    if (chosen(spec, text, origin) ||
        (spec.name == remote_transport && origin == OptionOrigin::nvshmem_environment))
      return "";
    return "not one of " + join(spec.choices, ", ");
  case OptionType::text:
    return "";
  }
  return "";
}

Options::Options(const Environment& environment,
                 const std::map<std::string, std::string>& command_line,
                 const std::map<std::string, std::string>& config) {
  for (const OptionSpec& spec : option_table()) {
    OptionValue value{spec.default_value, OptionOrigin::default_value, "", ""};
    auto take = [&](const std::map<std::string, std::string>& from, const std::string& key,
                    OptionOrigin origin, const std::string& origin_name) {
      const auto found = from.find(key);
      if (found != from.end() && !(is_secure_execution() && chooses_code(spec.name)))
        value = {found->second, origin, origin_name, option_problem(spec, found->second, origin)};
      // In one spelling from here on, so that no reader of the value has to think of case.
      if (found != from.end() && spec.type == OptionType::choice)
        value.text = chosen(spec, value.text, origin).value_or(value.text);
    };
    take(config, spec.name, OptionOrigin::config_file, "--config");
    if (spec.nvshmem_alias)
      take(environment, "NVSHMEM_" + spec.name, OptionOrigin::nvshmem_environment,
           "NVSHMEM_" + spec.name);
    take(environment, "SHMEMCTL_" + spec.name, OptionOrigin::environment, "SHMEMCTL_" + spec.name);
    std::string flag = "--" + lower(spec.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    take(command_line, spec.name, OptionOrigin::command_line, flag);
    values_.emplace(spec.name, std::move(value));
  }
}

const OptionValue& Options::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end())
    throw std::logic_error("no option " + std::string(name));
  return found->second;
}

bool Options::boolean(std::string_view name) const {
  const OptionValue& found = value(name);
  if (found.origin == OptionOrigin::nvshmem_environment)
    return nvshmem_boolean(found.text);
  return among(found.text, true_words);
}

long long Options::integer(std::string_view name) const {
  return parse_integer(trim(value(name).text)).value_or(0);
}

std::uint64_t Options::size_bytes(std::string_view name) const {
  return parse_size_bytes(value(name).text).value_or(0);
}

double Options::number(std::string_view name) const {
  return parse_number(trim(value(name).text)).value_or(0);
}

void Options::require_valid(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    const OptionValue& found = value(name);
    if (!found.problem.empty())
      throw Error(ExitCode::usage,
                  found.origin_name + "=" + shown_value("SHMEMCTL_" + name, found.text), "",
                  found.problem, "correct or unset it; shmemctl env lists all options");
  }
}

} // namespace shmemctl
