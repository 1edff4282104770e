/* Where SGI's SHMEM had it. */
#include "../shmem.h"
