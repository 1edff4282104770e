#include "src/base/spawn.h"

#include <csignal>

namespace shmemctl {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

} // namespace

SpawnSettings::SpawnSettings(bool own_group) {
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGMASK | (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
}

SpawnSettings::~SpawnSettings() {
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
}

int spawn(pid_t& pid, const std::string& program, std::vector<std::string> argv,
          const Environment& environment, const SpawnSettings& settings) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment)
    variables.push_back(name + "=" + value);
  return ::posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes,
                       pointers_to(argv).data(), pointers_to(variables).data());
}

} // namespace shmemctl
