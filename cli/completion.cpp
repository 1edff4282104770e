// `shmemctl completion bash|zsh|fish`: a script that asks the program what can be inserted at the
// cursor (cli/complete.h), so that all shells offer the same words, and only those that the program
// accepts.
#include <iostream>
#include <memory>
#include <string>

#include "cli/context.h"

namespace shmemctl {

namespace {

// Readline breaks words at = and :, so that only what follows the last of them is replaced.
constexpr const char* bash_script = R"script(_shmemctl() {
  local line=${COMP_LINE:0:COMP_POINT} current head= value kind item
  local -a words lines
  read -r -a words <<< "$line"
  [[ $line != *[[:blank:]] ]] || words+=('')
  while ((${#words[@]} > 1)) && [[ ${words[0]} == *=* ]]; do # NAME=VALUE shmemctl ...
    words=("${words[@]:1}")
  done
  ((${#words[@]} > 1)) || return 0
  current=${words[${#words[@]}-1]}
  for item in = :; do
    if [[ $COMP_WORDBREAKS == *$item* && $current == *$item* ]]; then
      value=${current%"${current##*"$item"}"}
      ((${#value} <= ${#head})) || head=$value
    fi
  done
  value=$current
  [[ $current != -*=* ]] || value=${current#*=}
  mapfile -t lines < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
  kind=${lines[0]}
  COMPREPLY=()
  for item in "${lines[@]:1}"; do
    item=${item%%$'\t'*}
    COMPREPLY+=("${item#"$head"}")
  done
  case $kind in
    files) compopt -o filenames 2>/dev/null
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$value") ;;
    directories) compopt -o filenames 2>/dev/null
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$value") ;;
    commands) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$value") ;;
  esac
}
complete -F _shmemctl shmemctl
)script";

// If found in $fpath, the file is the body of the function; if sourced, it registers the function.
constexpr const char* zsh_script = R"script(#compdef shmemctl
_shmemctl() {
  local -a lines values
  local line kind
  lines=("${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  kind=$lines[1]
  shift lines
  for line in $lines; do
    values+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  (( ! $#values )) || _describe -o -t values shmemctl values
  case $kind in
    files) [[ $PREFIX != -*=* ]] || compset -P '*='
      _files ;;
    directories) [[ $PREFIX != -*=* ]] || compset -P '*='
      _files -/ ;;
    commands) _command_names -e ;;
  esac
}
if [[ $funcstack[1] == _shmemctl ]]; then
  _shmemctl "$@"
else
  compdef _shmemctl shmemctl
fi
)script";

constexpr const char* fish_script = R"script(function __shmemctl_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l program $words[1]
  set -e words[1]
  set -l lines ($program __complete $words "$current" 2>/dev/null)
  set -l kind $lines[1]
  set -e lines[1]
  test (count $lines) -eq 0; or printf '%s\n' $lines
  set -l before (string match -r -- '^-[^=]*=' $current)
  set -l value (string replace -r -- '^-[^=]*=' '' "$current")
  switch "$kind"
    case files
      for file in (__fish_complete_path "$value")
        echo "$before$file"
      end
    case directories
      for folder in (__fish_complete_directories "$value")
        echo "$before$folder"
      end
    case commands
      complete -C "$value"
  end
end
complete -c shmemctl -e
complete -c shmemctl -f -a '(__shmemctl_complete)'
)script";

} // namespace

void add_completion(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->footer("Examples:\n"
                  "  source <(shmemctl completion bash)\n"
                  "  source <(shmemctl completion zsh)\n"
                  "  shmemctl completion fish | source");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "The shell whose completion script is printed")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&context, shell] {
    context.run = [shell](Context&) {
      std::cout << (*shell == "bash" ? bash_script : *shell == "zsh" ? zsh_script : fish_script);
      return ExitCode::ok;
    };
  });
}

} // namespace shmemctl
