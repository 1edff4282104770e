// Finds the program of a command, and forks a PE.
#pragma once

#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/options.h"
#include "src/instruments/launch/signals.h"
#include "src/model/topo/cpus.h"

namespace shmemctl {

struct SpawnRequest {
  std::string program; ///< path of the program
  std::vector<std::string> arguments;
  Environment environment;
  int standard_input = -1; ///< descriptors for the child, all above 2; -1: as this process
  int standard_output = -1, standard_error = -1;
  std::optional<rlimit> open_files; ///< limit of open files for the child
  CpuSet cpus = {};                 ///< CPUs of the child; empty: as this process
  int inherited = -1;               ///< a descriptor that the child keeps, under the same number
};

/// A forked child. It leads its own process group, and dies with this process (by PR_SET_PDEATHSIG,
/// which does not work for programs with set-user-id bits).
class Spawned {
public:
  /// Forks; does not wait until the program runs. Throws Error (unavailable).
  Spawned(const SpawnRequest& request, const SignalGate& signals);
  pid_t pid() const { return pid_; }
  /// Waits until the program runs. Returns 0, or the errno of the step that failed; then the caller
  /// must reap the child.
  int started();

private:
  pid_t pid_ = -1;
  FileDescriptor status_;
};

/// A pipe whose ends are closed on exec. Throws Error (unavailable).
struct Pipe {
  FileDescriptor read_end, write_end;
  static Pipe make();
};

/// Opens /dev/null for those of the descriptors 0, 1 and 2 that are closed, so that no other file
/// gets these numbers.
void fill_standard_descriptors();

/// The file that `name` refers to: `name` itself if it contains a slash, otherwise the first
/// executable file of that name in the environment's PATH. Throws Error (usage) if there is no such
/// program, or if it is not executable.
std::string find_program(const std::string& name, const Environment& environment);

/// The error for a program that cannot be found or executed.
Error cannot_run(const std::string& name, int error_number);
/// The same for a failed execve() of `file`, whose interpreter or dynamic loader may be missing.
Error cannot_execute(const std::string& name, const std::string& file, int error_number);

} // namespace shmemctl
