/* Names that a library could have taken from a program. */
#include "check.h"

int place(int x) {
  return x + 1;
}
int launch(int x) {
  return x + 2;
}
int log_enabled = 3;
int limits = 4, region = 5, phase = 6, current = 7, fail = 8, guarded = 9, world = 10;
int join(int x) {
  return x;
}
int lower(int x) {
  return x;
}
int printable(int x) {
  return x;
}
int log_message(int x) {
  return x;
}
int process(int x) {
  return x;
}
int configure_log(int x) {
  return x;
}

int main(void) {
  shmem_init();
  CHECK(place(1) == 2 && launch(1) == 3 && log_enabled == 3 && limits + region + phase == 15);
  CHECK(current + fail + guarded + world == 34);
  CHECK(join(1) + lower(1) + printable(1) + log_message(1) + process(1) + configure_log(1) == 6);
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
