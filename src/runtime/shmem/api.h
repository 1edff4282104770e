// How a function of the C interface is defined.
#pragma once

#include "src/runtime/shmem/world.h"

/// Defines pshmem_x, and shmem_x as a weak name for it, so that a profiler may put its own
/// shmem_x before this one.
#define SHMEMCTL_API(result, name, parameters)                                                     \
  extern "C" __attribute__((weak, alias("p" #name))) result name parameters;                       \
  extern "C" result p##name parameters
