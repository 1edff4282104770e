// Prints an Error: the only place that does.
#pragma once

#include "src/base/error.h"

namespace shmemctl {

/// Two lines on stderr, by one write: what failed, and what to do.
void print_error(const Error& error);

} // namespace shmemctl
