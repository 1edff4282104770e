// Names of signals.
#pragma once

#include <string>

namespace shmemctl {

/// "SIGTERM"; "signal 40" for one that has no name of its own.
std::string signal_name(int signal);

} // namespace shmemctl
