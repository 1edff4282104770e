#include "cli/config_file.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <tuple>
#include <unistd.h>

#include "cli/help_format.h"
#include "cli/similar_names.h"
#include "cli/usage_error.h"
#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/secure_execution.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr const char* system_file = "/etc/shmemctl.conf";
constexpr const char* user_file = "shmemctl.conf";

std::string variable(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

/// "HCA_LIST", "--hca-list" -> "hca-list"
std::string flag_name(const std::string& written) {
  std::string name =
      lower(written.substr(std::min(written.find_first_not_of('-'), written.size())));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// "hca-list" -> "HCA_LIST"
std::string option_name(std::string flag) {
  std::transform(flag.begin(), flag.end(), flag.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return flag;
}

bool is_table_option(const std::string& flag) {
  const std::string name = option_name(flag);
  return std::any_of(option_table().begin(), option_table().end(),
                     [&name](const OptionSpec& spec) { return spec.name == name; });
}

/// Whether this flag only stores an option of the table: its description then names the variable
/// (add_option()).
bool stores_option(const CLI::Option& option, const std::string& flag) {
  return option.get_description().find("[SHMEMCTL_" + option_name(flag)) != std::string::npos;
}

/// Whether a file may set this flag: not if the flag requests something other than a run.
bool may_stand_in_file(const std::string& flag) {
  return flag != "help" && flag != "version" && flag != "config";
}

void add_flags(const CLI::App& app, bool recurse, std::vector<std::string>& flags) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      if (may_stand_in_file(name))
        flags.push_back(name);
  if (recurse)
    for (const CLI::App* child : all_subcommands(app))
      add_flags(*child, true, flags);
}

std::string section_text(const ConfigEntry& entry) {
  return entry.section.empty() ? "" : "[" + join(entry.section, ".") + "] ";
}

/// The subcommand of the entry's section, or the program itself if the entry is above all sections.
const CLI::App& section_of(const CLI::App& root, const ConfigEntry& entry) {
  const CLI::App* app = &root;
  for (const std::string& word : entry.section) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* child : all_subcommands(*app)) {
      names.push_back(child->get_name());
      if (child->get_name() == word)
        next = child;
    }
    if (next == nullptr) {
      const std::vector<std::string> meant = similar_names(word, names);
      throw input_error(entry.file, "", "[" + join(entry.section, ".") + "] names no subcommand",
                        (meant.empty() ? "" : "did you mean " + either(meant) + "? ") +
                            "shmemctl --help lists all subcommands");
    }
    app = next;
  }
  return *app;
}

void require_known(const CLI::App& root, const ConfigEntry& entry) {
  const CLI::App& section = section_of(root, entry);
  const std::string flag = flag_name(entry.name);
  std::vector<std::string> names;
  add_flags(section, entry.section.empty(), names);
  add_flags(root, false, names);
  for (const OptionSpec& spec : option_table())
    names.push_back(flag_name(spec.name));
  if (std::find(names.begin(), names.end(), flag) != names.end())
    return;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::vector<std::string> meant = similar_names(flag, names);
  throw input_error(
      entry.file, "",
      may_stand_in_file(flag) ? section_text(entry) + "unknown option \"" + entry.name + "\""
                              : "\"" + entry.name + "\" cannot be set in a configuration file",
      (meant.empty() || !may_stand_in_file(flag) ? "" : "did you mean " + either(meant) + "? ") +
          "remove it, or use a name that shmemctl env or shmemctl SUBCOMMAND --help lists");
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& chain) {
  std::vector<std::string> names;
  for (const CLI::App* app : chain)
    names.push_back(app->get_name());
  names.erase(names.begin()); // the program itself
  return names;
}

bool is_prefix(const std::vector<std::string>& prefix, const std::vector<std::string>& of) {
  return prefix.size() <= of.size() && std::equal(prefix.begin(), prefix.end(), of.begin());
}

/// Applies the flags that files set to the chosen subcommand.
class FlagSetter {
public:
  FlagSetter(const CLI::App& parsed, CLI::App& app) : parsed_(recognised(parsed)) {
    app_.push_back(&app);
    for (const std::string& name : names_of(parsed_))
      app_.push_back(app_.back()->get_subcommand(name));
  }

  std::vector<std::string> subcommand() const { return names_of(parsed_); }

