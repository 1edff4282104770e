#include "src/runtime/moe/settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::moe {

namespace {

std::string all_names() {
  std::vector<std::string> names;
  for (const SettingField& field : setting_fields)
    names.emplace_back(field.name);
  return join(names, ", ");
}

Error bad(const std::string& flag, const std::string& text, const std::string& problem) {
  return Error(ExitCode::usage, flag, "read " + printable(text), problem,
               "write each setting once, as in sms=24,warps=7; the names are: " + all_names())
      .on_all_pes();
}

} // namespace

const char* to_string(Direction direction) {
  return direction == Direction::combine ? "combine" : "dispatch";
}

std::string to_text(const Settings& settings) {
  std::string text;
  for (const SettingField& field : setting_fields)
    if (const auto& value = settings.*field.value)
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", field.name, *value);
  return text;
}

Settings parse_settings(const std::string& flag, const std::string& text) {
  Settings settings;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> words = split(part, '=');
    const auto field = std::find_if(setting_fields.begin(), setting_fields.end(),
                                    [&](const SettingField& one) { return one.name == words[0]; });
    if (field == setting_fields.end())
      throw bad(flag, text, printable(words[0]) + " is not a setting");
    const auto value = words.size() == 2 ? parse_integer(words[1]) : std::nullopt;
    if (!value || *value < 0 || *value > 1 << 24)
      throw bad(flag, text, printable(part) + " is not a number from 0 to 16777216");
    if (settings.*field->value)
      throw bad(flag, text, std::string(field->name) + " is given twice");
    settings.*field->value = static_cast<std::int32_t>(*value);
  }
  return settings;
}

std::string unknown_setting(const Settings& given, const Settings& known) {
  std::vector<std::string> names;
  for (const SettingField& field : setting_fields)
    if (known.*field.value)
      names.emplace_back(field.name);
  for (const SettingField& field : setting_fields)
    if (given.*field.value && !(known.*field.value))
      return fmt::format("there is no {} here: {}", field.name,
                         names.empty() ? "it has no settings" : "it has " + join(names, ", "));
  return "";
}

Settings filled(Settings given, const Settings& otherwise) {
  for (const SettingField& field : setting_fields)
    if (!(given.*field.value))
      given.*field.value = otherwise.*field.value;
  return given;
}

} // namespace shmemctl::moe
