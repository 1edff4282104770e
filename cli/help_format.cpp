#include "cli/help_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "reports/table.h"
#include "src/base/options.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// CLI11 prints the limits of a range with six digits: "1e+06".
std::string without_exponent(const std::string& number) {
  return number.find("e+") == std::string::npos ? number : fmt::format("{:.0f}", std::stod(number));
}

constexpr std::array<const char*, 3> range_starts = {"INT in [", "UINT in [", "FLOAT in ["};

/// Offset of the parser's text for a range, or npos: 2 in "N:INT in [1 - 8]".
std::size_t range_offset(const std::string& type) {
  for (const char* start : range_starts) {
    if (starts_with(type, start))
      return 0;
    if (const std::size_t at = type.find(std::string(":") + start); at != std::string::npos)
      return at + 1;
  }
  return std::string::npos;
}

/// The row of the option table for a flag, if the table has it.
const OptionSpec* table_row(const CLI::Option& option) {
  for (const OptionSpec& spec : option_table()) {
    std::string flag = lower(spec.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    const std::vector<std::string>& names = option.get_lnames();
    if (std::find(names.begin(), names.end(), flag) != names.end() &&
        option.get_type_name() == option_value_name(spec))
      return &spec;
  }
  return nullptr;
}

std::string flags_text(const CLI::Option& option) {
  std::string text = join(flags_of(option), ", ");
  if (option.get_snames().empty())
    text.insert(0, "    "); // long names are in one column
  const std::string value = value_name(option);
  return value.empty() ? text : text + " " + value;
}

/// Breaks "shmemctl sim --from topo.xml ..." so that it can still be pasted.
std::string wrapped_command(const std::string& line, std::size_t width) {
  std::string text, rest = line;
  while (rest.size() > width) {
    std::size_t blank = rest.rfind(" -", width - 2); // before a flag rather than before its value
    if (blank == std::string::npos || rest.find_first_not_of(' ') >= blank)
      blank = rest.rfind(' ', width - 2);
    if (blank == std::string::npos || rest.find_first_not_of(' ') >= blank)
      break;
    text += rest.substr(0, blank) + " \\\n";
    rest = "      " + rest.substr(blank + 1);
  }
  return text + rest;
}

/// Joins and wraps lines of prose; indented lines stay as they are.
std::string wrapped_footer(const std::string& footer, int width) {
  std::string text, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty())
      text += wrapped(paragraph, width, 0) + "\n";
    paragraph.clear();
  };
  for (const std::string& line : split(trim(footer), '\n')) {
    const bool is_title = line == "Examples:" || starts_with(line, "Example: ");
    if (line.empty() || line.front() == ' ' || is_title)
      end_paragraph();
    if (line.empty() || is_title) {
      text += (is_title && !text.empty() && !ends_with(text, "\n\n") ? "\n" : "") +
              wrapped_command(line, static_cast<std::size_t>(width)) + "\n";
    } else if (line.front() == ' ') {
      text += (line.find("shmemctl ") != std::string::npos
                   ? wrapped_command(line, static_cast<std::size_t>(width))
                   : wrapped(line, width, 4)) +
              "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  end_paragraph();
  return text;
}

class HelpFormatter final : public CLI::Formatter {
public:
  explicit HelpFormatter(int width) : width_(std::max(width, 50)) {}

  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::string command_name = app->get_name();
    const CLI::App* root = app;
    for (; root->get_parent() != nullptr; root = root->get_parent())
      command_name = root->get_parent()->get_name() + " " + command_name;
    std::string text = wrapped(app->get_description() + ".", width_, 0) + "\n\n" +
                       wrapped("Usage: " + synopsis_of(*app, command_name), width_, 7) + "\n";
    add_options(*app, true, "Arguments", text);
    for (const std::string& group : groups_of(*app))
      if (group != common_group)
        add_options(*app, false, group, text);
    add_subcommands(*app, text);
    if (!app->get_footer().empty())
      text += "\n" + wrapped_footer(app->get_footer(), width_);
    add_common(*app, *root, text);
    return text;
  }

private:
  static constexpr const char* common_group = "Common options";
  static constexpr int column = 27; ///< where descriptions begin

  static std::vector<std::string> groups_of(const CLI::App& app) {
    std::vector<std::string> groups;
    for (const CLI::Option* option : app.get_options())
      if (!is_positional(*option) && !option->get_group().empty() &&
          std::find(groups.begin(), groups.end(), option->get_group()) == groups.end())
        groups.push_back(option->get_group());
    return groups;
  }

  /// Breaks "--bootstrap {auto,uid,...}" after commas.
  std::string wrapped_head(std::string head) const {
    std::string text;
    for (const auto width = static_cast<std::size_t>(width_ - 2); head.size() > width;) {
      const std::size_t comma = head.rfind(',', width - 1);
      if (comma == std::string::npos)
        break;
      text += head.substr(0, comma + 1) + "\n";
      head = std::string(8, ' ') + head.substr(comma + 1);
    }
    return text + head;
  }

  void add_entry(const std::string& head, const std::string& meaning, std::string& text) const {
    text += "  " + wrapped_head(head);
    if (meaning.empty()) {
      text += "\n";
      return;
    }
    if (static_cast<int>(head.size()) + 4 > column)
      text += "\n" + std::string(column, ' ');
    else
      text += std::string(static_cast<std::size_t>(column) - head.size() - 2, ' ');
    // Wrapped as if it began at column 0, because the text before it has that width already.
    const std::string lines =
        wrapped(std::string(column, ' ') + meaning, width_, column).substr(column);
    text += lines + "\n";
  }

  void add_options(const CLI::App& app, bool positional, const std::string& group,
                   std::string& text) const {
    std::string lines;
    for (const CLI::Option* option : app.get_options())
      if (is_positional(*option) == positional && !option->get_group().empty() &&
          (positional || option->get_group() == group))
        add_entry(positional ? argument_name(*option) : flags_text(*option),
                  option_text(*option, false), lines);
    if (!lines.empty())
      text += "\n" + group + ":\n" + lines;
  }

  void add_subcommands(const CLI::App& app, std::string& text) const {
    const std::vector<const CLI::App*> children = listed_subcommands(app);
    std::vector<std::string> groups;
    for (const CLI::App* child : children)
      if (std::find(groups.begin(), groups.end(), child->get_group()) == groups.end())
        groups.push_back(child->get_group());
    for (const std::string& group : groups) {
      text += "\n" + group + ":\n";
      for (const CLI::App* child : children)
        if (child->get_group() == group)
          add_entry(child->get_name(), child->get_description(), text);
    }
  }

  /// --help, and the options of the program, which every subcommand takes; those that it has
  /// itself are left out.
  void add_common(const CLI::App& app, const CLI::App& root, std::string& text) const {
    std::string lines;
    std::vector<const CLI::App*> levels = {&app};
    if (&app != &root)
      levels.push_back(&root);
    for (const CLI::App* level : levels)
      for (const CLI::Option* option : level->get_options()) {
        const std::vector<std::string>& names = option->get_lnames();
        const bool own = level != &app && !names.empty() &&
                         app.get_option_no_throw("--" + names.front()) != nullptr;
        if (!own && option->get_group() == common_group)
          add_entry(flags_text(*option), option_text(*option, false), lines);
      }
    if (lines.empty())
      return;
    // Everything after the command of `run` is the command's own.
    text += std::string("\n") + common_group +
            (app.get_prefix_command() ? ", written before `" + app.get_name() + "`" : "") + ":\n" +
            lines;
  }

  int width_;
};

} // namespace

