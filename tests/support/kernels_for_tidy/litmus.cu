// The litmus tests' kernels, which CMake otherwise compiles in several variants.
#define SHMEMCTL_LITMUS_VARIANT NETWORK
#include "tests/gpu/litmus_kernels.cuh"
