// What the calls by NVSHMEM's names in kernels are made of: the device API, checks of their
// arguments, and what NVSHMEM has beyond OpenSHMEM. The names are in src/runtime/nvshmem.
#pragma once

#include "kernels/device/call_check.cuh"
#include "kernels/device/device_library.cuh"
#include "kernels/device/maxloc.cuh"
#include "kernels/device/pending_transfers.cuh"
#include "kernels/shmem_device.cuh"
