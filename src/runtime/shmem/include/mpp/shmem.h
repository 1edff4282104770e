/* The path of this header in SGI's SHMEM. */
#include "../shmem.h"
