// The parts from which NVSHMEM's calls in kernels are made: the device API, checks of arguments,
// and operations that NVSHMEM has beyond OpenSHMEM. The calls by NVSHMEM's names are in
// src/runtime/nvshmem.
#pragma once

#include "kernels/device/call_check.cuh"
#include "kernels/device/device_library.cuh"
#include "kernels/device/maxloc.cuh"
#include "kernels/device/pending_transfers.cuh"
#include "kernels/shmem_device.cuh"
