/* Half a gigabyte of variables of which a few pages are touched: the others take no memory, neither
 * when they are shared, nor in a child of fork, nor at the end. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share.h"

enum { MiB = 1 << 20, SIZE = 512 * MiB, MOST = 128 * MiB };
static char large[SIZE];

/* Of this process; shared memory that it has touched counts. */
static long resident_bytes(void) {
  long all = 0, resident = SIZE;
  FILE* file = fopen("/proc/self/statm", "re");
  if (file && fscanf(file, "%ld %ld", &all, &resident) == 2)
    resident *= sysconf(_SC_PAGESIZE);
  if (file)
    fclose(file);
  return resident;
}

int main(int argc, char** argv) {
  const int pe = argc > 1 ? atoi(argv[1]) : 0, other = 1 - pe;
  int status = 0;
  pid_t child;
  require(argc == 3, "two arguments");
  printf("begun before");
  large[0] = 1;
  large[200 * MiB] = 2;
  large[SIZE - 1] = 3;

  share_variables(pe, argv[2]);
  printf(", ended after\n");
  require(shared_bytes() < MOST, "pages that nobody touched take no memory");
  require(large[0] == 1 && large[200 * MiB] == 2 && large[SIZE - 1] == 3 && large[MiB] == 0,
          "values are kept");
  meet();
  *(char*)of_the_other(&large[300 * MiB]) = (char)(10 + pe);
  meet();
  require(large[300 * MiB] == 10 + other, "the other PE wrote");
  child = fork();
  if (child == 0) {
    const int kept = large[0] == 1 && large[200 * MiB] == 2 && large[300 * MiB] == 10 + other &&
                     large[SIZE - 1] == 3 && large[100 * MiB] == 0;
    large[0] = 9; /* its own copy */
    _exit(!kept ? 1 : resident_bytes() < MOST ? 0 : 2);
  }
  require(waitpid(child, &status, 0) == child, "a child ends");
  require(!WIFEXITED(status) || WEXITSTATUS(status) != 2, "a child's memory is as small");
  require(status == 0, "a child has the values");
  require(large[0] == 1, "a child cannot write to its parent's variables");
  require(shared_bytes() < MOST, "a child adds no memory");

  meet();
  unshare_variables();
  require(large[0] == 1 && large[200 * MiB] == 2 && large[300 * MiB] == 10 + other &&
              large[SIZE - 1] == 3,
          "values are kept at the end");
  require(resident_bytes() < MOST, "the variables are as small at the end");
  return fflush(stdout) == 0 ? 0 : 1;
}
