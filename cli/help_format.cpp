#include "cli/help_format.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace shmemctl {

namespace {

constexpr std::array<const char*, 3> range_starts = {"INT in [", "UINT in [", "FLOAT in ["};

/// Offset of the parser's text for a range, or npos: 2 in "N:INT in [1 - 8]".
std::size_t range_offset(const std::string& type) {
  for (const char* start : range_starts)
    if (const std::size_t at = type.find(std::string(":") + start); at != std::string::npos)
      return at + 1;
  return std::string::npos;
}

class HelpFormatter final : public CLI::Formatter {
public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find('{')); // "--check{1}": what the flag alone means
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string type = option->get_type_name();
    const std::size_t at = type.empty() ? std::string::npos : text.find(' ' + type);
    if (at == std::string::npos)
      return text;
    const std::string value = value_name(*option);
    return text.replace(at, type.size() + 1, value.empty() ? "" : ' ' + value);
  }
};

} // namespace

std::string value_name(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0 || option.get_expected_min() == 0)
    return "";
  std::string text = option.get_type_name();
  if (const std::size_t range = range_offset(text); range != std::string::npos)
    text.resize(range - 1);
  if (const std::size_t set = text.find(":{"); set != std::string::npos)
    return text.substr(set + 1);
  const bool positional = option.get_snames().empty() && option.get_lnames().empty();
  if (text == "TEXT" && positional)
    return "";
  if (text == "INT" || text == "UINT")
    return "N";
  return text == "FLOAT" ? "NUMBER" : text;
}

std::string value_range(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t range = range_offset(type);
  if (range == std::string::npos)
    return "";
  const std::size_t first = type.find('[', range) + 1;
  std::string text = type.substr(first, type.find(']', first) - first);
  if (const std::size_t dash = text.find(" - "); dash != std::string::npos)
    text.replace(dash, 3, " to ");
  return text;
}

void set_help_format(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
}

} // namespace shmemctl
