/* What the conformance programs share. They print nothing and exit with 0 when all is well. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <shmem.h>

/* Ends the whole job at the first thing that is not as the specification has it. */
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: PE %d: %s\n", __FILE__, __LINE__, shmem_my_pe(), #condition);        \
      shmem_global_exit(1);                                                                        \
    }                                                                                              \
  } while (0)

#endif
