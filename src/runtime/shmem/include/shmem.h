/* OpenSHMEM 1.5's C interface, as shmemctl implements it.
 *
 * For C99 and later, and C++. From C11 on the type-generic names of the specification are macros;
 * in C++ they are overloads. Names that begin with shmemctl_ or SHMEMCTL_ are not part of the
 * interface. */
#ifndef SHMEM_H
#define SHMEM_H

#include "shmemctl/types.h"

#include "shmemctl/constants.h"
#include "shmemctl/type_lists.h"

#define SHMEMCTL_NAME(name) name
#include "shmemctl/functions.h"
#undef SHMEMCTL_NAME

#if defined(__cplusplus)
#include "shmemctl/generic_cxx.h"
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include "shmemctl/generic_c11.h"
#endif

#endif