  /// Takes the entry unless the command line overrides it. Returns whether its flag, in the
  /// innermost subcommand that has one of this name, is not an option of the table.
  bool take(const ConfigEntry& entry) {
    const std::string flag = flag_name(entry.name);
    if (entry.section.empty() && is_table_option(flag))
      return false; // above all sections, `timeout` is the option, not `run`'s flag
    for (std::size_t level = app_.size(); level-- > 0;) {
      const CLI::Option* before = parsed_[level]->get_option_no_throw("--" + flag);
      if (before == nullptr)
        continue;
      if (stores_option(*before, flag))
        return false;
      const bool reports_of_pes = // of `run`: the PEs read the configuration files themselves
          app_.size() == 2 && app_.back()->get_name() == "run" && level == 0 &&
          (flag == "json" || flag == "csv");
      if (before->count() == 0 && !excluded(*before) && !reports_of_pes)
        set_[app_[level]->get_option("--" + flag)] = entry;
      return true;
    }
    return !is_table_option(flag); // true if the flag is of another subcommand
  }

  std::vector<ConfigEntry> apply() const {
    std::vector<ConfigEntry> entries;
    for (const auto& [option, entry] : set_) {
      pass(*option, entry);
      entries.push_back(entry);
    }
    std::sort(entries.begin(), entries.end(), [](const ConfigEntry& a, const ConfigEntry& b) {
      return std::tie(a.file, a.section, a.name) < std::tie(b.file, b.section, b.name);
    });
    return entries;
  }

private:
  /// Whether the command line has an option that excludes this one.
  static bool excluded(const CLI::Option& option) {
    const auto& others = option.get_excludes();
    return std::any_of(others.begin(), others.end(),
                       [](const CLI::Option* other) { return other->count() > 0; });
  }

  void pass(CLI::Option& option, const ConfigEntry& entry) const {
    try {
      if (option.get_expected_min() == 0) { // a switch
        const std::string text = lower(join(entry.values, ","));
        if (text == "true" || text == "yes" || text == "on" || text == "1")
          option.add_result("true");
        else if (text != "false" && text != "no" && text != "off" && text != "0")
          throw CLI::ValidationError(option.get_name(), "\"" + text + "\" is not true or false");
      } else if (option.get_items_expected_max() > 1) {
        for (const std::string& value : entry.values)
          option.add_result(value);
      } else {
        option.add_result(join(entry.values, ",")); // the reader has split it at commas
      }
      if (option.count() > 0)
        option.run_callback();
    } catch (const CLI::ParseError& error) {
      const UsageError usage = describe_value_error(option, error);
      throw input_error(entry.file, "", section_text(entry) + usage.problem, usage.fix);
    }
  }

  std::vector<const CLI::App*> parsed_;
  std::vector<CLI::App*> app_;
  std::map<CLI::Option*, ConfigEntry> set_;
};

} // namespace

std::vector<std::string> default_config_files(const Environment& environment) {
  if (environment.count(reads_no_config_file) != 0)
    return {};
  std::vector<std::string> files = {system_file};
  std::string folder = variable(environment, "XDG_CONFIG_HOME");
  // the XDG specification says that a relative path is ignored
  if (folder.empty() || folder.front() != '/') {
    const std::string home = variable(environment, "HOME");
    folder = home.empty() ? "" : home + "/.config";
  }
  if (!folder.empty() && !is_secure_execution())
    files.push_back(folder + "/" + user_file);
  files.erase(
      std::remove_if(files.begin(), files.end(),
                     [](const std::string& file) { return ::access(file.c_str(), F_OK) != 0; }),
      files.end());
  return files;
}

std::vector<ConfigEntry> read_config(const std::string& file) {
  std::istringstream stream(read_input(file));
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigINI().from_config(stream);
  } catch (const CLI::Error& error) {
    throw input_error(file, "", error.what(), "write lines of the form name = value");
  }
  std::vector<ConfigEntry> entries;
  for (const CLI::ConfigItem& item : items)
    if (item.name != "++" && item.name != "--") // how CLI11 marks the ends of sections
      entries.push_back({file, item.parents, item.name, item.inputs});
  std::stable_sort(entries.begin(), entries.end(), [](const ConfigEntry& a, const ConfigEntry& b) {
    return a.section.size() < b.section.size();
  });
  return entries;
}

Configuration apply_config(const std::vector<ConfigEntry>& entries, const CLI::App& parsed,
                           CLI::App& app) {
  Configuration configuration;
  FlagSetter flags(parsed, app);
  for (const ConfigEntry& entry : entries) {
    require_known(parsed, entry);
    if (!is_prefix(entry.section, flags.subcommand()) || flags.take(entry))
      continue;
    const std::string name = option_name(flag_name(entry.name));
    configuration.options[name] = join(entry.values, ",");
    configuration.options[name + "@"] = entry.file;
  }
  configuration.flags = flags.apply();
  return configuration;
}

} // namespace shmemctl
