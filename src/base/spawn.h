// posix_spawn with its settings as an object: for all who start a process.
#pragma once

#include <string>
#include <vector>

#include <spawn.h>
#include <sys/types.h>

#include "src/base/options.h"

namespace shmemctl {

/// What a process is started with. It blocks no signals, whatever this one blocks.
class SpawnSettings {
public:
  /// @param own_group whether it leads a process group of its own, so that its children can be
  ///                  reached too
  explicit SpawnSettings(bool own_group);
  ~SpawnSettings();
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions{}; ///< what happens to its files, to be added to
  posix_spawnattr_t attributes{};
};

/// Starts it. 0 and the process in `pid`, or an error number of the system.
int spawn(pid_t& pid, const std::string& program, std::vector<std::string> argv,
          const Environment& environment, const SpawnSettings& settings);

} // namespace shmemctl
