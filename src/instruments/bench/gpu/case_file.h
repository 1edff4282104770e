// For cases of kernels that consist of one file, src/instruments/bench/gpu/NAME.cu, with two parts.
// nvcc compiles the part under SHMEMCTL_KERNEL_PART, with and without network support
// (kernels/build_variants.h): the device code, and how it is launched. The host's compiler compiles
// the other part, in every build: the case, a class derived from GpuCase. What precedes both parts
// belongs to both: the kernel's arguments, and SHMEMCTL_LAUNCHER (kernels/bench/launcher.h), which
// declares the function by which the case launches the kernel.
#pragma once

#include "kernels/bench/launcher.h"

#if defined(__CUDACC__)

#include "kernels/bench/launch.cuh"

#define SHMEMCTL_KERNEL_PART

/// Defines a launcher, which launches a kernel with this body.
#define SHMEMCTL_LAUNCH(name, Body, Arguments)                                                     \
  namespace SHMEMCTL_BUILD_VARIANT {                                                               \
  std::string name(const KernelLaunch& how, const Arguments& arguments) {                          \
    return launch_together<Body>(how, arguments);                                                  \
  }                                                                                                \
  }
/// As SHMEMCTL_LAUNCH, with one kernel for each scope. Body is a template over OfThread, OfWarp or
/// OfBlock.
#define SHMEMCTL_LAUNCH_BY_SCOPE(name, Body, Arguments)                                            \
  namespace SHMEMCTL_BUILD_VARIANT {                                                               \
  std::string name(const KernelLaunch& how, const Arguments& arguments) {                          \
    return launch_by_scope<Body>(how, arguments);                                                  \
  }                                                                                                \
  }

#elif defined(SHMEMCTL_KERNELS_ON_HOST) // for tests of kernel bodies, which launch no kernels

#include "kernels/bench/timed_region.cuh"

#define SHMEMCTL_KERNEL_PART
#define SHMEMCTL_LAUNCH(name, Body, Arguments)
#define SHMEMCTL_LAUNCH_BY_SCOPE(name, Body, Arguments)

#else

#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/gpu/gpu_case.h"
#include "src/instruments/bench/gpu/message_buffers.h"

#endif
