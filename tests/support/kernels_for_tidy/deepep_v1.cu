// The header for DeepEP's kernels, which no program in the tree includes.
#define NVSHMEM_COMPAT_IBGDA_SEAM
#include "deepep_v1/ibgda_device.cuh"
