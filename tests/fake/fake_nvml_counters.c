#include "tests/fake/fake_nvml_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Adds a number to the sum; 0 for "-".
static int add(const char* text, unsigned long long* KiB) {
  if (strcmp(text, "-") == 0)
    return 0;
  *KiB += strtoull(text, NULL, 10);
  return 1;
}

int fake_nvml_counter(int gpu, unsigned link, int receives, unsigned long long* KiB) {
  char line[512], sent[32], received[32];
  int there = 0, summed = 0, at = 0;
  unsigned number = 0;
  const char* path = getenv("FAKE_NVML_CONFIG");
  FILE* file = path ? fopen(path, "r") : NULL;
  *KiB = 0;
  while (file && !summed && fgets(line, sizeof line, file)) {
    if (sscanf(line, "counter %d %u %31s %31s", &at, &number, sent, received) == 4 && at == gpu &&
        (link == FAKE_NVML_ALL_LINKS || link == number)) {
      there |= add(receives ? received : sent, KiB);
    } else if (sscanf(line, "sums %d %31s %31s", &at, sent, received) == 3 && at == gpu &&
               link == FAKE_NVML_ALL_LINKS) {
      *KiB = 0;
      there = add(receives ? received : sent, KiB);
      summed = 1;
    }
  }
  if (file)
    fclose(file);
  return there;
}
