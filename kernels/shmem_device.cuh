// One-sided operations and collectives on the symmetric heap, for kernels:
// docs/explanation/device_api.md, docs/explanation/device_collectives.md.
//
// The first template argument of most calls is their scope, the threads that make the call
// together: Thread, Warp or Block (scope.cuh). All of them make it with the same arguments. Single
// values, atomics and signals are operations of the calling thread alone. Addresses are this PE's
// own addresses of symmetric objects in the GPU heap, as in OpenSHMEM: they name the same object on
// the peer.
#pragma once

#include "kernels/device/atomics.cuh"
#include "kernels/device/collectives.cuh"
#include "kernels/device/copy.cuh"
#include "kernels/device/memory_order.cuh"
#include "kernels/device/rma.cuh"
#include "kernels/device/scope.cuh"
#include "kernels/device/signal.cuh"
#include "kernels/device/sync.cuh"
#include "kernels/device/wait.cuh"
#include "src/abi/device_job.h"
