// `shmemctl reference`: the pages of docs/reference and the man pages, made from the parser that
// parses, the option table, the finding table, the table of bench cases and the report's schema.
// scripts/generate_reference.sh runs it; a test fails when docs/reference is older than the
// program.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/context.h"
#include "cli/help_format.h"
#include "reports/finding_reference.h"
#include "reports/report.h"
#include "reports/validate.h"
#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/instruments/bench/case_table.h"

namespace shmemctl {

namespace {

using nlohmann::json;

struct ExitCodeRow {
  ExitCode code;
  const char* meaning;
};

constexpr ExitCodeRow exit_codes[] = {
    {ExitCode::ok, "All is well. Warnings and infos may have been found."},
    {ExitCode::finding,
     "It ran, and something is wrong: a finding of severity error (or of that which --fail-on "
     "names), a failed verification, a threshold or baseline that was missed."},
    {ExitCode::usage, "The command line, a file or a value is not valid. Nothing was run."},
    {ExitCode::unavailable,
     "The run could not be carried out: bring-up failed, or a PE was lost; or `check` had nothing "
     "to check, on a machine with neither a GPU nor an RDMA device."},
    {ExitCode::deadline, "A deadline passed. The message names who was waited for."},
    {ExitCode::interrupted, "A signal interrupted the run."},
};

// ---- What the parser knows -----------------------------------------------------------------

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* child) {
    return !child->get_name().empty() && !child->get_group().empty(); // "" is a hidden one
  });
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames())
    flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    flags.push_back("--" + name);
  return flags;
}

std::string description_of(const CLI::Option& option) {
  std::string text = option.get_description();
  if (text.empty())
    return text;
  const auto add = [&text](const std::string& sentence) {
    if (text.back() != '.' && text.back() != ']' && text.back() != ')')
      text += '.';
    text += ' ' + sentence;
  };
  std::vector<std::string> excluded;
  for (const CLI::Option* other : option.get_excludes())
    excluded.push_back(flags_of(*other).empty() ? other->get_name(true) : flags_of(*other).back());
  std::sort(excluded.begin(), excluded.end()); // sets of pointers have no stable order
  if (!excluded.empty())
    add("Not together with " + join(excluded, ", ") + ".");
  if (const std::string range = value_range(option); !range.empty())
    add("From " + range + ".");
  if (option.get_required())
    add("Required.");
  return text;
}

struct Page {
  const CLI::App* app = nullptr;
  std::string command_name; ///< "shmemctl report diff"
};

void collect(const CLI::App& app, const std::string& command_name, std::vector<Page>& pages) {
  pages.push_back({&app, command_name});
  for (const CLI::App* child : subcommands_of(app))
    collect(*child, command_name + " " + child->get_name(), pages);
}

/// "report-diff" of "shmemctl report diff"; "shmemctl" of the program itself.
std::string file_name(const std::string& command_name) {
  std::string name = command_name;
  if (const std::size_t blank = name.find(' '); blank != std::string::npos)
    name.erase(0, blank + 1);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

struct Shown {
  std::vector<const CLI::Option*> positional, flags;
};

Shown options_of(const CLI::App& app) {
  Shown shown;
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr() || option->get_group().empty())
      continue;
    (flags_of(*option).empty() ? shown.positional : shown.flags).push_back(option);
  }
  return shown;
}