std::vector<const CLI::App*> listed_subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* child) {
    return !child->get_name().empty() && !child->get_group().empty();
  });
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* child : listed_subcommands(app))
    names.push_back(child->get_name());
  return names;
}

std::vector<const CLI::App*> all_subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find_subcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* child : all_subcommands(app))
    if (child->get_name() == name)
      return child;
  return nullptr;
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames())
    flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    flags.push_back("--" + name);
  return flags;
}

bool is_positional(const CLI::Option& option) {
  return option.get_snames().empty() && option.get_lnames().empty();
}

std::string value_name(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0 || option.get_expected_min() == 0)
    return "";
  std::string text = option.get_type_name();
  if (const std::size_t range = range_offset(text); range != std::string::npos)
    text.resize(range == 0 ? text.find(' ') : range - 1);
  if (const std::size_t set = text.find(":{"); set != std::string::npos)
    return text.substr(set + 1);
  if (starts_with(text, "{,")) // an empty text is a value too
    return text.erase(1, 1);
  if (text == "TEXT" && is_positional(option))
    return "";
  if (text == "INT" || text == "UINT")
    return "N";
  return text == "FLOAT" ? "NUMBER" : text;
}

std::string argument_name(const CLI::Option& option) {
  std::string name = option.get_name(true);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return option.get_items_expected_max() > 1 ? name + "..." : name;
}

std::vector<std::string> value_set(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return {};
  return split(std::string_view(type).substr(begin + 1, end - begin - 1), ',');
}

std::optional<ValueRange> limits_of(const CLI::Option& option) {
  const std::string type = option.get_type_name(), dash = " - ";
  if (const std::size_t range = range_offset(type); range != std::string::npos) {
    const std::size_t first = type.find('[', range) + 1;
    const std::string text = type.substr(first, type.find(']', first) - first);
    const std::size_t at = text.find(dash);
    if (at == std::string::npos)
      return std::nullopt;
    return ValueRange{without_exponent(text.substr(0, at)),
                      without_exponent(text.substr(at + dash.size())),
                      type.find("FLOAT in [") == std::string::npos};
  }
  const OptionSpec* spec = table_row(option);
  if (spec == nullptr || !spec->minimum || !spec->maximum)
    return std::nullopt;
  return ValueRange{std::to_string(*spec->minimum), std::to_string(*spec->maximum),
                    spec->type == OptionType::integer};
}

std::string option_text(const CLI::Option& option, bool with_range) {
  std::string text = option.get_description();
  if (text.empty())
    return text;
  const auto add = [&text](const std::string& sentence) {
    if (text.back() != '.' && text.back() != ']') // "Sentence. [SHMEMCTL_NAME; default 8]"
      text += '.';
    text += ' ' + sentence;
  };
  std::vector<std::string> excluded;
  for (const CLI::Option* other : option.get_excludes())
    excluded.push_back(is_positional(*other) ? other->get_name(true) : other->get_name());
  std::sort(excluded.begin(), excluded.end()); // sets of pointers have no stable order
  if (!excluded.empty())
    add("Not together with " + join(excluded, ", ") + ".");
  if (const auto range = limits_of(option); with_range && range)
    add("From " + range->least + " to " + range->most + ".");
  if (option.get_required())
    add("Required.");
  return text;
}

std::string synopsis_of(const CLI::App& app, const std::string& command_name) {
  if (!listed_subcommands(app).empty())
    return command_name + " SUBCOMMAND ...";
  std::string text = command_name + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options())
    if (is_positional(*option) && !option->get_group().empty())
      text += option->get_required() ? " " + argument_name(*option)
                                     : " [" + argument_name(*option) + "]";
  return app.get_prefix_command() ? text + " CMD ARGS..." : text;
}

void set_help_format(CLI::App& app, int width) {
  app.formatter(std::make_shared<HelpFormatter>(width));
}

} // namespace shmemctl
