// Which file a command means.
#pragma once

#include <string>

#include "src/base/error.h"
#include "src/base/options.h"

namespace shmemctl {

/// The file that `name` means: itself if it holds a slash, else the first executable file of that
/// name in the environment's PATH. Throws Error (usage): no such program, or not executable.
std::string find_program(const std::string& name, const Environment& environment);

/// What is thrown for a program that cannot be executed.
Error cannot_run(const std::string& name, int error_number);

} // namespace shmemctl
