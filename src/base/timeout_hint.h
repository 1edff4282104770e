// How the reader of an error gives the process more time.
#pragma once

#include <string>

namespace shmemctl {

/// Says that this process is the command, whose user has --timeout. Without it the process is a
/// program that uses the library, whose user has the environment. Once, before there are threads.
void timeout_is_an_option();

/// "raise --timeout" or "raise SHMEMCTL_TIMEOUT", whichever this process has. Thread safe.
std::string raise_timeout();

} // namespace shmemctl
