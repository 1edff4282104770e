/* Where SGI's SHMEM had it. */
#include "../shmemx.h"
