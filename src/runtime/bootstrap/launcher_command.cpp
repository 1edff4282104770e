#include "src/runtime/bootstrap/launcher_command.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/text.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

/// A launcher, its daemon and a shell or two are between a user and a PE.
constexpr int max_ancestors = 8;

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

/// From /proc/PID/stat: "1234 (any name) S 1230 ...". The name may have parentheses and blanks.
std::optional<long long> parent_of(const Sysroot& sysroot, const std::string& process) {
  const auto stat = sysroot.read("/proc/" + process + "/stat");
  const std::size_t end_of_name = stat ? stat->rfind(')') : std::string::npos;
  if (end_of_name == std::string::npos)
    return std::nullopt;
  const std::vector<std::string> fields = split_blanks(stat->substr(end_of_name + 1));
  return fields.size() < 2 ? std::nullopt : parse_integer(fields[1]);
}

std::vector<std::string> command_of(const Sysroot& sysroot, const std::string& process) {
  const auto text = sysroot.read("/proc/" + process + "/cmdline");
  if (!text || text->empty())
    return {};
  std::vector<std::string> words = split(*text, '\0');
  if (words.back().empty()) // each word ends with a zero
    words.pop_back();
  return words;
}

bool is_launcher(const std::vector<std::string>& command, const std::string& own_program) {
  static const std::vector<std::string> launchers = {
      "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "prun", "srun", "flux", "jsrun"};
  if (command.empty())
    return false;
  const std::string program = base_name(command.front());
  if (std::find(launchers.begin(), launchers.end(), program) != launchers.end())
    return true;
  return program == own_program &&
         std::find(command.begin() + 1, command.end(), "run") != command.end();
}

/// Whether the variable belongs to a communication library or a launcher; others may be secrets.
bool is_known_variable(std::string_view name) {
  static const std::vector<std::string> known = {"SHMEMCTL_", "NVSHMEM_", "NCCL_",  "UCX_",
                                                 "FI_",       "CUDA_",    "OMPI_",  "PMIX_",
                                                 "PRTE_",     "SLURM_",   "SHMEM_", "OMP_"};
  return std::any_of(known.begin(), known.end(),
                     [&](const std::string& prefix) { return starts_with(name, prefix); });
}

/// "NAME=value", or several with commas between them (srun --export), without the values that may
/// be secrets. A comma may also be part of a value, so the rest of a hidden value is hidden.
std::string without_foreign_values(const std::string& assignments) {
  std::vector<std::string> kept;
  bool hidden = false;
  for (const std::string& part : split(assignments, ',')) {
    const std::size_t sign = part.find('=');
    if (sign == std::string::npos) {
      if (!hidden)
        kept.push_back(part);
      continue;
    }
    hidden = !is_known_variable(part.substr(0, sign));
    kept.push_back(hidden ? part.substr(0, sign) + "=..." : part);
  }
  return join(kept, ",");
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
}

/// Hides the values of variables on the launcher's command line that may be secrets: behind the
/// options by which launchers set variables, and wherever a word is "NAME=value" in capitals.
void hide_values(std::vector<std::string>& command) {
  // Of pairs, the next two words may also be NAME and VALUE.
  static const std::set<std::string> pairs = {"-genv", "--genv", "-env"};
  static const std::set<std::string> options = {"-x", "-E", "--env", "--export"};
  for (std::size_t at = 1; at < command.size(); ++at) {
    std::string& word = command[at];
    const std::string& before = command[at - 1];
    const std::size_t sign = word.find('=');
    const std::string name = word.substr(0, sign);
    if (at >= 2 && pairs.count(command[at - 2]) != 0 && before.find('=') == std::string::npos) {
      if (!is_known_variable(before))
        word = "...";
    } else if (sign == std::string::npos) {
      continue;
    } else if (pairs.count(before) != 0 || options.count(before) != 0 || is_variable_name(name)) {
      word = without_foreign_values(word);
    } else if (pairs.count(name) != 0 || options.count(name) != 0) { // --env=NAME=VALUE
      word = name + "=" + without_foreign_values(word.substr(sign + 1));
    }
  }
}

/// srun's command line, composed of variables that it sets in each task, and of this process's.
std::vector<std::string> srun_command(const Environment& environment,
                                      const std::vector<std::string>& own) {
  std::vector<std::string> command = {"srun"};
  for (const auto& [flag, variable] :
       {std::pair("-N", "SLURM_STEP_NUM_NODES"), std::pair("-n", "SLURM_STEP_NUM_TASKS")})
    if (const auto found = environment.find(variable); found != environment.end()) {
      command.emplace_back(flag);
      command.push_back(found->second);
    }
  command.insert(command.end(), own.begin(), own.end());
  return command;
}

} // namespace

std::vector<std::string> launcher_command(const Sysroot& sysroot, const Environment& environment,
                                          const std::vector<std::string>& own) {
  const std::string launcher = launcher_name(environment);
  if (launcher == "none" || own.empty())
    return {};
  std::string process = "self";
  for (int i = 0; i < max_ancestors; ++i) {
    const std::optional<long long> parent = parent_of(sysroot, process);
    if (!parent || *parent <= 1)
      break;
    process = std::to_string(*parent);
    std::vector<std::string> command = command_of(sysroot, process);
    if (!is_launcher(command, base_name(own.front())))
      continue;
    hide_values(command);
    return command;
  }
  return launcher == "srun" ? srun_command(environment, own) : std::vector<std::string>{};
}

} // namespace shmemctl
