// Names of signals.
#pragma once

#include <string>

namespace shmemctl {

/// The name of a signal: "SIGTERM"; "signal 40" if it has no name.
std::string signal_name(int signal);

} // namespace shmemctl
