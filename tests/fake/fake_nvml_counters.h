// Counters of the fake NVML's links. Two statements of its file are read again at each question,
// so that a test can move counters by writing the file anew; "-" in the place of a number is a
// counter that is not supported:
//   counter GPU LINK SENT RECEIVED   of an NVLink, in KiB
//   sums GPU SENT RECEIVED           of all of them; left out, they are the sums
#pragma once

#define FAKE_NVML_ALL_LINKS 0xffffffffU

/// Of one link, or all. @return whether there is one
int fake_nvml_counter(int gpu, unsigned link, int receives, unsigned long long* KiB);
