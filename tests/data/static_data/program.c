/* A C program whose variables become symmetric and private again. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share.h"

long initialised = 5;
long zeroed[40000];
static char text[] = "written in the program file";
static const char* volatile points_to_constant = "a constant";
static void (*volatile points_to_function)(void) = meet;
static int ended;

static void at_the_end(void) {
  ended = 1;
}

static long counted(void) {
  static long calls = 10;
  return ++calls;
}

static void check_fork(void) {
  int status = 0;
  pid_t child;
  initialised = 300;
  child = fork();
  if (child == 0) {
    const int kept = initialised == 300;
    initialised = 999; /* its own copy */
    _exit(kept ? 0 : 1);
  }
  require(waitpid(child, &status, 0) == child && status == 0, "a child has the values");
  require(initialised == 300, "a child cannot write to its parent's variables");
  require(system("exit 3") != 0, "system() works");
}

static void check_other(int pe) {
  char name[256];
  long* other = of_the_other(&initialised);
  require(other != NULL, ".data is shared");
  require(of_the_other(&zeroed[39999]) != NULL, ".bss is shared to its end");
  require(of_the_other(text) != NULL, "static variables are shared");
  require(of_the_other(&pe) == NULL, "the stack is not shared");
  name_of_pages(&initialised, name, sizeof name);
  require(strstr(name, "memfd") != NULL, name);
  meet();
  *other = 200 + pe;
  *(long*)of_the_other(&zeroed[39999]) = 70 + pe;
  meet();
  require(initialised == 200 + (1 - pe), "the other PE wrote to .data");
  require(zeroed[39999] == 70 + (1 - pe), "the other PE wrote to .bss");
  meet();
}

int main(int argc, char** argv) {
  const int pe = argc > 1 ? atoi(argv[1]) : 0;
  char name[256];
  char** environment = environ;
  FILE* out = stdout;
  require(argc == 3, "two arguments");
  printf("begun before"); /* stays in the buffer of stdout */
  initialised = 6;
  zeroed[0] = 1;
  zeroed[20000] = 2;
  text[0] = 'W';
  counted();
  atexit(at_the_end);
  setenv("SHMEMCTL_TEST", "kept", 1);
  environment = environ;

  share_variables(pe, argv[2]);
  require(initialised == 6 && zeroed[0] == 1 && zeroed[20000] == 2 && zeroed[39999] == 0,
          "values are kept");
  require(strcmp(text, "Written in the program file") == 0, "text is kept");
  require(strcmp(points_to_constant, "a constant") == 0, "pointers are kept");
  require(counted() == 12, "static variables in functions are kept");
  require(environ == environment && strcmp(getenv("SHMEMCTL_TEST"), "kept") == 0, "environ");
  require(stdout == out, "stdout");
  printf(", ended after\n");
  points_to_function();
  check_other(pe);
  check_fork();

  meet();
  unshare_variables();
  require(initialised == 300 && zeroed[39999] == 70 + (1 - pe), "values are kept at the end");
  name_of_pages(&initialised, name, sizeof name);
  require(strstr(name, "memfd") == NULL, "private again");
  require(counted() == 13, "static variables in functions are kept at the end");
  errno = 0;
  return fflush(stdout) == 0 && ended == 0 ? 0 : 1;
}
