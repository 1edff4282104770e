// The one way in which an Error reaches the user.
#pragma once

#include "src/base/error.h"

namespace shmemctl {

/// Two lines on stderr, by one write: what failed, and what to do.
void print_error(const Error& error);

} // namespace shmemctl
