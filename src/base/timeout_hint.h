// How the user gives the process more time, for the fix of errors.
#pragma once

#include <string>

namespace shmemctl {

/// Declares that this process is the command, whose user has --timeout. Otherwise it is a program
/// that uses the library, whose user has the environment. Call once, before there are threads.
void timeout_is_an_option();

/// "raise --timeout" or "raise SHMEMCTL_TIMEOUT", whichever applies. Thread safe.
std::string raise_timeout();

} // namespace shmemctl
