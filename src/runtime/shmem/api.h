// The macro that defines a function of the C interface.
#pragma once

#include "src/runtime/shmem/world.h"

/// Defines pshmem_x, and shmem_x as a weak alias of it, so that a profiler may define its own
/// shmem_x instead.
#define SHMEMCTL_API(result, name, parameters)                                                     \
  extern "C" __attribute__((weak, alias("p" #name))) result name parameters;                       \
  extern "C" result p##name parameters