std::string synopsis_of(const Page& page) {
  std::string text = page.command_name;
  if (!subcommands_of(*page.app).empty())
    return text + " SUBCOMMAND ...";
  const Shown shown = options_of(*page.app);
  text += " [OPTIONS]";
  for (const CLI::Option* option : shown.positional) {
    std::string name = option->get_name(true);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (option->get_items_expected_max() > 1)
      name += "...";
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

// ---- Markdown ------------------------------------------------------------------------------

/// Escapes text for Markdown, including table cells; text between backticks is unchanged.
std::string cell(const std::string& text) {
  std::string result;
  bool code = false;
  for (const char c : text) {
    if (c == '`')
      code = !code;
    if (c == '|' || (!code && (c == '<' || c == '*' || c == '[' || c == ']')))
      result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string code(const std::string& text) {
  std::string inner = text;
  for (std::size_t at = 0; (at = inner.find('|', at)) != std::string::npos; at += 2)
    inner.insert(at, "\\");
  return "`" + inner + "`";
}

std::string markdown_options(const std::vector<const CLI::Option*>& options) {
  std::string text = "| option | meaning |\n| --- | --- |\n";
  for (const CLI::Option* option : options) {
    std::vector<std::string> names;
    for (const std::string& flag : flags_of(*option))
      names.push_back(code(flag));
    std::string head = join(names, ", ");
    if (head.empty())
      head = code(option->get_name(true));
    if (const std::string value = value_name(*option); !value.empty())
      head += " " + code(value);
    text += "| " + head + " | " + cell(description_of(*option)) + " |\n";
  }
  return text;
}

constexpr const char* generated_note =
    "<!-- Generated by scripts/generate_reference.sh from the program's own tables: do not edit. "
    "-->\n";

std::string markdown_command(const Page& page) {
  const CLI::App& app = *page.app;
  const std::vector<const CLI::App*> children = subcommands_of(app);
  std::string text = std::string(generated_note) + "# `" + page.command_name + "`\n\n" +
                     cell(app.get_description()) + ".\n\n```\n" + synopsis_of(page) + "\n```\n";
  if (!children.empty()) {
    text += "\n| subcommand | what it does |\n| --- | --- |\n";
    for (const CLI::App* child : children)
      text += fmt::format("| [`{}`]({}.md) | {} |\n", child->get_name(),
                          file_name(page.command_name + " " + child->get_name()),
                          cell(child->get_description()));
  }
  const Shown shown = options_of(app);
  if (!shown.positional.empty())
    text += "\n## Arguments\n\n" + markdown_options(shown.positional);
  if (!shown.flags.empty())
    text += "\n## Options\n\n" + markdown_options(shown.flags);
  if (app.get_parent() != nullptr)
    text += "\nThe [common options](shmemctl.md#options) apply too, in any position.\n";
  if (!app.get_footer().empty())
    text +=
        "\n## Notes and examples\n\n```text\n" + std::string(trim(app.get_footer())) + "\n```\n";
  return text;
}

/// The flag and subcommands that take an option of the table, found in the parser.
std::string takers_of(const std::string& name, const std::vector<Page>& pages, std::string& flag) {
  std::string wanted = "--" + lower(name);
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  std::vector<std::string> takers;
  for (const Page& page : pages)
    for (const CLI::Option* option : page.app->get_options())
      for (const std::string& each : flags_of(*option))
        if (each == wanted)
          takers.push_back(page.app->get_parent() == nullptr
                               ? "all"
                               : page.command_name.substr(page.command_name.find(' ') + 1));
  flag = takers.empty() ? "" : wanted;
  return join(takers, ", ");
}

std::string values_text(const OptionSpec& spec) {
  std::string text = to_string(spec.type);
  if (spec.type == OptionType::choice) {
    std::vector<std::string> choices;
    for (const std::string& choice : spec.choices)
      choices.push_back(choice.empty() ? "empty" : code(choice));
    return join(choices, ", ");
  }
  if (spec.minimum && spec.maximum)
    text += fmt::format(", {} to {}", *spec.minimum, *spec.maximum);
  return text;
}

std::string markdown_options_page(const std::vector<Page>& pages) {
  std::string text =
      std::string(generated_note) +
      "# Options and environment variables\n\nEach option is read from the command line, then "
      "from the variable `SHMEMCTL_NAME`, then from `NVSHMEM_NAME` where NVSHMEM has a variable of "
      "that name, then from the file of `--config` (`name = value`). Options without a flag are "
      "set by their variable. Sizes take the suffixes K, M and G (powers of 1024). "
      "[`shmemctl env`](commands/env.md) prints every option with its value and where it came "
      "from.\n";
  for (const OptionSpec& spec : option_table()) {
    std::string flag;
    const std::string takers = takers_of(spec.name, pages, flag);
    text += "\n## " + spec.name + "\n\n" + cell(spec.doc) + "\n\n";
    text += "- Variables: `SHMEMCTL_" + spec.name + "`" +
            (spec.nvshmem_alias ? ", `NVSHMEM_" + spec.name + "`" : "") + "\n";
    if (!flag.empty())
      text += "- Flag: `" + flag + "`, accepted by " + takers + "\n";
    text += "- Values: " + values_text(spec) + "\n";
    text +=
        "- Default: " + (spec.default_value.empty() ? "unset" : "`" + spec.default_value + "`") +
        "\n";
    if (spec.secret)
      text += "- A secret: its text is shown nowhere.\n";
  }
  return text;
}

std::string markdown_findings() {
  std::string text =
      std::string(generated_note) +
      "# Findings, by id\n\nA finding has a stable id, a severity, a subject, a message and a "
      "fix. An `error` makes the exit code 1. Ids are never reused. The fix that the program "
      "prints names the devices of your machine; the fixes below say what to do in general.\n";
  std::string group;
  for (const FindingReference& row : finding_reference()) {
    if (row.group != group)
      text += "\n## " + (group = row.group) + "\n";
    text += fmt::format("\n### {}\n\n{}\n\n- Severity: {}\n- Found by: {}\n- Fix: {}\n", row.id,
                        row.meaning, row.severities, row.evidence, row.fix);
  }
  return text;
}

std::string markdown_exit_codes() {
  std::string text =
      std::string(generated_note) +
      "# Exit codes\n\nEvery PE of a job returns the same code.\n\n| code | meaning |\n| --- | --- "
      "|\n";
  for (const ExitCodeRow& row : exit_codes)
    text += fmt::format("| {} | {} |\n", static_cast<int>(row.code), row.meaning);
  return text + "\n`shmemctl run` returns the code of the PE that failed first, and 128 plus the "
                "signal's number if a signal ended it.\n";
}

// ---- The schema ----------------------------------------------------------------------------

std::string type_text(const json& schema) {
  std::string type;
  if (schema.contains("const"))
    return schema["const"].dump();
  if (schema.contains("type")) {
    const json& value = schema["type"];
    std::vector<std::string> types;
    if (value.is_string())
      types.push_back(value.get<std::string>());
    else
      for (const json& each : value)
        types.push_back(each.get<std::string>());
    type = join(types, " or ");
  }
  if (schema.contains("enum")) {
    std::vector<std::string> values;
    for (const json& each : schema["enum"])
      values.push_back(each.dump());
    type = join(values, ", ");
  }
  return type;
}

/// A schema, or the definition that it refers to; `depth` bounds recursive definitions.
const json& resolved(const json& schema, const json& root) {
  if (!schema.contains("$ref"))
    return schema;
  return root.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
}

void add_keys(const json& schema, const json& root, const std::string& path, int depth,
              std::string& text) {
  constexpr int deepest = 8;
  if (depth > deepest || !schema.contains("properties"))
    return;
  for (const auto& [key, value] : schema["properties"].items()) {
    const json& target = resolved(value, root);
    const std::string here = path.empty() ? key : path + "." + key;
    std::string description = value.value("description", target.value("description", ""));
    std::string type = type_text(target);
    const json* inner = &target;
    std::string inner_path = here;
    if (target.contains("items")) {
      const json& item = resolved(target["items"], root);
      inner = &item;
      inner_path += "[]";
      if (const std::string of = type_text(item); !of.empty())
        type += " of " + of;
    }
    text += "| " + code(here) + " | " + cell(type) + " | " + cell(description) + " |\n";
    add_keys(*inner, root, inner_path, depth + 1, text);
  }
}

std::string markdown_schema() {
  const json root = json::parse(report_schema_text());
  std::string text = std::string(generated_note) + "# Keys of the report\n\n" +
                     cell(root.at("description").get<std::string>()) +
                     "\n\nThe schema itself is printed by [`shmemctl report schema`](commands/"
                     "report-schema.md). [The report](report.md) says what a schema cannot.\n";
  for (const auto& [key, value] : root.at("properties").items()) {
    const json& target = resolved(value, root);
    text += "\n## " + key + "\n\n" +
            cell(value.value("description", target.value("description", ""))) + "\n";
    std::string rows;
    if (target.contains("items"))
      add_keys(resolved(target["items"], root), root, key + "[]", 1, rows);
    else
      add_keys(target, root, key, 1, rows);
    if (!rows.empty())
      text += "\n| key | type | meaning |\n| --- | --- | --- |\n" + rows;
  }
  return text;
}

// ---- Man pages -----------------------------------------------------------------------------

/// Escapes text for troff; backticks become bold.
std::string roff(const std::string& text) {
  std::string result;
  bool bold = false;
  for (const char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if (c == '`')
      result += (bold = !bold) ? "\\fB" : "\\fR";
    else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n'))
      result += std::string("\\&") + c;
    else
      result += c;
  }
  return result;
}

std::string roff_head(const std::string& name, int section) {
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH \"{}\" \"{}\" \"\" \"shmemctl {}\" \"{}\"\n", roff(title), section,
                     tool_info().version, section == 1 ? "User Commands" : "Miscellaneous");
}

std::string roff_options(const std::vector<const CLI::Option*>& options) {
  std::string text;
  for (const CLI::Option* option : options) {
    std::vector<std::string> names;
    for (const std::string& flag : flags_of(*option))
      names.push_back("\\fB" + roff(flag) + "\\fR");
    std::string head = join(names, ", ");
    if (head.empty())
      head = "\\fB" + roff(option->get_name(true)) + "\\fR";
    if (const std::string value = value_name(*option); !value.empty())
      head += " \\fI" + roff(value) + "\\fR";
    text += ".TP\n" + head + "\n" + roff(description_of(*option)) + "\n";
  }
  return text;
}

std::string man_name(const std::string& command_name) {
  return command_name == "shmemctl" ? command_name : "shmemctl-" + file_name(command_name);
}

std::string man_page(const Page& page, const CLI::App& root) {
  const CLI::App& app = *page.app;
  const std::string name = man_name(page.command_name);
  std::string text = roff_head(name, 1);
  text += ".SH NAME\n" + roff(name) + " \\- " + roff(app.get_description()) + "\n";
  text += ".SH SYNOPSIS\n.B " + roff(synopsis_of(page)) + "\n";
  if (const auto children = subcommands_of(app); !children.empty()) {
    text += ".SH SUBCOMMANDS\n";
    for (const CLI::App* child : children)
      text += ".TP\n\\fB" + roff(child->get_name()) + "\\fR\n" + roff(child->get_description()) +
              ", see \\fB" + roff(man_name(page.command_name + " " + child->get_name())) +
              "\\fR(1)\n";
  }
  const Shown shown = options_of(app);
  if (!shown.positional.empty())
    text += ".SH ARGUMENTS\n" + roff_options(shown.positional);
  if (!shown.flags.empty())
    text += ".SH OPTIONS\n" + roff_options(shown.flags);
  if (&app != &root)
    text += ".SH COMMON OPTIONS\n" + roff_options(options_of(root).flags);
  if (!app.get_footer().empty())
    text += ".SH NOTES AND EXAMPLES\n.nf\n" + roff(std::string(trim(app.get_footer()))) + "\n.fi\n";
  text += ".SH EXIT STATUS\n";
  for (const ExitCodeRow& row : exit_codes)
    text += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(row.code), roff(row.meaning));
  return text + ".SH SEE ALSO\n\\fBshmemctl\\fR(1), \\fBshmemctl\\-options\\fR(7), "
                "\\fBshmemctl\\-findings\\fR(7)\n";
}

std::string man_options() {
  std::string text = roff_head("shmemctl-options", 7);
  text += ".SH NAME\nshmemctl\\-options \\- options and environment variables of shmemctl\n"
          ".SH DESCRIPTION\n" +
          roff("Each option is read from the command line, then from SHMEMCTL_NAME, then from "
               "NVSHMEM_NAME where that is given below, then from the file of --config.") +
          "\n";
  for (const OptionSpec& spec : option_table())
    text += ".TP\n\\fBSHMEMCTL_" + roff(spec.name) + "\\fR" +
            (spec.nvshmem_alias ? ", \\fBNVSHMEM_" + roff(spec.name) + "\\fR" : "") + "\n" +
            roff(spec.doc + " Values: " + values_text(spec) + "; default: " +
                 (spec.default_value.empty() ? "unset" : spec.default_value) + ".") +
            "\n";
  return text;
}

std::string man_findings() {
  std::string text = roff_head("shmemctl-findings", 7);
  text += ".SH NAME\nshmemctl\\-findings \\- what shmemctl finds, and how to fix it\n";
  std::string group;
  for (const FindingReference& row : finding_reference()) {
    if (row.group != group)
      text += ".SH \"" + roff(group = row.group) + "\"\n";
    text += ".TP\n\\fB" + roff(row.id) + "\\fR (" + roff(row.severities) + ")\n" +
            roff(row.meaning) + "\n.br\n" + roff("Found by: " + row.evidence) + "\n.br\n" +
            roff("Fix: " + row.fix) + "\n";
  }
  return text;
}

// ---- Files ---------------------------------------------------------------------------------

void write_page(const std::filesystem::path& path, const std::string& text) {
  std::error_code problem;
  std::filesystem::create_directories(path.parent_path(), problem);
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush())
    throw system_error(path.string(), "write", errno, "give a folder that can be written to");
}

void write_markdown(const CLI::App& root, const std::filesystem::path& folder) {
  std::vector<Page> pages;
  collect(root, "shmemctl", pages);
  for (const Page& page : pages)
    write_page(folder / "commands" / (file_name(page.command_name) + ".md"),
               markdown_command(page));
  write_page(folder / "options.md", markdown_options_page(pages));
  write_page(folder / "findings.md", markdown_findings());
  write_page(folder / "bench-cases.md", generated_note + bench::case_reference_markdown());
  write_page(folder / "exit-codes.md", markdown_exit_codes());
  write_page(folder / "report-keys.md", markdown_schema());
}

void write_man(const CLI::App& root, const std::filesystem::path& folder) {
  std::vector<Page> pages;
  collect(root, "shmemctl", pages);
  for (const Page& page : pages)
    write_page(folder / "man1" / (man_name(page.command_name) + ".1"), man_page(page, root));
  write_page(folder / "man7" / "shmemctl-options.7", man_options());
  write_page(folder / "man7" / "shmemctl-findings.7", man_findings());
}

} // namespace

void add_reference(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "reference", "Write the reference of this program into a folder, as Markdown or man pages");
  command->group(""); // for those who build and package the program
  auto format = std::make_shared<std::string>();
  auto folder = std::make_shared<std::string>();
  command->add_option("format", *format, "markdown or man")
      ->required()
      ->check(CLI::IsMember({"markdown", "man"}));
  command->add_option("folder", *folder, "Where the pages go")->required();
  command->callback([&app, &context, format, folder] {
    context.run = [&app, format, folder](Context&) {
      if (*format == "man")
        write_man(app, *folder);
      else
        write_markdown(app, *folder);
      return ExitCode::ok;
    };
  });
}

} // namespace shmemctl
