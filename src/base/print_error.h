// Prints an Error: the only place that does.
#pragma once

#include "src/base/error.h"

namespace shmemctl {

/// Two lines on stderr, by one write: what failed, and what to do. Nothing if the error has been
/// printed already, here or by another process of the job (Error::printed()).
void print_error(const Error& error);

} // namespace shmemctl
