/* Extensions of OpenSHMEM: there are none. The specification wants the file. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"

#endif
