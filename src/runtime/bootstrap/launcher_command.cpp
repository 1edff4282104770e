#include "src/runtime/bootstrap/launcher_command.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
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

/// Hides the value in a word NAME=value of the launcher's command line ("-x NAME=value"), which may
/// be a secret, unless NAME has a prefix of communication libraries and launchers.
std::string without_foreign_value(const std::string& word) {
  static const std::vector<std::string> known = {"SHMEMCTL_", "NVSHMEM_", "NCCL_",  "UCX_",
                                                 "FI_",       "CUDA_",    "OMPI_",  "PMIX_",
                                                 "PRTE_",     "SLURM_",   "SHMEM_", "OMP_"};
  const std::size_t sign = word.find('=');
  if (sign == std::string::npos || sign == 0 || starts_with(word, "-"))
    return word;
  const std::string name = word.substr(0, sign);
  const bool is_variable = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
  if (!is_variable || std::any_of(known.begin(), known.end(), [&](const std::string& prefix) {
        return starts_with(name, prefix);
      }))
    return word;
  return name + "=...";
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
    std::transform(command.begin(), command.end(), command.begin(), without_foreign_value);
    return command;
  }
  return launcher == "srun" ? srun_command(environment, own) : std::vector<std::string>{};
}

} // namespace shmemctl
