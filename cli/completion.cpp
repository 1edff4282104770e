// `shmemctl completion bash|zsh|fish`: a script generated from the program's own parser.
#include <iostream>
#include <sstream>

#include "cli/context.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      flags.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      flags.push_back("-" + name);
  }
  return flags;
}

std::vector<const CLI::App*> children_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* child) {
    return !child->get_name().empty() && !child->get_group().empty(); // "" hides an entry
  });
}

/// "shmemctl report" -> the words that may follow it.
struct Level {
  std::string path; ///< subcommands so far, joined by blanks
  std::vector<std::string> words;
};

void collect(const CLI::App& app, const std::string& path,
             const std::vector<std::string>& inherited, std::vector<Level>& levels) {
  Level level{path, {}};
  for (const CLI::App* child : children_of(app))
    level.words.push_back(child->get_name());
  std::vector<std::string> flags = flags_of(app);
  for (const std::string& flag : inherited)
    if (std::find(flags.begin(), flags.end(), flag) == flags.end())
      flags.push_back(flag);
  level.words.insert(level.words.end(), flags.begin(), flags.end());
  levels.push_back(std::move(level));
  for (const CLI::App* child : children_of(app))
    collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), flags,
            levels);
}

std::string bash_script(const std::vector<Level>& levels) {
  std::ostringstream out;
  out << "_shmemctl() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} path= word i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=${COMP_WORDS[i]}\n"
         "    case \"${path:+$path }$word\" in\n";
  for (const Level& level : levels)
    if (!level.path.empty())
      out << "      '" << level.path << "') path='" << level.path << "' ;;\n";
  out << "    esac\n  done\n  local words=\n  case \"$path\" in\n";
  for (const Level& level : levels)
    out << "    '" << level.path << "') words='" << join(level.words, " ") << "' ;;\n";
  out << "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [[ $current == -* || ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "
         "\"$current\"))\n"
         "}\n";
  return out.str();
}

std::string fish_script(const std::vector<Level>& levels) {
  std::ostringstream out;
  out << "complete -c shmemctl -e\n";
  for (const Level& level : levels) {
    const std::vector<std::string> path = split_blanks(level.path);
    std::string condition = "test (count (commandline -opc)) -ge 1";
    for (const std::string& word : path)
      condition += "; and contains -- " + word + " (commandline -opc)";
    if (path.empty())
      condition = "__fish_use_subcommand";
    for (const std::string& word : level.words) {
      out << "complete -c shmemctl -n '" << condition << "' ";
      if (starts_with(word, "--"))
        out << "-l " << word.substr(2) << '\n';
      else if (starts_with(word, "-"))
        out << "-s " << word.substr(1) << '\n';
      else
        out << "-f -a " << word << '\n';
    }
  }
  return out.str();
}

} // namespace

void add_completion(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->footer("Example: source <(shmemctl completion bash)");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, &context, shell] {
    context.run = [&app, shell](Context&) {
      std::vector<Level> levels;
      collect(app, "", {}, levels);
      if (*shell == "fish")
        std::cout << fish_script(levels);
      else
        std::cout << (*shell == "zsh"
                          ? "#compdef shmemctl\nautoload -U +X bashcompinit && bashcompinit\n"
                          : "")
                  << bash_script(levels) << "complete -o filenames -F _shmemctl shmemctl\n";
      return ExitCode::ok;
    };
  });
}

} // namespace shmemctl
