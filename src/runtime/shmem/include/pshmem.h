/* The profiling interface: every function of shmem.h under its name with a leading p. A program may
 * define a function shmem_x itself, and call pshmem_x from it. */
#ifndef PSHMEM_H
#define PSHMEM_H

#include "shmem.h"

#define SHMEMCTL_NAME(name) p##name
#include "shmemctl/functions.h"
#undef SHMEMCTL_NAME

#endif
