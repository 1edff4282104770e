/* Arrays that the medium code model puts into segments of their own (.ldata, .lbss, .lrodata),
 * larger than .data and .bss together; in other models they lie there with the rest. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share.h"

enum { LARGE = 300000 };
long small_value = 5;
static long small_zeroed[10];
char large_values[LARGE] = {1, 2, 3};
static char large_zeroed[LARGE];
#ifdef CONSTANTS
const char large_constants[LARGE] = {7, 8, 9};
#endif

static void check_constants(const char* when) {
#ifdef CONSTANTS
  const volatile char* constants = large_constants;
  require(constants[0] == 7 && constants[2] == 9 && constants[LARGE - 1] == 0, when);
#else
  (void)when;
#endif
}

int main(int argc, char** argv) {
  const int pe = argc > 1 ? atoi(argv[1]) : 0, other = 1 - pe;
  int status = 0;
  pid_t child;
  require(argc == 3, "two arguments");
  printf("begun before");
  small_value = 6;
  large_values[LARGE - 1] = 4;
  large_zeroed[100000] = 5;

  share_variables(pe, argv[2]);
  printf(", ended after\n");
  require(small_value == 6 && large_values[0] == 1 && large_values[2] == 3 &&
              large_values[LARGE - 1] == 4 && large_zeroed[100000] == 5 && large_zeroed[0] == 0,
          "values are kept");
  check_constants("constants are kept");
  require(of_the_other(&small_value) != NULL, ".data is shared");
  require(of_the_other(&small_zeroed[9]) != NULL, ".bss is shared");
  require(of_the_other(large_values) != NULL && of_the_other(&large_values[LARGE - 1]) != NULL,
          ".ldata is shared");
  require(of_the_other(large_zeroed) != NULL && of_the_other(&large_zeroed[LARGE - 1]) != NULL,
          ".lbss is shared");
  meet();
  *(long*)of_the_other(&small_value) = 60 + pe;
  *(long*)of_the_other(&small_zeroed[9]) = 70 + pe;
  *(char*)of_the_other(&large_values[LARGE - 2]) = (char)(80 + pe);
  *(char*)of_the_other(&large_zeroed[LARGE - 1]) = (char)(90 + pe);
  meet();
  require(small_value == 60 + other && small_zeroed[9] == 70 + other, "the other PE wrote");
  require(large_values[LARGE - 2] == 80 + other && large_zeroed[LARGE - 1] == 90 + other,
          "the other PE wrote to large arrays");
  child = fork();
  if (child == 0) {
    const int kept = large_values[LARGE - 2] == 80 + other && large_zeroed[100000] == 5;
    check_constants("a child has the constants");
    large_values[0] = 99; /* its own copy */
    _exit(kept ? 0 : 1);
  }
  require(waitpid(child, &status, 0) == child && status == 0, "a child has the values");
  require(large_values[0] == 1, "a child cannot write to its parent's variables");

  meet();
  unshare_variables();
  require(large_values[LARGE - 2] == 80 + other && large_zeroed[LARGE - 1] == 90 + other &&
              large_values[0] == 1 && small_value == 60 + other,
          "values are kept at the end");
  check_constants("constants are kept at the end");
  return fflush(stdout) == 0 ? 0 : 1;
}
